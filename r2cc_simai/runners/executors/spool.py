"""Outcomes that jobs of a cluster write into the run folder as they come, and which jobs were submitted.

Each batch of cases has a file `spool/BATCH.jsonl` with a line for every finished case; `spool/jobs.jsonl` says which
batch is which job. Whoever submitted them may be gone: the next sweep of the folder reads what has come since. A torn
last line counts as not written.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2cc_simai.errors import MissingComponentError, SimaiError
from r2cc_simai.results.table import row_from_dict, to_json
from r2cc_simai.runners.case_run import Outcome, Setup, Task, attempt

JOBS = "jobs.jsonl"


@dataclass(frozen=True)
class Submitted:
    """A batch of cases and the job that runs it; `where` names the cluster."""

    batch: str
    job: str
    where: str
    cases: tuple[str, ...]


class Spool:
    """The spool of one run folder, read from where the last reading ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self._read: dict[Path, int] = {}

    def file(self, batch: str) -> Path:
        """The file of a batch."""
        return self._folder / f"{batch}.jsonl"

    def news(self) -> list[Outcome]:
        """Outcomes that have come since the last call.

        Raises:
            MissingComponentError: a case needs what is not installed where it ran.
        """
        files = (path for path in sorted(self._folder.glob("*.jsonl")) if path.name != JOBS)
        return [_outcome(record, path) for path in files for record in self._new_records(path)]

    def submitted(self) -> list[Submitted]:
        """All jobs that were submitted."""
        jobs = self._folder / JOBS
        if not jobs.is_file():
            return []
        records = (json.loads(line) for line in jobs.read_bytes().splitlines(keepends=True) if line.endswith(b"\n"))
        return [Submitted(r["batch"], r["job"], r["where"], tuple(r["cases"])) for r in records]

    def add(self, jobs: Sequence[Submitted]) -> None:
        """Notes jobs that were submitted."""
        for job in jobs:
            _append(self._folder / JOBS, {"batch": job.batch, "job": job.job, "where": job.where, "cases": job.cases})

    def _new_records(self, path: Path) -> Iterator[dict[str, Any]]:
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read[path] = self._read.get(path, 0) + len(line)
                yield json.loads(line)


def run_batch(tasks: Sequence[Task], setup: Setup, file: Path) -> None:
    """What a job does: runs its cases one after another and writes each outcome as it comes."""
    for task in tasks:
        try:
            outcome = attempt(task, setup)
        except SimaiError as error:
            _append(file, {"missing": str(error)})
            return
        record = {"case": outcome.key, **to_json(outcome.rows), "wall_s": outcome.wall_s, "trace": outcome.trace}
        _append(file, {**record, "lookups": outcome.lookups, "hits": outcome.hits})


def _append(path: Path, record: Mapping[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _outcome(record: Mapping[str, Any], path: Path) -> Outcome:
    if "missing" in record:
        raise MissingComponentError(record["missing"])
    rows = [row_from_dict(values, str(path)) for values in record["rows"]]
    return Outcome(record["case"], rows, record["wall_s"], record["lookups"], record["hits"], record["trace"])
