"""Logs of real runs as measurements, and the published figures that the project compares with."""

from r2cc_simai.measured.model import (
    ColumnResult,
    Cut,
    FailedNic,
    GraphRow,
    GraphTable,
    Iteration,
    IterationSeries,
    Measurement,
    SizeResult,
)
from r2cc_simai.measured.read import read_log

__all__ = [
    "ColumnResult",
    "Cut",
    "FailedNic",
    "GraphRow",
    "GraphTable",
    "Iteration",
    "IterationSeries",
    "Measurement",
    "SizeResult",
    "read_log",
]
