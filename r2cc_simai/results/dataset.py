"""The log of a run folder as a Parquet dataset that can be read while the sweep runs.

`dataset/part-NNNNNN.parquet` hold the rows in the order of the log. Each part says in its metadata which bytes of the
log it covers; together they cover the log from its start without a gap or an overlap. A part appears whole, by a
rename, after the lines that it covers are durable, so that a kill at any time leaves a dataset that is right as far as
it goes. `pandas.read_parquet(FOLDER/dataset)` and DuckDB's `read_parquet('FOLDER/dataset/*.parquet')` read it.
"""

import math
import os
from itertools import count, pairwise
from pathlib import Path

from r2cc_simai.results.case_log import CaseLog
from r2cc_simai.results.files import arrow_table

DATASET = "dataset"
MOST_BYTES = 32 * 2**20  # of the log in one part, so that a part fits in memory
_COVERS = b"r2cc_simai.log_bytes"


class Dataset:
    """The parts of one run folder. One writer at a time."""

    def __init__(self, folder: Path, log: CaseLog) -> None:
        """Open or create the dataset of the run folder `folder`; parts that do not belong to `log` are removed."""
        self._parts = folder / DATASET
        self._fresh = folder / "dataset.new"  # beside the dataset: whoever reads that takes every file in it
        self._log = log
        self._parts.mkdir(exist_ok=True)
        self._next, self._covered = self._agreeing()
        if self._next == 0:
            self._write(0, 0)  # no row yet, but a table with its columns

    def catch_up(self) -> None:
        """Write parts for what the log holds and no part covers."""
        ends = self._log.ends(after=self._covered)
        for end, following in pairwise([*ends, math.inf]):
            if following - self._covered > MOST_BYTES:
                self._write(self._covered, int(end))

    def _agreeing(self) -> tuple[int, int]:
        """How many parts agree with the log, and up to which byte; the others are removed."""
        ends, covered = {0, *self._log.ends()}, 0
        for number in count():
            path = self._path(number)
            begin, end = _covers(path)
            if begin != covered or end not in ends:
                break
            covered = end
        for path in self._parts.iterdir():
            if path not in {self._path(i) for i in range(number)}:
                path.unlink()
        return number, covered

    def _path(self, number: int) -> Path:
        return self._parts / f"part-{number:06}.parquet"

    def _write(self, begin: int, end: int) -> None:
        import pyarrow.parquet as pq

        table = arrow_table(self._log.rows_between(begin, end))
        metadata = {**(table.schema.metadata or {}), _COVERS: f"{begin} {end}".encode()}
        with self._fresh.open("wb") as file:
            pq.write_table(table.replace_schema_metadata(metadata), file)
            file.flush()
            os.fsync(file.fileno())
        self._fresh.replace(self._path(self._next))
        self._next, self._covered = self._next + 1, end


def _covers(path: Path) -> tuple[int, int]:
    """The bytes of the log that a part covers; (-1, -1) where there is no such part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        begin, end = pq.read_schema(path).metadata[_COVERS].split()
        return int(begin), int(end)
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return -1, -1
