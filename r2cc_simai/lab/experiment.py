"""A whole lab: all its cases into a run folder, which a killed run resumes."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from r2cc_simai.errors import InputError, MismatchError
from r2cc_simai.lab.processes import Worker, serve_rank
from r2cc_simai.lab.record import CaseRecord
from r2cc_simai.lab.rows import RAW, case_rows
from r2cc_simai.lab.runner import Lab, running_lab
from r2cc_simai.lab.spec import LabCase, LabSpec, cases_of, checked_lab
from r2cc_simai.results import Row, RunFolder
from r2cc_simai.results.files import replace_file
from r2cc_simai.results.store import MANIFEST

Progress = Callable[[LabCase, list[Row]], None]


def run_lab(
    name: str,
    spec: LabSpec,
    out: Path,
    progress: Progress = lambda _case, _rows: None,
    worker: Worker = serve_rank,
) -> list[Row]:
    """Runs what is missing of a lab in its run folder and returns all rows, in the order of the cases.

    Raises:
        MissingComponentError: the machine or the user may not make network namespaces.
        InputError: the folder belongs to another lab, or a strategy does not apply.
        PartitionedError: ranks are left without a path, or something does not end within its limit.
        MismatchError: a result had wrong elements; everything is recorded.
    """
    folder = RunFolder(out, {"lab": name, "spec": spec.model_dump(mode="json")})
    cases = cases_of(spec)
    done = folder.done()
    missing = [case for case in cases if case.key not in done]
    if missing:
        with running_lab(spec, name, worker) as lab:
            for case in missing:
                progress(case, _run_case(lab, case, folder))
    order = [case.key for case in cases]
    folder.finish(order)
    done = folder.done()
    rows = [row for key in order for row in done[key]]
    _require_exact(rows)
    return rows


def lab_of_folder(path: Path) -> tuple[str, LabSpec]:
    """The lab of a run folder.

    Raises:
        InputError: it is none.
    """
    manifest = path / MANIFEST
    try:
        scenario = json.loads(manifest.read_bytes())["scenario"]
        name, data = scenario["lab"], scenario["spec"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{manifest}: no run folder of a lab; run 'r2cc-simai lab run' first") from None
    return name, checked_lab(name, data, str(manifest))


def _run_case(lab: Lab, case: LabCase, folder: RunFolder) -> list[Row]:
    began = time.perf_counter()
    record = lab.run(case)
    raw = f"{RAW}/{case.file_name}"
    _write_raw(folder.path / raw, record)
    rows = case_rows(record, lab.spec, lab.cluster, raw)
    folder.append(case.key, rows, time.perf_counter() - began)
    return rows


def _write_raw(path: Path, record: CaseRecord) -> None:
    path.parent.mkdir(exist_ok=True)
    replace_file(path, json.dumps(record.to_json(), indent=1).encode() + b"\n")


def _require_exact(rows: list[Row]) -> None:
    wrong = [row for row in rows if row.metric == "wrong_elements" and row.measured]
    if wrong:
        first = wrong[0]
        raise MismatchError(
            f"{first.strategy}, {first.pattern}: {first.measured:.0f} wrong elements in {first.source.split(';')[0]}"
            f" ({len(wrong)} iterations in all)"
        )
