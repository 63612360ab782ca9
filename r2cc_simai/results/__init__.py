"""The results table: its schema, its files, its tolerances, and the reports made of it.

Every command that produces results produces rows of one table (`table.Row`); CSV, Parquet, JSON and
reports are views of it. Importing this package imports nothing heavy.
"""

from r2cc_simai.results.files import read_rows
from r2cc_simai.results.store import RunFolder
from r2cc_simai.results.table import COLUMNS, ERROR, Row, error_row, make_row, to_json
from r2cc_simai.results.tolerance import Check, check, tolerance_pct

__all__ = [
    "COLUMNS",
    "ERROR",
    "Check",
    "Row",
    "RunFolder",
    "check",
    "error_row",
    "make_row",
    "read_rows",
    "to_json",
    "tolerance_pct",
]
