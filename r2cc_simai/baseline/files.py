"""A baseline as a file: CSV that a diff shows well, sorted by what names a number.

Columns `scenario` to `unit` name the number, `seeds` those of a mean over drawn patterns (`0-99`), `value` is what was
simulated, in `unit`, and `overhead_pct` its overhead. Numbers have 12 significant digits, lines end in "\\n".
"""

import csv
import io
import math
import re
from collections.abc import Iterable
from pathlib import Path

from r2cc_simai.baseline.numbers import Key, Number, in_order
from r2cc_simai.errors import InputError
from r2cc_simai.paths import baselines_dir
from r2cc_simai.results.files import canonical, replace_file

COLUMNS = (
    "scenario",
    "cluster",
    "workload",
    "pattern",
    "seeds",
    "strategy",
    "backend",
    "bytes",
    "metric",
    "unit",
    "value",
    "overhead_pct",
)
FOLDER = Path("reports/baselines")
"""Where baselines are kept by name, in the folder that a command runs in."""

_REQUIRED = ("scenario", "cluster", "workload", "strategy", "backend", "metric")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")
_WHOLE = re.compile(r"\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_SEEDS = re.compile(r"(\d+(-\d+)?( \d+(-\d+)?)*)?")


def baseline_path(name: str) -> Path:
    """The file of a baseline that is to be written: `reports/baselines/NAME.csv` in the current folder.

    Raises:
        InputError: the name is not one of a file.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"--name {name!r}: letters, digits, '.', '_' and '-' are wanted; a file goes with --baseline")
    return FOLDER / f"{name}.csv"


def find_baseline(name: str) -> Path:
    """The file of a baseline that is to be read: in the current folder's `reports/baselines`, or one that ships.

    Raises:
        InputError: there is none of that name.
    """
    own = baseline_path(name)
    shipped = baselines_dir() / own.name
    for path in (own, shipped):
        if path.is_file():
            return path
    known = sorted({path.stem for folder in (FOLDER, baselines_dir()) for path in folder.glob("*.csv")})
    raise InputError(f"--name {name}: no {own}; there are: {', '.join(known) or 'none'} (baseline update makes one)")


def csv_text(numbers: Iterable[Number]) -> str:
    """The text of a baseline file, header included; the same whatever the order of the numbers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_cells(number) for number in in_order(numbers))
    return out.getvalue()


def write_baseline(numbers: Iterable[Number], path: Path) -> None:
    """Write a baseline file, which appears whole or not at all; its folder is made where it is missing.

    Raises:
        InputError: the file cannot be written.
    """
    if path.is_dir():
        raise InputError(f"{path}: a folder; a file that can be written is wanted")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, csv_text(numbers).encode())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; a file that can be written is wanted") from None


def read_baseline(path: Path) -> list[Number]:
    """The numbers of a baseline file, in the order of their keys.

    Raises:
        InputError: there is no such file, or a line of it is not a number of a baseline.
    """
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; a baseline is wanted (baseline update makes one)") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; a baseline is wanted (baseline update makes one)") from None
    numbers = list(_lines(text, path))
    if not numbers:
        raise InputError(f"{path}: no numbers; baseline update writes them")
    return in_order(numbers)


def _lines(text: str, path: Path) -> Iterable[Number]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if tuple(next(reader, ())) != COLUMNS:
            raise InputError(f"{path}:1: unknown header; expected {','.join(COLUMNS)}")
        if not text.endswith("\n"):
            raise InputError(f"{path}:{text.count(chr(10)) + 1}: the last line has no end; the file was cut off")
        for cells in reader:
            yield _number(cells, f"{path}:{reader.line_num}")
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not CSV ({error})") from None


def _cells(number: Number) -> list[str]:
    key = number.key
    overhead = "" if number.overhead_pct is None else repr(canonical(number.overhead_pct))
    named = [key.scenario, key.cluster, key.workload, key.pattern, number.seeds, key.strategy, key.backend]
    return [*named, str(key.bytes), key.metric, key.unit, repr(canonical(number.value)), overhead]


def _number(cells: list[str], where: str) -> Number:
    if len(cells) != len(COLUMNS):
        raise InputError(f"{where}: {len(cells)} cells; expected {len(COLUMNS)}: {','.join(COLUMNS)}")
    cell = dict(zip(COLUMNS, cells, strict=True))
    odd = next((column for column in COLUMNS if not cell[column].isprintable()), None)
    if odd:
        raise InputError(f"{where}: {odd}: {cell[odd]!r} holds a character that cannot be printed; text is wanted")
    empty = next((column for column in _REQUIRED if not cell[column]), None)
    if empty:
        raise InputError(f"{where}: {empty}: empty; text is wanted")
    if not _WHOLE.fullmatch(cell["bytes"]):
        raise InputError(f"{where}: bytes: expected a whole number of bytes, got {cell['bytes']!r}")
    if not _SEEDS.fullmatch(cell["seeds"]):
        raise InputError(f"{where}: seeds: expected seeds such as '0-99 120' or nothing, got {cell['seeds']!r}")
    key = Key(
        cell["scenario"],
        cell["cluster"],
        cell["workload"],
        cell["pattern"],
        cell["strategy"],
        cell["backend"],
        int(cell["bytes"]),
        cell["metric"],
        cell["unit"],
    )
    overhead = None if not cell["overhead_pct"] else _finite(cell["overhead_pct"], "overhead_pct", where)
    return Number(key, _finite(cell["value"], "value", where), overhead, cell["seeds"])


def _finite(text: str, column: str, where: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {column}: expected a finite number, got {text!r}")
    return value
