"""One row of the results table, and the three percentages that follow from its values.

Values are in the row's own unit: seconds for times, bytes per second for bandwidths, bytes for counters.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from r2cc_simai.errors import InputError

BANDWIDTHS = frozenset({"algbw", "busbw", "tokens_per_s", "effective_time"})
"""Metrics of which more is better: their overhead and their gap are ratios of reciprocals."""


@dataclass(frozen=True)
class Row:
    """One number that a backend produced, beside what it is compared with.

    `bytes` is the size of the collective's buffer. `simulated`, `ideal` (NCCL's choice on the healthy
    cluster), `bound` (the lower bound in the failed state) and `measured` (measured or published) are in
    `unit`; `source` says where `measured` comes from. `seed` is that of a drawn pattern. A case that failed has one row
    of metric `error`, with the reason in `error`. A value that does not exist is None.
    """

    scenario: str
    cluster: str
    workload: str
    pattern: str
    seed: int | None
    strategy: str
    backend: str
    bytes: int
    metric: str
    unit: str
    simulated: float | None
    ideal: float | None
    overhead_pct: float | None
    bound: float | None
    bound_gap_pct: float | None
    measured: float | None
    error_pct: float | None
    source: str
    error: str


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(Row))
"""Names of the table's columns, in the order of every file."""

TEXT_COLUMNS = (
    "scenario",
    "cluster",
    "workload",
    "pattern",
    "strategy",
    "backend",
    "metric",
    "unit",
    "source",
    "error",
)
WHOLE_COLUMNS = ("seed", "bytes")
NUMBER_COLUMNS = tuple(c for c in COLUMNS if c not in TEXT_COLUMNS + WHOLE_COLUMNS)
ERROR = "error"
"""Metric of the row of a case that failed."""


def make_row(
    *,
    scenario: str,
    cluster: str,
    workload: str,
    pattern: str,
    strategy: str,
    backend: str,
    bytes: int,
    metric: str,
    unit: str,
    simulated: float | None,
    ideal: float | None = None,
    bound: float | None = None,
    measured: float | None = None,
    source: str = "",
    seed: int | None = None,
    error: str = "",
) -> Row:
    """Return a row with its percentages filled in.

    overhead_pct = 100 (simulated/ideal - 1), bound_gap_pct = 100 (simulated/bound - 1); for `algbw` and
    `busbw` both ratios are inverted, so that a positive value is always a loss.
    error_pct = 100 (simulated/measured - 1). A percentage is None where a value is missing or the divisor
    is 0.

    Raises ValueError for a value that is not finite.
    """
    values = {"simulated": simulated, "ideal": ideal, "bound": bound, "measured": measured}
    for name, value in values.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{scenario}: {metric}: {name} is {value}; a row holds finite numbers or None")
    loss = _more_than if metric not in BANDWIDTHS else _less_than
    return Row(
        scenario=scenario,
        cluster=cluster,
        workload=workload,
        pattern=pattern,
        seed=seed,
        strategy=strategy,
        backend=backend,
        bytes=bytes,
        metric=metric,
        unit=unit,
        simulated=simulated,
        ideal=ideal,
        overhead_pct=loss(simulated, ideal),
        bound=bound,
        bound_gap_pct=loss(simulated, bound),
        measured=measured,
        error_pct=_more_than(simulated, measured),
        source=source,
        error=error,
    )


def failed(rows: Iterable[Row]) -> bool:
    """Whether these are the rows of a case that failed."""
    return any(row.metric == ERROR for row in rows)


def error_row(
    *,
    scenario: str,
    cluster: str,
    workload: str,
    pattern: str,
    strategy: str,
    backend: str,
    bytes: int,
    error: str,
    seed: int | None = None,
) -> Row:
    """Return the one row of a case that failed for the reason `error`."""
    return make_row(
        scenario=scenario,
        cluster=cluster,
        workload=workload,
        pattern=pattern,
        seed=seed,
        strategy=strategy,
        backend=backend,
        bytes=bytes,
        metric=ERROR,
        unit="",
        simulated=None,
        error=error,
    )


def row_to_dict(row: Row) -> dict[str, Any]:
    """Return the row as a dict whose keys are `COLUMNS`, in that order."""
    return {column: getattr(row, column) for column in COLUMNS}


def row_from_dict(values: Mapping[str, Any], where: str) -> Row:
    """Return the row that `row_to_dict` made `values` of.

    Raises InputError, with `where` (file and line) in front, for a missing, unknown or ill-typed column.
    """
    if set(values) != set(COLUMNS):
        odd = sorted(set(values) ^ set(COLUMNS))
        raise InputError(f"{where}: columns {', '.join(odd)} missing or unknown; expected {','.join(COLUMNS)}")
    for column in TEXT_COLUMNS:
        if not isinstance(values[column], str):
            raise InputError(f"{where}: {column}: expected text, got {values[column]!r}")
    if not isinstance(values["bytes"], int):
        raise InputError(f"{where}: bytes: expected a whole number of bytes, got {values['bytes']!r}")
    if not isinstance(values["seed"], int | None):
        raise InputError(f"{where}: seed: expected a whole number or nothing, got {values['seed']!r}")
    for column in NUMBER_COLUMNS:
        if not isinstance(values[column], float | int | None):
            raise InputError(f"{where}: {column}: expected a number or nothing, got {values[column]!r}")
    numbers = {c: None if values[c] is None else float(values[c]) for c in NUMBER_COLUMNS}
    return Row(**{**values, **numbers})


def to_json(rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    """Return the object that `--json` prints: {"rows": [{column: value, ...}, ...]}."""
    return {"rows": [row_to_dict(row) for row in rows]}


def _more_than(value: float | None, reference: float | None) -> float | None:
    if value is None or not reference:
        return None
    return 100.0 * (value / reference - 1.0)


def _less_than(value: float | None, reference: float | None) -> float | None:
    return _more_than(reference, value)
