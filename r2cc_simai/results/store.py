"""A run folder: the rows of a sweep on disk, case by case, so that a killed sweep resumes.

manifest.json    the scenario and its hash
rows.jsonl       a line for every finished case, in the order in which the cases finished
results.csv      the table, in the order of the scenario (written at the end)
results.parquet  the same
timings.csv      wall time of every case in seconds, apart from the results since it never repeats
"""

import csv
import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from r2cc_simai import __version__
from r2cc_simai.errors import InputError
from r2cc_simai.results.files import (
    RESULTS_CSV,
    RESULTS_PARQUET,
    ROWS_JSONL,
    finished_lines,
    replace_file,
    write_csv,
    write_parquet,
)
from r2cc_simai.results.table import Row, to_json

MANIFEST = "manifest.json"
TIMINGS = "timings.csv"


class RunFolder:
    """The finished cases of one sweep of one scenario.

    A case is in the folder from the moment that `append` returns; a kill before that leaves at most a torn
    last line, which the next run ignores and overwrites. One sweep at a time writes to a folder.
    """

    def __init__(self, path: Path, scenario: Mapping[str, Any]) -> None:
        """Open or create the folder `path` for `scenario`, a dict that JSON can hold.

        Raises InputError when the folder belongs to another scenario or a file in it is damaged.
        """
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._log = path / ROWS_JSONL
        _claim(path, scenario)
        self._log.touch()
        _sync_folder(path)
        content = self._log.read_bytes()
        records, self._end = finished_lines(content, self._log)
        self._size = len(content)
        self._rows: dict[str, list[Row]] = {record["case"]: record["rows"] for record in records}
        self._wall_s: dict[str, float] = {record["case"]: record["wall_s"] for record in records}

    def done(self) -> dict[str, list[Row]]:
        """Return the rows of each finished case, in the order in which the cases finished."""
        return {case: list(rows) for case, rows in self._rows.items()}

    def timings(self) -> dict[str, float]:
        """Return the wall time of each finished case in seconds."""
        return dict(self._wall_s)

    def append(self, case_key: str, rows: Sequence[Row], wall_s: float) -> None:
        """Store a finished case and the wall time in seconds that it took; durable on return.

        Raises ValueError when the case is in the folder already, InputError when another sweep has
        written to the folder meanwhile.
        """
        if case_key in self._rows:
            raise ValueError(f"case {case_key!r} is finished already")
        record = {"case": case_key, **to_json(rows), "wall_s": wall_s}
        self._write(json.dumps(record, allow_nan=False).encode() + b"\n")
        self._rows[case_key] = list(rows)
        self._wall_s[case_key] = wall_s

    def finish(self, case_order: Sequence[str]) -> None:
        """Write `results.csv`, `results.parquet` and `timings.csv`, with the cases in the given order.

        Raises ValueError when a case of `case_order` is not finished.
        """
        missing = [case for case in case_order if case not in self._rows]
        if missing:
            raise ValueError(f"{len(missing)} cases are not finished, the first is {missing[0]!r}")
        rows = [row for case in case_order for row in self._rows[case]]
        write_csv(rows, self.path / RESULTS_CSV)
        write_parquet(rows, self.path / RESULTS_PARQUET)
        replace_file(self.path / TIMINGS, _timings_text(case_order, self._wall_s).encode())

    def _write(self, line: bytes) -> None:
        with self._log.open("r+b") as file:
            if file.seek(0, os.SEEK_END) != self._size:
                raise InputError(f"{self._log}: another sweep writes to this folder; choose another folder")
            file.truncate(self._end)
            file.seek(self._end)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._end += len(line)
        self._size = self._end


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
    replace_file(manifest, json.dumps(content, indent=2, allow_nan=False).encode() + b"\n")


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
