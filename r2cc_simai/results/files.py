"""The results table as CSV and as Parquet, and back.

The CSV is the same byte for byte for the same rows: columns in the order of `COLUMNS`, "\\n" line ends, an
empty cell for None, numbers as the shortest text that gives back their value rounded to 12 significant
digits (whole numbers, such as byte counts, are exact). The Parquet file holds the same values.
"""

import csv
import io
import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from r2cc_simai.errors import InputError
from r2cc_simai.results.case_log import ROWS_JSONL, logged_rows
from r2cc_simai.results.table import COLUMNS, NUMBER_COLUMNS, WHOLE_COLUMNS, Row, row_from_dict, row_to_dict

RESULTS_CSV = "results.csv"
RESULTS_PARQUET = "results.parquet"
ROWS_PER_GROUP = 50_000
"""Rows of a row group of the Parquet file, which is what a writer holds in memory."""


def canonical(value: float) -> float:
    """Return `value` rounded to 12 significant digits; a whole number stays what it is."""
    return value if value.is_integer() else float(f"{value:.12g}")


def csv_text(rows: Iterable[Row]) -> str:
    """Return the rows as the text of a CSV file, header included."""
    out = io.StringIO()
    _write_csv(rows, out)
    return out.getvalue()


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """Write the rows to a CSV file, which appears whole or not at all; they pass one by one."""
    fresh = _fresh(path)
    with fresh.open("w", encoding="utf-8", newline="") as file:
        _write_csv(rows, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def write_parquet(rows: Iterable[Row], path: Path) -> None:
    """Write the rows to a Parquet file, which appears whole or not at all, a row group at a time."""
    import pyarrow.parquet as pq

    fresh, left = _fresh(path), iter(rows)
    with fresh.open("wb") as file:
        with pq.ParquetWriter(file, _schema()) as writer:
            while group := list(islice(left, ROWS_PER_GROUP)):
                writer.write_table(arrow_table(group))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def arrow_table(rows: Iterable[Row]) -> Any:
    """Return the rows as an Arrow table: text columns, `seed` and `bytes` as int64, values as nullable float64."""
    import pyarrow as pa

    return pa.Table.from_pylist([_canonical_dict(row) for row in rows], schema=_schema())


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a results table: a `.csv` or `.parquet` file, or a run folder.

    Of a run folder that is not finished, the rows of its finished cases. Raises InputError when there is
    no such table or its columns are not those of `COLUMNS`.
    """
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a run folder, {RESULTS_CSV} or {RESULTS_PARQUET}")
    if path.suffix == ".csv":
        return _read_csv(path)
    if path.suffix == ".parquet":
        return _read_parquet(path)
    raise InputError(f"{path}: not a results table; expected a run folder, a .csv or a .parquet file")


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader sees the old file or the new one, never a part."""
    fresh = _fresh(path)
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _schema() -> Any:
    import pyarrow as pa

    kinds = dict.fromkeys(WHOLE_COLUMNS, pa.int64()) | {column: pa.float64() for column in NUMBER_COLUMNS}
    return pa.schema([(column, kinds.get(column, pa.string())) for column in COLUMNS])


def _fresh(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _write_csv(rows: Iterable[Row], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_csv_cell(value) for value in row_to_dict(row).values()] for row in rows)


def _csv_cell(value: str | float | int | None) -> str:
    if value is None:
        return ""
    return repr(canonical(value)) if isinstance(value, float) else str(value)


def _canonical_dict(row: Row) -> dict[str, Any]:
    values = row_to_dict(row)
    return {k: canonical(v) if isinstance(v, float) else v for k, v in values.items()}


def _read_folder(path: Path) -> list[Row]:
    if (path / RESULTS_CSV).is_file():
        return _read_csv(path / RESULTS_CSV)
    log = path / ROWS_JSONL
    if not log.is_file():
        raise InputError(f"{path}: not a run folder; expected {RESULTS_CSV} or {ROWS_JSONL} in it")
    return logged_rows(log)


def _read_csv(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        if tuple(next(reader, ())) != COLUMNS:
            raise InputError(f"{path}:1: unknown header; expected {','.join(COLUMNS)}")
        return [_from_cells(cells, f"{path}:{reader.line_num}") for cells in reader]


def _from_cells(cells: list[str], where: str) -> Row:
    if len(cells) != len(COLUMNS):
        raise InputError(f"{where}: {len(cells)} cells; expected {len(COLUMNS)}")
    values: dict[str, Any] = dict(zip(COLUMNS, cells, strict=True))
    values["bytes"] = _number(values["bytes"], "bytes", where, int)
    values["seed"] = None if values["seed"] == "" else _number(values["seed"], "seed", where, int)
    for column in NUMBER_COLUMNS:
        values[column] = None if values[column] == "" else _number(values[column], column, where, float)
    return row_from_dict(values, where)


def _number(text: str, column: str, where: str, kind: type[int] | type[float]) -> int | float:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{where}: {column}: {text!r} is not a number") from None


def _read_parquet(path: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        records = pq.read_table(path).to_pylist()
    except pa.ArrowException as error:
        raise InputError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None
    return [row_from_dict(record, f"{path}: row {number}") for number, record in enumerate(records, start=1)]
