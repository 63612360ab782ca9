"""Bytes that each NIC carries in an iteration, of scenarios that have no section of their own for it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import comparison, facets, labels, palette, plotting, units
from r2cc_simai.results.report.document import Block, Cell, Plot, Section, Table, Text, columns
from r2cc_simai.results.table import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SLUG = "nic-bytes"
PANELS = 6
"""Runs that the plot shows at most; the table has all."""
BARS = 16
"""NICs of a panel at most: those that carry most."""
WAYS = {"rx": ("received", palette.SIMULATED), "tx": ("sent", "#b45308")}
Run = tuple[str, str, str, str, str, str, int, int | None]
"""What tells runs apart: scenario, cluster, workload, pattern, strategy, backend, size in bytes, seed."""


def build(rows: Sequence[Row]) -> Section | None:
    """Return the section of the rows that count bytes on a NIC; None where none do."""
    counted = [row for row in rows if labels.counter(row.metric) and row.simulated is not None]
    if not counted:
        return None
    runs: dict[Run, list[Row]] = {}
    for row in counted:
        runs.setdefault(_run(row), []).append(row)
    shown = dict(list(runs.items())[:PANELS])
    caption = "Bytes per NIC in an iteration, a panel a run."
    if len(runs) > PANELS:
        caption = f"Bytes per NIC in an iteration, the first {PANELS} of {len(runs)} runs."
    measured = [row for row in counted if row.measured is not None]
    blocks: list[Block] = [
        Text(
            "Bytes that each NIC carries in an iteration, packet headers included. What a NIC carries above the mean "
            "of its direction is what the others wait for."
        ),
        Plot(SLUG, caption, _plot(shown)),
        _table(runs),
    ]
    if measured:
        leading = (comparison.STRATEGY, comparison.PATTERN, comparison.METRIC, comparison.BACKEND)
        blocks.append(comparison.table("Bytes per NIC against measured values", measured, leading))
    return Section(SLUG, "Bytes per NIC", tuple(blocks), (), facets.of_rows(counted))


def _run(row: Row) -> Run:
    return row.scenario, row.cluster, row.workload, row.pattern, row.strategy, row.backend, row.bytes, row.seed


def _table(runs: Mapping[Run, Sequence[Row]]) -> Table:
    lines = []
    for (scenario, cluster, _, pattern, strategy, backend, size, _), rows in runs.items():
        for way, (verb, _) in WAYS.items():
            own = [row for row in rows if row.metric.startswith(way)]
            if not own:
                continue
            counts = [row.simulated or 0.0 for row in own]
            most = max(own, key=lambda row: row.simulated or 0.0)
            mean = sum(counts) / len(counts)
            numbers = (sum(counts), min(counts), mean, max(counts))
            lines.append(
                (
                    Cell(scenario),
                    Cell(cluster),
                    Cell(labels.short_pattern(pattern) or units.DASH),
                    Cell(labels.strategy_name(strategy)),
                    Cell(backend),
                    Cell(units.size(size)),
                    Cell(verb),
                    Cell(f"{len(own)}"),
                    *(Cell(units.size(number, fixed=True)) for number in numbers),
                    Cell(units.ratio(max(counts) / mean) if mean else units.DASH),
                    Cell(_nic(most)),
                )
            )
    titles = columns(
        *("<scenario", "<cluster", "<failure", "<strategy", "<backend", "size", "<way", "NICs"),
        *("sum", "least", "mean", "most", "most / mean", "<busiest NIC"),
    )
    return Table("Bytes per NIC and iteration", titles, tuple(lines))


def _nic(row: Row) -> str:
    found = labels.counter(row.metric)
    return found[1] if found else row.metric


def _plot(runs: Mapping[Run, Sequence[Row]]) -> str:
    panels = {run: _bars(rows) for run, rows in runs.items()}
    heights = [plotting.bars_height(len(bars), len(WAYS)) for bars in panels.values()]
    return plotting.draw(sum(heights), lambda figure: _paint(figure, panels, heights))


def _bars(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return bytes by NIC and way, of the busiest NICs, in natural order."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(_nic(row), {})[row.metric[:2]] = row.simulated or 0.0
    busiest = sorted(found, key=lambda nic: -max(found[nic].values()))[:BARS]
    return {nic: found[nic] for nic in sorted(busiest, key=labels.natural)}


def _paint(figure: "Figure", panels: Mapping[Run, dict[str, dict[str, float]]], heights: Sequence[float]) -> None:
    drawn = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights).flatten()
    total = sum(heights)
    figure.subplots_adjust(left=0.16, right=0.98, top=1 - 0.6 / total, bottom=0.4 / total, hspace=0.35)
    for axes, (run, bars) in zip(drawn, panels.items(), strict=True):
        _panel(axes, _title(run), bars)
    handles, names = drawn[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="upper left", ncols=2, borderaxespad=0.2)


def _panel(axes: "Axes", title: str, bars: dict[str, dict[str, float]]) -> None:
    series = [(verb, color, [bars[nic].get(way) for nic in bars]) for way, (verb, color) in WAYS.items()]
    plotting.grouped_bars(axes, list(bars), series, lambda count: units.size(count, fixed=True))
    plotting.byte_ticks(axes)
    axes.set_title(title, fontsize=8.5)


def _title(run: Run) -> str:
    scenario, cluster, _, pattern, strategy, backend, size, _ = run
    failure = labels.short_pattern(pattern)
    failure = failure if len(failure) <= 60 else f"{failure[:59]}…"
    return " · ".join(
        part for part in (scenario, cluster, failure, labels.strategy_name(strategy), backend, units.size(size)) if part
    )
