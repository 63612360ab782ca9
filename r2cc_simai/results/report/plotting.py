"""Drawing: one look for all plots, deterministic SVG, labels that do not overlap."""

import contextlib
import io
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from r2cc_simai.results.report import palette, units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

WIDTH = 10.0
"""Width of a plot in inches; the page shows it at 72 points an inch."""

_STYLE: "dict[RcKeyType, Any]" = {
    "svg.fonttype": "none",
    "svg.hashsalt": "r2cc-simai",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.labelcolor": palette.MUTED,
    "axes.edgecolor": palette.MUTED,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": palette.GRID,
    "grid.linewidth": 0.8,
    "figure.facecolor": palette.PAPER,
    "savefig.facecolor": palette.PAPER,
    "text.color": palette.INK,
    "axes.titlecolor": palette.INK,
    "xtick.color": palette.MUTED,
    "ytick.color": palette.MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.0,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


def draw(height: float, paint: Callable[["Figure"], None], width: float = WIDTH) -> str:
    """Return the SVG document of a figure of `width` x `height` inches that `paint` fills."""
    with _styled():
        out = io.StringIO()
        _painted(width, height, paint).savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def draw_png(height: float, paint: Callable[["Figure"], None], width: float = WIDTH, dpi: int = 150) -> bytes:
    """Return the same figure as a PNG image of `dpi` pixels an inch."""
    with _styled():
        out = io.BytesIO()
        _painted(width, height, paint).savefig(out, format="png", dpi=dpi, metadata={"Software": None})
    return out.getvalue()


@contextlib.contextmanager
def _styled() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # Whoever shows an SVG has fonts for a user's own words in any script.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        matplotlib.rcdefaults()
        for key, setting in _STYLE.items():
            matplotlib.rcParams[key] = setting
        yield


def _painted(width: float, height: float, paint: Callable[["Figure"], None]) -> "Figure":
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasSVG(figure)
    paint(figure)
    return figure


def heading(figure: "Figure", title: str) -> None:
    """Write a title at the upper left corner of a figure, cut off where it would leave it."""
    width, height = figure.get_size_inches()
    most = int(10.5 * width)
    text = title if len(title) <= most else title[: most - 1] + "…"
    figure.text(0.012, 1 - 0.2 / height, text, va="center", fontsize=9.5, fontweight="bold", parse_math=False)


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Return `positions` moved apart as little as possible, so that no two are nearer than `gap`."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    blocks: list[tuple[float, int]] = []
    for i in order:
        center, count = positions[i], 1
        while blocks and center - gap * (count - 1) / 2 < blocks[-1][0] + gap * (blocks[-1][1] + 1) / 2:
            other, others = blocks.pop()
            center = (center * count + other * others) / (count + others)
            count += others
        blocks.append((center, count))
    placed = [center + gap * (j - (count - 1) / 2) for center, count in blocks for j in range(count)]
    moved = [0.0] * len(positions)
    for i, position in zip(order, placed, strict=True):
        moved[i] = position
    return moved


def label_ends(axes: "Axes", ends: Iterable[tuple[float, float, str, str]], limits: tuple[float, float]) -> None:
    """Write labels right of line ends, (x, y, text, colour); `limits` = the range of the linear y axis."""
    items = list(ends)
    height = axes.get_position().height * axes.figure.get_size_inches()[1] * 72.0  # type: ignore[union-attr]
    gap = 12.0 * (limits[1] - limits[0]) / height
    for (x, y, text, color), moved in zip(items, spread([y for _, y, _, _ in items], gap), strict=True):
        axes.annotate(
            text,
            xy=(x, y),
            xytext=(x, moved),
            textcoords="data",
            color=color,
            fontsize=8.5,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )


def grouped_bars(
    axes: "Axes",
    categories: Sequence[str],
    series: Sequence[tuple[str, str, Sequence[float | None]]],
    text: Callable[[float], str],
    room: float = 0.12,
) -> None:
    """Draw horizontal bars, a group a category from top to bottom, with their values written at the ends.

    `series` = (name, colour, a value a category or None); `text` gives a value with its unit; `room` is the
    part of the axis, relative to the longest bar, that is kept for the text.
    """
    thick = 0.8 / len(series)
    top = max((v for _, _, values in series for v in values if v is not None), default=1.0) or 1.0
    for index, (name, color, values) in enumerate(series):
        ys = [i - 0.4 + thick * (index + 0.5) for i in range(len(categories))]
        axes.barh(ys, [v or 0.0 for v in values], height=thick * 0.88, color=color, label=name)
        for y, value in zip(ys, values, strict=True):
            if value is not None:
                axes.text(max(value, 0.0) + top * 0.008, y, text(value), va="center", fontsize=8.0)
    axes.set_yticks(range(len(categories)), categories)
    axes.set_ylim(len(categories) - 0.45, -0.55)
    axes.set_xlim(0.0, top * (1.0 + room))
    axes.tick_params(axis="y", length=0, labelcolor=palette.INK)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def byte_ticks(axes: "Axes") -> None:
    """Put the ticks of an x axis of bytes at multiples of a power of two, in binary units."""
    top = axes.get_xlim()[1]
    step = 1 << max(0, int(top / 2.5).bit_length() - 1)
    axes.set_xticks(range(0, int(top) + 1, step))
    axes.xaxis.set_major_formatter(lambda v, _: units.size(v))


def fair_limit(values: Iterable[float]) -> float:
    """Return the largest value that still lets the others be seen: within 20 times the next smaller one."""
    ordered = sorted((v for v in values if v > 0.0), reverse=True)
    for larger, smaller in itertools.pairwise(ordered):
        if larger <= 20.0 * smaller:
            return larger
    return ordered[-1] if ordered else 1.0


def bars_height(categories: int, series: int) -> float:
    """Return the height in inches that `grouped_bars` of so many bars wants, axes and legend included."""
    return 1.1 + categories * (0.14 + 0.2 * series)
