"""Parts that several sections share: tables and bars of simulated beside measured values."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import labels, palette, plotting, units
from r2cc_simai.results.report.document import Cell, Column, Plot, Table, Tone, columns
from r2cc_simai.results.table import Row
from r2cc_simai.results.tolerance import check, is_outlier, tolerance_pct

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Leading = tuple[Column, Callable[[Row], str]]
"""A leading column of a comparison: its title, and its text for a row."""

SIZE: Leading = (Column("size"), lambda row: units.size(row.bytes))
STRATEGY: Leading = (Column("strategy", numeric=False), lambda row: labels.strategy_name(row.strategy))
METRIC: Leading = (Column("metric", numeric=False), lambda row: labels.metric_name(row.metric))
PATTERN: Leading = (
    Column("failure", numeric=False),
    lambda row: labels.short_pattern(row.pattern) or units.DASH,
)
BACKEND: Leading = (Column("backend", numeric=False), lambda row: row.backend)


def table(caption: str, rows: Sequence[Row], leading: Sequence[Leading]) -> Table:
    """Return simulated, measured, error and tolerance, and the ratio to healthy where a row has an ideal.

    Leading columns `BACKEND` and `METRIC` are left out where they say the same in each row, the ratio where
    it is always 1.
    """
    shown = [c for c in leading if c not in (BACKEND, METRIC) or len({c[1](row) for row in rows}) > 1]
    relative = any(abs(row.overhead_pct) > 1e-6 for row in rows if row.overhead_pct is not None)
    titles = columns("measured", "simulated", "error", "allowed", *(("× healthy",) if relative else ()))
    return Table(
        caption,
        (*(column for column, _ in shown), *titles),
        tuple((*(Cell(text(row)) for _, text in shown), *_values(row, relative)) for row in rows),
    )


def error_cell(row: Row) -> Cell:
    """Return a row's error, marked as good or bad where it is judged."""
    judged = check(row)
    tone: Tone = "muted" if judged is None else "ok" if judged.ok else "bad"
    return Cell(units.error(row.error_pct), "outlier" if is_outlier(row) else "", tone)


def backend_suffix(rows: Sequence[Row]) -> Callable[[Row], str]:
    """Return what names a row's backend in a label: " (chunk)", or nothing where all rows have the same."""
    several = len({row.backend for row in rows}) > 1
    return lambda row: f" ({row.backend})" if several else ""


def bars(slug: str, caption: str, rows: Sequence[Row], name: Callable[[Row], str], axis: str) -> Plot:
    """Return horizontal bars, measured beside simulated, a pair a row; all rows have the same unit."""
    unit = rows[0].unit
    series = [
        ("measured", palette.MEASURED, [row.measured for row in rows]),
        ("simulated", palette.SIMULATED, [row.simulated for row in rows]),
    ]
    height = plotting.bars_height(len(rows), len(series))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        figure.subplots_adjust(left=0.27, right=0.98, top=1 - 0.4 / height, bottom=0.5 / height)
        plotting.grouped_bars(axes, [name(row) for row in rows], series, lambda v: units.value(v, unit))
        axes.set_xlabel(axis)
        axes.xaxis.set_major_formatter(lambda v, _: units.value(v, unit, fixed=False))
        axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, borderaxespad=0.2)

    return Plot(slug, caption, plotting.draw(height, paint))


def _values(row: Row, relative: bool) -> tuple[Cell, ...]:
    allowed = f"±{tolerance_pct(row.metric, row.bytes):g}%" if row.error_pct is not None else units.DASH
    cells = (
        Cell(units.value(row.measured, row.unit)),
        Cell(units.value(row.simulated, row.unit)),
        error_cell(row),
        Cell(allowed, tone="muted"),
    )
    ratio = units.ratio(row.simulated / row.ideal) if row.simulated and row.ideal else units.DASH
    return (*cells, Cell(ratio)) if relative else cells
