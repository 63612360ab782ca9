"""Reading a table of measured block times (CSV), with errors that name file, line and column."""

import csv
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.blocks import BLOCKS, PASSES, PHASES
from r2cc_simai.workloads.gpus import load_gpu

COLUMNS = ("model", "gpu", "tp", "tokens", "block", "pass", "time_us")
OPTIONAL = ("context", "phase")


class MeasuredBlock(NamedTuple):
    """What a row of the table is about; `context` 0 and `phase` "" fit any."""

    model: str  # in lower case
    gpu: str
    tp: int
    tokens: int
    block: str
    pass_: str
    context: int
    phase: str


def read_measured_times(path: Path) -> dict[MeasuredBlock, float]:
    """Seconds of each measured block; lines that start with `#` are comments.

    Raises:
        InputError: no such file, a column missing or unknown, a cell that is wrong, or two rows for one block.
    """
    numbered = [(n, line) for n, line in _lines(path) if line.strip() and not line.startswith("#")]
    if not numbered:
        raise InputError(f"{path}: empty; a header ({', '.join(COLUMNS)}) and a row for each block are wanted")
    columns = _cells(numbered[0][1])
    _check_columns(path, columns)
    times: dict[MeasuredBlock, float] = {}
    for number, line in numbered[1:]:
        where, cells = f"{path}: line {number}", _cells(line)
        if len(cells) != len(columns):
            raise InputError(f"{where}: {len(cells)} cells, but the header has {len(columns)}")
        row = _Row(where, dict(zip(columns, cells, strict=True)))
        block = row.block()
        if block in times:
            raise InputError(f"{where}: the same block as in a line before; one row for each is wanted")
        times[block] = row.seconds()
    return times


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        return list(enumerate(path.read_text().splitlines(), start=1))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; a CSV file is wanted") from None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line]))]


def _check_columns(path: Path, found: list[str]) -> None:
    missing = [column for column in COLUMNS if column not in found]
    if missing:
        raise InputError(f"{path}: column {missing[0]} is missing (wanted: {', '.join(COLUMNS)})")
    unknown = [column for column in found if column not in COLUMNS + OPTIONAL]
    if unknown:
        raise InputError(f"{path}: column {unknown[0]!r} is unknown (allowed: {', '.join(COLUMNS + OPTIONAL)})")


@dataclass(frozen=True)
class _Row:
    where: str
    cells: dict[str, str]

    def block(self) -> MeasuredBlock:
        return MeasuredBlock(
            model=self._text("model").lower(),
            gpu=self._gpu(),
            tp=self._integer("tp"),
            tokens=self._integer("tokens"),
            block=self._one_of("block", BLOCKS),
            pass_=self._one_of("pass", PASSES),
            context=self._integer("context") if self.cells.get("context") else 0,
            phase=self._one_of("phase", PHASES) if self.cells.get("phase") else "",
        )

    def seconds(self) -> float:
        try:
            microseconds = float(self._text("time_us"))
        except ValueError:
            microseconds = 0.0
        if not (isfinite(microseconds) and microseconds > 0):
            raise self._wrong("time_us", "microseconds above 0 are wanted")
        return microseconds * 1e-6

    def _text(self, column: str) -> str:
        if not self.cells[column]:
            raise self._wrong(column, "a value is wanted")
        return self.cells[column]

    def _gpu(self) -> str:
        try:
            return load_gpu(self._text("gpu")).name
        except InputError as error:
            raise InputError(f"{self.where}: gpu {error}") from None

    def _integer(self, column: str) -> int:
        text = self._text(column)
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise self._wrong(column, "a whole number above 0 is wanted")
        return int(text)

    def _one_of(self, column: str, allowed: tuple[str, ...]) -> str:
        if self._text(column) not in allowed:
            raise self._wrong(column, f"one of {', '.join(allowed)} is wanted")
        return self.cells[column]

    def _wrong(self, column: str, wanted: str) -> InputError:
        return InputError(f"{self.where}: {column} {self.cells[column]!r}: {wanted}")
