"""The log of a run folder: a line of JSON for every finished case, in the order in which the cases finished.

A case is in the log from the moment that `append` returns. A kill before that leaves at most a torn last line, which is
ignored and overwritten. In memory are only the places of the lines; rows are read when they are asked for.
"""

import json
import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2cc_simai.errors import InputError
from r2cc_simai.results.table import Row, row_from_dict, to_json

ROWS_JSONL = "rows.jsonl"


@dataclass(frozen=True)
class Finished:
    """A finished case: its key, its rows, and the wall time in seconds that it took."""

    case: str
    rows: list[Row]
    wall_s: float


@dataclass(frozen=True, slots=True)
class _Place:
    begin: int
    end: int
    wall_s: float


class CaseLog(Mapping[str, list[Row]]):
    """The rows of each finished case by its key, in the order in which the cases finished. One writer at a time."""

    def __init__(self, path: Path) -> None:
        """Open the log `path`, which has to exist.

        Raises InputError for what no kill explains: a whole line that is not a finished case, a case that stands twice.
        """
        self.path = path
        self._places: dict[str, _Place] = {}
        self._ends: list[int] = []
        self._end = 0
        for number, (begin, line) in enumerate(_whole_lines(path), start=1):
            record = _record(line, f"{path}:{number}")
            if record["case"] in self._places:
                raise InputError(f"{path}:{number}: case {record['case']!r} stands twice; choose another folder")
            self._end = begin + len(line)
            self._places[record["case"]] = _Place(begin, self._end, float(record["wall_s"]))
            self._ends.append(self._end)
        self._size = path.stat().st_size

    @property
    def end(self) -> int:
        """Length in bytes of the part of the file that holds finished cases."""
        return self._end

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __contains__(self, case: object) -> bool:
        return case in self._places

    def __getitem__(self, case: str) -> list[Row]:
        place = self._places[case]
        return list(self.rows_between(place.begin, place.end))

    def of(self, cases: Iterable[str]) -> Iterator[tuple[str, list[Row]]]:
        """Yield some cases with their rows."""
        with self.path.open("rb") as file:
            for case in cases:
                place = self._places[case]
                file.seek(place.begin)
                yield case, _rows(file.read(place.end - place.begin), f"{self.path}: case {case!r}")

    def rows_between(self, begin: int, end: int) -> Iterator[Row]:
        """Yield the rows of the lines between two offsets in bytes, which are ends of lines."""
        with self.path.open("rb") as file:
            file.seek(begin)
            while begin < end:
                line = file.readline()
                begin += len(line)
                yield from _rows(line, f"{self.path} at byte {begin - len(line)}")

    def ends(self, after: int = -1) -> list[int]:
        """Return the offsets in bytes behind each line, ascending, from the first that is larger than `after`."""
        return self._ends[bisect_right(self._ends, after) :]

    def timings(self) -> dict[str, float]:
        """Return the wall time of each finished case in seconds."""
        return {case: place.wall_s for case, place in self._places.items()}

    def append(self, finished: Iterable[Finished]) -> None:
        """Store finished cases, all at once; durable on return.

        Raises ValueError when a case is in the log already, InputError when somebody else has written to the file.
        """
        lines: list[bytes] = []
        places: dict[str, _Place] = {}
        end = self._end
        for case in finished:
            if case.case in self._places or case.case in places:
                raise ValueError(f"case {case.case!r} is finished already")
            record = {"case": case.case, **to_json(case.rows), "wall_s": case.wall_s}
            lines.append(json.dumps(record, allow_nan=False).encode() + b"\n")
            places[case.case] = _Place(end, end + len(lines[-1]), case.wall_s)
            end += len(lines[-1])
        self._write(b"".join(lines))
        self._places |= places
        self._ends += [place.end for place in places.values()]

    def _write(self, lines: bytes) -> None:
        with self.path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) != self._size:
                raise InputError(f"{self.path}: another sweep writes to this folder; choose another folder")
            file.truncate(self._end)
            file.seek(self._end)
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        self._end += len(lines)
        self._size = self._end


def forget(path: Path, which: Callable[[list[Row]], bool]) -> None:
    """Take the cases out of a log whose rows are such.

    A kill leaves the old log or the new one. Raises InputError for a whole line that is not a finished case.
    """
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as file:
        for number, (_, line) in enumerate(_whole_lines(path), start=1):
            if not which(_rows(line, f"{path}:{number}")):
                file.write(line)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def logged_rows(path: Path) -> list[Row]:
    """Return all rows of a log. Raises InputError for a whole line that is not a finished case."""
    lines = enumerate(_whole_lines(path), start=1)
    return [row for number, (_, line) in lines for row in _rows(line, f"{path}:{number}")]


def _whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that have an end, each with the offset at which it begins; what follows the last was torn by a kill."""
    begin = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield begin, line
            begin += len(line)


def _record(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or not {"case", "rows", "wall_s"} <= set(record):
        raise InputError(f'{where}: not a finished case; expected {{"case": ..., "rows": [...], "wall_s": ...}}')
    return record


def _rows(line: bytes, where: str) -> list[Row]:
    return [row_from_dict(_shared(values), where) for values in _record(line, where)["rows"]]


def _shared(values: dict[str, Any]) -> dict[str, Any]:
    """The same, with equal texts as one object: most cells of a large table repeat."""
    return {key: sys.intern(value) if type(value) is str else value for key, value in values.items()}
