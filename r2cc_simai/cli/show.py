"""Tables, notes and JSON on the terminal. Results go to stdout, remarks to stderr."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2cc_simai.results import Row

NONE = "-"


def json_rows(rows: "Iterable[Row]") -> None:
    """Prints the one object of `--json`: {"rows": [...]}, keys as the results table's columns."""
    from r2cc_simai.results import to_json

    print(json.dumps(to_json(rows), allow_nan=False, indent=1))


def notes(lines: Iterable[str]) -> None:
    """Remarks, each once."""
    for line in dict.fromkeys(lines):
        print(f"note: {line}", file=sys.stderr)


def table(title: str, columns: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> None:
    """A table under a title; the first `text` columns are aligned to the left. Headings carry the units.

    A table that is wider than the terminal is not cut: the terminal wraps its lines.
    """
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, column in enumerate(columns):
        grid.add_column(Text(column), justify="left" if i < text else "right", no_wrap=True)
    for line in lines:
        grid.add_row(*(Text(cell) for cell in line))
    console = Console()
    widest = Measurement.get(console, console.options.update(max_width=10_000), grid).maximum
    console.width = max(console.width, widest)
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(grid)
    console.print()


def number(value: float | None, digits: int = 2) -> str:
    """A number with a fixed number of decimals; a dash where there is none."""
    return NONE if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 2) -> str:
    """As `number`, with its sign."""
    return NONE if value is None else f"{value:+.{digits}f}"
