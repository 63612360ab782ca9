"""Bars of overhead by strategy, a panel a case; several cases in a panel show as median and range."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from r2cc_simai.results.report import labels, palette, plotting, units
from r2cc_simai.results.report.document import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panel = tuple[str, Mapping[str, Sequence[float]]]
"""A panel's title, and the overheads in percent of each strategy."""


def overhead_bars(slug: str, caption: str, panels: Sequence[Panel]) -> Plot:
    """Return the plot. A bar far longer than all others is cut at the edge, with an arrow and its value."""
    bars = max(len(overheads) for _, overheads in panels)
    height = 0.6 + len(panels) * (0.42 + 0.22 * bars)
    svg = plotting.draw(height, lambda figure: _paint(figure, panels))
    return Plot(slug, caption, svg)


def _paint(figure: "Figure", panels: Sequence[Panel]) -> None:
    drawn = figure.subplots(len(panels), 1, sharex=True, squeeze=False).flatten()
    height = figure.get_size_inches()[1]
    figure.subplots_adjust(left=0.22, right=0.98, top=1 - 0.28 / height, bottom=0.47 / height, hspace=0.3)
    ends = [value for _, overheads in panels for values in overheads.values() for value in values]
    strategies = sorted({s for _, overheads in panels for s in overheads}, key=labels.strategy_order)
    limit = plotting.fair_limit(max(max(o[s]) for _, o in panels if s in o) for s in strategies)
    low = min(0.0, *ends)
    colors = palette.strategy_colors(strategies)
    for axes, (title, overheads) in zip(drawn, panels, strict=True):
        own = [s for s in strategies if s in overheads]
        for y, strategy in enumerate(own):
            _bar(axes, y, sorted(overheads[strategy]), colors[strategy], limit)
        axes.set_yticks(range(len(own)), [labels.strategy_name(s) for s in own])
        axes.set_ylim(len(own) - 0.4, -0.6)
        axes.set_xlim(1.02 * low, low + 1.15 * (limit - low))
        axes.tick_params(axis="y", length=0, labelcolor=palette.INK)
        axes.grid(axis="y", visible=False)
        axes.set_title(title, fontsize=8.5)
    drawn[-1].set_xlabel("overhead over the healthy cluster (%)")


def _bar(axes: "Axes", y: int, values: Sequence[float], color: str, limit: float) -> None:
    middle, edge = median(values), 1.04 * limit
    axes.barh(y, min(middle, edge), height=0.7, color=color)
    if len(values) > 1:
        span = [min(values[0], edge), min(values[-1], edge)]
        axes.plot(span, [y, y], color=palette.INK, lw=1.2, marker="|", ms=7.0)
    arrow = "→ " if values[-1] > edge else ""
    end = max(min(values[-1], edge), 0.0) + 0.008 * limit
    axes.text(end, y, arrow + units.percent(middle), va="center", fontsize=8.0)
