"""The published and measured figures that ship with the project, one CSV a table."""

import csv

from r2cc_simai.errors import InputError
from r2cc_simai.paths import published_dir


def names() -> list[str]:
    """The tables there are."""
    return sorted(path.stem for path in published_dir().glob("*.csv"))


def load(name: str) -> list[dict[str, str]]:
    """The rows of a table, cells as text; a column's name carries its unit.

    Raises InputError when there is no such table or a row does not fit the heading.
    """
    if name not in names():
        raise InputError(f"{name}: no such table of published figures; there are {', '.join(names())}")
    path = published_dir() / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise InputError(f"{path}:{reader.line_num}: expected {len(reader.fieldnames or ())} cells")
            rows.append(row)
    return rows
