"""A run folder: the rows of a sweep on disk, case by case, so that a killed sweep resumes.

manifest.json    the scenario and its hash; at the end also how the sweep went
rows.jsonl       a line for every finished case, in the order in which the cases finished
dataset/         the same as Parquet, written while the sweep runs
results.csv      the table, in the order of the scenario (written at the end)
results.parquet  the same
timings.csv      wall time of every case in seconds, apart from the results since it never repeats
"""

import csv
import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2cc_simai import __version__
from r2cc_simai.errors import InputError
from r2cc_simai.results.case_log import ROWS_JSONL, CaseLog, Finished, forget
from r2cc_simai.results.dataset import DATASET, Dataset
from r2cc_simai.results.files import RESULTS_CSV, RESULTS_PARQUET, replace_file, write_csv, write_parquet
from r2cc_simai.results.table import Row, failed

MANIFEST = "manifest.json"
TIMINGS = "timings.csv"
CASES_PER_PART = 500
SECONDS_PER_PART = 60.0


class RunFolder:
    """The finished cases of one sweep of one scenario.

    A case is in the folder from the moment that `append` returns; a kill before that leaves at most a torn
    last line, which the next run ignores and overwrites. One sweep at a time writes to a folder.
    """

    def __init__(self, path: Path, scenario: Mapping[str, Any], *, retry_failed: bool = False) -> None:
        """Open or create the folder `path` for `scenario`, a dict that JSON can hold.

        With `retry_failed` cases with a row of metric `error` count as not finished.

        Raises InputError when the folder belongs to another scenario or a file in it is damaged.
        """
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        _claim(path, scenario)
        (path / ROWS_JSONL).touch()
        if retry_failed:
            # Before the log: what it covers is told by places in the log. It is made anew from that.
            shutil.rmtree(path / DATASET, ignore_errors=True)
            forget(path / ROWS_JSONL, failed)
        _sync_folder(path)
        self._log = CaseLog(path / ROWS_JSONL)
        self._dataset = Dataset(path, self._log)
        self.flush()

    def done(self) -> Mapping[str, list[Row]]:
        """Return the rows of each finished case, in the order in which the cases finished; they stay on disk until
        they are asked for, and cases that finish later appear."""
        return self._log

    def of(self, cases: Iterable[str]) -> Iterator[tuple[str, list[Row]]]:
        """Yield some finished cases with their rows."""
        return self._log.of(cases)

    def timings(self) -> dict[str, float]:
        """Return the wall time of each finished case in seconds."""
        return self._log.timings()

    def append(self, case_key: str, rows: Sequence[Row], wall_s: float) -> None:
        """Store a finished case and the wall time in seconds that it took; durable on return.

        Raises ValueError when the case is in the folder already, InputError when another sweep has
        written to the folder meanwhile.
        """
        self.append_all([Finished(case_key, list(rows), wall_s)])

    def append_all(self, finished: Sequence[Finished]) -> None:
        """Store several finished cases at once, as `append` does one."""
        self._log.append(finished)
        self._not_in_dataset += len(finished)
        if self._not_in_dataset >= CASES_PER_PART or time.monotonic() - self._flushed_at > SECONDS_PER_PART:
            self.flush()

    def flush(self) -> None:
        """Bring the dataset up to what is finished."""
        self._dataset.catch_up()
        self._not_in_dataset, self._flushed_at = 0, time.monotonic()

    def finish(self, case_order: Sequence[str], went: Mapping[str, Any] | None = None) -> None:
        """Write `results.csv`, `results.parquet` and `timings.csv`, with the cases in the given order, and to the
        manifest how the sweep went (`went`).

        Raises ValueError when a case of `case_order` is not finished.
        """
        missing = [case for case in case_order if case not in self._log]
        if missing:
            raise ValueError(f"{len(missing)} cases are not finished, the first is {missing[0]!r}")
        self.flush()
        for write, name in ((write_csv, RESULTS_CSV), (write_parquet, RESULTS_PARQUET)):
            write((row for _, rows in self.of(case_order) for row in rows), self.path / name)
        replace_file(self.path / TIMINGS, _timings_text(case_order, self.timings()).encode())
        if went:
            self._say(went)

    def _say(self, went: Mapping[str, Any]) -> None:
        manifest = self.path / MANIFEST
        replace_file(manifest, _manifest_text({**json.loads(manifest.read_bytes()), "went": went}))


def _claim(path: Path, scenario: Mapping[str, Any]) -> None:
    """Check that the folder is this scenario's, or make it so."""
    digest = hashlib.sha256(json.dumps(scenario, sort_keys=True, allow_nan=False).encode()).hexdigest()
    manifest = path / MANIFEST
    if manifest.is_file():
        if _digest(manifest) != digest:
            raise InputError(f"{manifest}: belongs to another scenario; choose another folder")
        return
    if (path / ROWS_JSONL).exists():
        raise InputError(f"{manifest}: missing beside {ROWS_JSONL}; choose another folder")
    content = {"version": __version__, "scenario_sha256": digest, "scenario": scenario}
    replace_file(manifest, _manifest_text(content))


def _manifest_text(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2, allow_nan=False).encode() + b"\n"


def _digest(manifest: Path) -> object:
    try:
        return json.loads(manifest.read_bytes())["scenario_sha256"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{manifest}: key scenario_sha256 missing; choose another folder") from None


def _timings_text(case_order: Sequence[str], wall_s: Mapping[str, float]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("case", "wall_s"))
    writer.writerows((case, f"{wall_s[case]:.6f}") for case in case_order)
    return out.getvalue()


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
