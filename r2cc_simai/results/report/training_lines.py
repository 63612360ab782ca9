"""Lines over a logarithmic axis, one a strategy, labelled at their ends."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import labels, palette, plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]
_HEIGHT = 4.2
_GAP_PT = 12.0  # between the labels of two lines
_LOGARITHMIC = 20.0
"""From this ratio of the largest value to the least on, the axis of the values is logarithmic."""


def lines(by_strategy: Mapping[str, Points], x_axis: str, y_axis: str, published: Points = ()) -> str:
    """Return the SVG document: a line for each strategy, points for what is published.

    Values that are not above 0 are left out.
    """
    shown = {s: sorted(p for p in points if p[1] > 0) for s, points in by_strategy.items()}
    strategies = sorted((s for s, points in shown.items() if points), key=labels.strategy_order)
    values = [y for s in strategies for _, y in shown[s]] + [y for _, y in published]
    logarithmic = max(values) >= _LOGARITHMIC * min(values)

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        figure.subplots_adjust(left=0.085, right=0.8, top=0.96, bottom=0.13)
        ends = _paint_lines(axes, {s: shown[s] for s in strategies})
        if published:
            ends.append(_paint_published(axes, sorted(published)))
        _scales(axes, sorted({x for s in strategies for x, _ in shown[s]}), max(values), logarithmic)
        axes.set_xlabel(x_axis)
        axes.set_ylabel(y_axis)
        _label_ends(axes, ends, logarithmic)

    return plotting.draw(_HEIGHT, paint)


End = tuple[float, float, str, str]
"""Where a line ends, its label and its colour."""


def _paint_lines(axes: "Axes", by_strategy: Mapping[str, Points]) -> list[End]:
    strategies = list(by_strategy)
    colors, dashes = palette.strategy_colors(strategies), palette.strategy_dashes(strategies)
    ends = []
    for strategy, points in by_strategy.items():
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, dashes[strategy], color=colors[strategy], marker="o", markersize=4)
        ends.append((*points[-1], labels.strategy_name(strategy), colors[strategy]))
    return ends


def _paint_published(axes: "Axes", points: Points) -> End:
    xs, ys = zip(*points, strict=True)
    axes.plot(xs, ys, "o", color=palette.INK, markerfacecolor=palette.PAPER, markeredgewidth=1.4)
    return (*points[-1], "published (R²CC)", palette.INK)


def _scales(axes: "Axes", xs: Sequence[float], top: float, logarithmic: bool) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(xs, [f"{x:g}" for x in xs])
    if logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    else:
        axes.set_ylim(0.0, 1.06 * top)
    axes.minorticks_off()


def _label_ends(axes: "Axes", ends: Sequence[End], logarithmic: bool) -> None:
    """Labels right of the last points, moved apart along the axis as it is scaled."""
    place, value = (math.log10, lambda y: 10**y) if logarithmic else (float, float)
    low, high = (place(v) for v in axes.get_ylim())
    height = axes.get_position().height * _HEIGHT * 72.0
    moved = plotting.spread([place(y) for _, y, _, _ in ends], _GAP_PT * (high - low) / height)
    look = {"fontsize": 8.5, "fontweight": "bold", "va": "center", "annotation_clip": False}
    for (x, y, text, color), at in zip(ends, moved, strict=True):
        axes.annotate(text, xy=(x, y), xytext=(x * 1.08, value(at)), color=color, **look)  # type: ignore[arg-type]
