"""Overhead over the size of the buffer, a line a strategy: which one is best where."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import labels, palette, plotting, units
from r2cc_simai.results.report.document import Plot
from r2cc_simai.results.table import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST = 5
"""From this many sizes on a plot over the size says more than bars."""
_HEIGHT = 4.2
_HIGHEST = 150.0
"""Overheads beyond this many percent leave the plot at its upper edge."""


def by_size(slug: str, caption: str, rows: Sequence[Row]) -> Plot | None:
    """Return the plot of one case's steady times; None with few sizes or nothing to compare."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in sorted(rows, key=lambda r: r.bytes):
        if row.metric == "time" and row.overhead_pct is not None and row.strategy != "ideal" and row.bytes > 0:
            lines.setdefault(row.strategy, []).append((row.bytes, row.overhead_pct))
    if not lines or max(map(len, lines.values())) < FEWEST:
        return None
    ordered = {s: lines[s] for s in sorted(lines, key=labels.strategy_order)}
    return Plot(slug, caption, plotting.draw(_HEIGHT, lambda figure: _paint(figure, ordered)))


def _paint(figure: "Figure", lines: dict[str, list[tuple[int, float]]]) -> None:
    axes = figure.subplots()
    figure.subplots_adjust(left=0.075, right=0.8, top=0.96, bottom=0.13)
    strategies = list(lines)
    colors, dashes = palette.strategy_colors(strategies), palette.strategy_dashes(strategies)
    values = [overhead for line in lines.values() for _, overhead in line]
    limits = (min(-4.0, 1.1 * min(values)), 1.06 * min(_HIGHEST, max(values)))
    for strategy, line in lines.items():
        wide = 4.5 if labels.family(strategy) == "auto" else 1.8  # lies under the line that it takes
        alpha = 0.35 if labels.family(strategy) == "auto" else 1.0
        xs, ys = zip(*line, strict=True)
        axes.plot(xs, ys, dashes[strategy], color=colors[strategy], lw=wide, alpha=alpha)
    _finish(axes, sorted({size for line in lines.values() for size, _ in line}), limits)
    last = max(line[-1][0] for line in lines.values())
    ends = [(last * 1.25, min(line[-1][1], limits[1]), labels.strategy_name(s), colors[s]) for s, line in lines.items()]
    plotting.label_ends(axes, ends, limits)


def _finish(axes: "Axes", sizes: list[int], limits: tuple[float, float]) -> None:
    axes.axhline(0.0, color=palette.MUTED, lw=1.0)
    axes.set_xscale("log", base=2)
    step = max(1, len(sizes) // 8)
    axes.set_xticks(sizes[::step], [units.size(size) for size in sizes[::step]])
    axes.minorticks_off()
    axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
    axes.set_ylim(*limits)
    axes.set_xlabel("size of the AllReduce's buffer")
    axes.set_ylabel("overhead over the healthy cluster (%)")
