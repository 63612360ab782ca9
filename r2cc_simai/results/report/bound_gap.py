"""How far each strategy stays above the lower bound, and that nothing lies below it."""

from collections.abc import Mapping, Sequence
from statistics import median, quantiles
from typing import TYPE_CHECKING

from r2cc_simai.results.report import facets, labels, palette, plotting, units
from r2cc_simai.results.report.document import Block, Cell, Plot, Section, Table, Text, columns
from r2cc_simai.results.table import BANDWIDTHS, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SLUG = "bound-gap"
MIB = 1 << 20
FROM_BYTES = 16 * MIB
"""Smaller buffers are a matter of latency, which the lower bound does not know."""
ONE_OFF = ("time_first", "time_cut", "iteration_cut")
"""Times of one iteration that other things make long: they are checked against the bound and not shown."""
BELOW_PCT = -1e-6
"""A gap below this is a result that cannot be: the rest is rounding."""
LEAST_SHOWN_PCT = 0.1
MOST_MARKS = 200
"""Marks of one strategy in the plot; of more values these many, evenly taken."""
MOST_BELOW = 20
IDEAL = "ideal"


def build(rows: Sequence[Row]) -> Section | None:
    """Return the section; None where no time of a strategy has a lower bound beside it."""
    judged = [row for row in rows if row.bound_gap_pct is not None and row.metric not in BANDWIDTHS]
    judged = [row for row in judged if row.strategy != IDEAL]  # is compared with the bound of a healthy cluster
    if not judged:
        return None
    below = [row for row in judged if (row.bound_gap_pct or 0.0) < BELOW_PCT]
    steady = [row for row in judged if row.metric not in ONE_OFF]
    large = [row for row in steady if row.bytes == 0 or row.bytes >= FROM_BYTES]
    blocks: list[Block] = [
        Text(
            "The lower bound is what no algorithm can beat in the failed state: bytes that have to pass over what is "
            "left of the network. Plot and table are of steady times; the bound knows no latency, so buffers below "
            f"{units.size(FROM_BYTES)} are left out."
        ),
        Text(_verdict(judged, below)),
    ]
    if below:
        blocks.append(_below_table(below))
    if large:
        gaps = _by_strategy(large)
        caption = "Gap to the lower bound by strategy: every steady time a mark, the median a dot."
        blocks += [Plot(SLUG, caption, _plot(gaps)), _table(gaps)]
    finding = _verdict(judged, below)
    return Section(SLUG, "Gap to the lower bound", tuple(blocks), (finding,), facets.of_rows(judged))


def _verdict(judged: Sequence[Row], below: Sequence[Row]) -> str:
    if not below:
        return f"None of {len(judged)} simulated times lies below its lower bound."
    return f"{len(below)} of {len(judged)} simulated times lie below their lower bound: that cannot be."


def _by_strategy(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each strategy by growing gap."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.bound_gap_pct or 0.0):
        found.setdefault(row.strategy, []).append(row)
    return {strategy: found[strategy] for strategy in sorted(found, key=labels.strategy_order)}


def _gaps(rows: Sequence[Row]) -> list[float]:
    return [row.bound_gap_pct for row in rows if row.bound_gap_pct is not None]


def _table(by_strategy: Mapping[str, Sequence[Row]]) -> Table:
    lines = []
    for strategy, rows in by_strategy.items():
        gaps = _gaps(rows)
        tail = quantiles(gaps, n=10, method="inclusive")[-1] if len(gaps) > 1 else gaps[0]
        numbers = (gaps[0], median(gaps), tail, gaps[-1])
        cells = (Cell(units.percent(number)) for number in numbers)
        lines.append((Cell(labels.strategy_name(strategy)), Cell(f"{len(gaps)}"), *cells, Cell(_where(rows[-1]))))
    titles = columns("<strategy", "results", "least", "median", "90th percentile", "largest", "<largest where")
    return Table("Gap to the lower bound by strategy", titles, tuple(lines))


def _below_table(below: Sequence[Row]) -> Table:
    ordered = sorted(below, key=lambda row: row.bound_gap_pct or 0.0)[:MOST_BELOW]
    lines = [
        (
            Cell(row.scenario),
            Cell(row.cluster),
            Cell(labels.strategy_name(row.strategy)),
            Cell(row.backend),
            Cell(labels.metric_name(row.metric)),
            Cell(units.value(row.simulated, row.unit)),
            Cell(units.value(row.bound, row.unit)),
            Cell(units.percent(row.bound_gap_pct), tone="bad"),
        )
        for row in ordered
    ]
    titles = columns("<scenario", "<cluster", "<strategy", "<backend", "<metric", "simulated", "bound", "gap")
    return Table("Times below the lower bound", titles, tuple(lines))


def _where(row: Row) -> str:
    size = [units.size(row.bytes)] if row.bytes else []
    return ", ".join([row.scenario, row.cluster, *size])


def _plot(by_strategy: Mapping[str, Sequence[Row]]) -> str:
    gaps = {strategy: _gaps(rows) for strategy, rows in by_strategy.items()}
    height = 0.75 + 0.26 * len(gaps)
    return plotting.draw(height, lambda figure: _paint(figure, gaps, height))


def _paint(figure: "Figure", gaps: Mapping[str, Sequence[float]], height: float) -> None:
    axes = figure.subplots()
    figure.subplots_adjust(left=0.22, right=0.97, top=1 - 0.12 / height, bottom=0.5 / height)
    colors = palette.strategy_colors(list(gaps))
    for y, (strategy, values) in enumerate(gaps.items()):
        _strip(axes, y, [max(value, LEAST_SHOWN_PCT) for value in values], colors[strategy])
    axes.set_xscale("log")
    axes.set_xlim(LEAST_SHOWN_PCT * 0.85, 1.5 * max(1.0, *(values[-1] for values in gaps.values())))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}%")
    axes.minorticks_off()
    axes.set_yticks(range(len(gaps)), [labels.strategy_name(strategy) for strategy in gaps])
    axes.set_ylim(len(gaps) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, labelcolor=palette.INK)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"gap to the lower bound ({units.percent(LEAST_SHOWN_PCT)} and less at the left edge)")


def _strip(axes: "Axes", y: int, values: Sequence[float], color: str) -> None:
    step = (len(values) - 1) / (MOST_MARKS - 1)
    shown = values if len(values) <= MOST_MARKS else [values[round(i * step)] for i in range(MOST_MARKS)]
    axes.plot(shown, [y] * len(shown), "|", color=color, ms=11.0, mew=1.2, alpha=0.6)
    axes.plot([median(values)], [y], "o", color=color, ms=6.5, markeredgecolor=palette.PAPER)
