"""Reports of runs that are there already: the report of a run folder anew, and what differs from another run."""

import json
from pathlib import Path

from r2cc_simai.baseline.files import COLUMNS as BASELINE_COLUMNS
from r2cc_simai.baseline.files import find_baseline, read_baseline
from r2cc_simai.baseline.numbers import Number, watched
from r2cc_simai.errors import InputError
from r2cc_simai.results import Row, read_rows
from r2cc_simai.results.case_log import ROWS_JSONL, CaseLog
from r2cc_simai.results.files import RESULTS_CSV, RESULTS_PARQUET, write_csv, write_parquet
from r2cc_simai.results.report import ReportPaths, build_report
from r2cc_simai.results.report.build import BANDWIDTHS
from r2cc_simai.results.report.document import Section
from r2cc_simai.results.store import MANIFEST
from r2cc_simai.runners import against


def rebuild_report(
    run: Path, out: Path | None = None, compared_with: str | None = None, title: str | None = None
) -> ReportPaths:
    """Writes the report of `run`, a run folder or a results table, to `out`: by default where the run is.

    `compared_with` is another run or a baseline (a file, or the name of one that ships): what differs then stands on
    top. The title is by default that of the run's scenario. The same run gives the same files, byte for byte. Of a run
    that is not finished the report has the rows so far, and says so.

    Raises:
        InputError: there is no such run, table or baseline, it is damaged, or `out` cannot be written.
    """
    rows = read_rows(run)
    home = run if run.is_dir() else run.parent
    folder = out or home
    lead = [] if compared_with is None else [_difference(rows, compared_with)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve() != home.resolve():
            write_csv(rows, folder / RESULTS_CSV)
            write_parquet(rows, folder / RESULTS_PARQUET)
        return build_report(
            rows,
            folder,
            title or _title(home) or f"Report of {run.resolve().stem}",
            _timings(home) if run.is_dir() else None,
            run_dir=home,
            lead=lead,
            notice=_notice(run),
        )
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; a folder that can be written is wanted") from None


def _difference(rows: list[Row], other: str) -> Section:
    before = _numbers_of(other)
    metrics = sorted({number.key.metric for number in before})
    return against.build(watched(rows, [_literal(metric) for metric in metrics]), before, other)


def _numbers_of(other: str) -> list[Number]:
    """The numbers of a run, but for bandwidths, which say times otherwise, or of a baseline by its file or name."""
    path = Path(other)
    if path.is_file() and _is_baseline(path):
        return read_baseline(path)
    if path.exists():
        rows = [row for row in read_rows(path) if row.metric not in BANDWIDTHS]
        return watched(rows, ["*"])
    try:
        return read_baseline(find_baseline(other))
    except InputError as error:
        raise InputError(f"--against {other}: no such run or baseline ({error})") from None


def _is_baseline(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().strip() == ",".join(BASELINE_COLUMNS).encode()


def _literal(metric: str) -> str:
    """The pattern that matches a metric alone: brackets mean something in patterns."""
    return metric.replace("[", "[[]")


def _title(home: Path) -> str:
    """The title of the scenario in the manifest; empty where there is none."""
    try:
        scenario = json.loads((home / MANIFEST).read_bytes())["scenario"]
        title = scenario["content"]["title"]
    except FileNotFoundError:
        return ""
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{home / MANIFEST}: scenario.content.title is missing; --title gives one") from None
    return str(title)


def _timings(home: Path) -> dict[str, float]:
    log = home / ROWS_JSONL
    return CaseLog(log).timings() if log.is_file() else {}


def _notice(run: Path) -> str:
    if not run.is_dir() or (run / RESULTS_CSV).is_file():
        return ""
    count = len(CaseLog(run / ROWS_JSONL))
    cases = "1 case that is" if count == 1 else f"{count} cases that are"
    return f"This sweep is not finished: here are the results of the {cases}."
