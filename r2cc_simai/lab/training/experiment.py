"""A training file's jobs into a run folder."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from r2cc_simai.errors import MismatchError
from r2cc_simai.lab.rows import RAW
from r2cc_simai.lab.spec import LabSpec
from r2cc_simai.lab.training.job import Job, Verdict, judge, run_jobs
from r2cc_simai.lab.training.rows import FAULTS, job_rows, record
from r2cc_simai.lab.training.settings import TrainingSpec
from r2cc_simai.results import Row, RunFolder
from r2cc_simai.results.files import replace_file

Progress = Callable[[Job, Verdict], None]

ALL_JOBS = "all jobs"  # they are judged together, so they are one case of the folder


def run_training(
    name: str, spec: TrainingSpec, lab: LabSpec, out: Path, progress: Progress = lambda _job, _verdict: None
) -> list[Row]:
    """Trains all jobs, unless the folder has them, and returns their rows; `require_sound` says whether they are right.

    Raises:
        MissingComponentError: the machine or the user may not make network namespaces.
        InputError: the folder belongs to another training, or a strategy does not apply.
        PartitionedError: ranks are left without a path, or something does not end within its limit.
        MismatchError: the ranks' parameters have drifted apart.
    """
    scenario = {"training": name, "spec": spec.model_dump(mode="json"), "lab": lab.model_dump(mode="json")}
    folder = RunFolder(out, scenario)
    if ALL_JOBS not in folder.done():
        began = time.perf_counter()
        rows = _train(name, spec, lab, out, progress)
        folder.append(ALL_JOBS, rows, time.perf_counter() - began)
    folder.finish([ALL_JOBS])
    return folder.done()[ALL_JOBS]


def require_sound(rows: list[Row]) -> None:
    """All jobs are as they have to be.

    Raises:
        MismatchError: the first fault of the first job that has one.
    """
    faulty = [row for row in rows if row.metric == FAULTS and row.measured]
    if faulty:
        fault = faulty[0].source.split("; ")[1]
        raise MismatchError(f"{faulty[0].scenario}: {faulty[0].strategy}: {fault} ({len(faulty)} jobs with faults)")


def _train(name: str, spec: TrainingSpec, lab: LabSpec, out: Path, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    jobs: list[Job] = []

    def finished(job: Job) -> None:
        jobs.append(job)
        verdict = judge(job, jobs[0], spec.perplexity_tolerance_pct)
        raw = f"{RAW}/{job.case.file_name}"
        (out / RAW).mkdir(exist_ok=True)
        replace_file(out / raw, json.dumps(record(job, verdict), indent=1).encode() + b"\n")
        rows.extend(job_rows(name, spec, lab, job, jobs[0], verdict, raw))
        progress(job, verdict)

    run_jobs(spec, lab, name, finished)
    return rows
