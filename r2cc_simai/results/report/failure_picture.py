"""Failures over time: a bar for each outage, a lane for each component, and the bandwidth that is lost below them."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.compose import timeline_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.results.files import replace_file
from r2cc_simai.results.report import palette, plotting
from r2cc_simai.results.report.failure_lanes import FINEST, Group, Lane, bars_of, end_of, groups_of, told, unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LANE = 0.24  # inches
_LOSS = 0.95
_LONGEST_NAME = 34
_LETTER = 0.079  # inches that a letter of a label takes


def failure_svg(incidents: Sequence[Incident], cluster: Cluster, title: str, horizon_s: float | None = None) -> str:
    """Return the SVG document of failures over time: red is down, amber a rate that is left.

    The time axis ends at `horizon_s`, the length of the job in seconds, or behind the last change. Components are
    grouped by cause; where there are too many, the first of each cause are drawn and the others counted.
    """
    return plotting.draw(*_picture(incidents, cluster, title, horizon_s))


def write_failure_picture(
    path: Path, incidents: Sequence[Incident], cluster: Cluster, title: str, horizon_s: float | None = None
) -> None:
    """Write the picture of `failure_svg` to a `.svg` or a `.png` file.

    Raises:
        InputError: the file's name has another ending, or it cannot be written.
    """
    ending = path.suffix.lower()
    if ending not in (".svg", ".png"):
        raise InputError(f"{path}: a picture's name ends in .svg or .png")
    height, paint = _picture(incidents, cluster, title, horizon_s)
    data = plotting.draw_png(height, paint) if ending == ".png" else plotting.draw(height, paint).encode()
    try:
        replace_file(path, data)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be written'}") from None


def bandwidth_lost(incidents: Sequence[Incident], cluster: Cluster) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times in s, the first one 0, and the percentage of all NICs' bandwidth lost from each on, shape (n_changes,)."""
    rates = np.array([nic.rate for nic in cluster.nics])
    share = 100 * rates / rates.sum()
    left = np.ones(len(rates))
    times, lost = [0.0], [0.0]
    for event in timeline_of(incidents, cluster, "").events:
        change = share[event.nic] * (left[event.nic] - event.fraction)
        left[event.nic] = event.fraction
        if event.time_s > times[-1]:
            times.append(event.time_s)
            lost.append(lost[-1])
        lost[-1] += change
    return np.array(times), np.maximum(np.array(lost), 0.0)


def _picture(
    incidents: Sequence[Incident], cluster: Cluster, title: str, horizon_s: float | None
) -> tuple[float, Callable[["Figure"], None]]:
    """Height in inches, and what paints the figure."""
    groups = groups_of(incidents)
    rows = _rows(groups)
    end_s = end_of(incidents, horizon_s)
    with_loss = end_s > 0 and sum(isinstance(row, Lane) for row in rows) > 1
    top, bottom = 0.62, 0.5 + (_LOSS + 0.2 if with_loss else 0.0)
    height = top + bottom + _LANE * max(1, len(rows))

    def paint(figure: "Figure") -> None:
        widest = max((len(_label(row)) for row in rows), default=0)
        left = (0.25 + _LETTER * widest) / plotting.WIDTH
        plotting.heading(figure, title)
        span = (left, 0.8 - left)
        axes = figure.add_axes((span[0], bottom / height, span[1], 1 - (top + bottom) / height))
        _paint_lanes(axes, rows, end_s or 1.0)
        _paint_legend(figure, axes, incidents)
        last = axes
        if with_loss:
            last = figure.add_axes((span[0], 0.5 / height, span[1], _LOSS / height))
            _paint_loss(last, incidents, cluster, end_s)
        _time_axis([axes, last] if with_loss else [axes], end_s)
        if with_loss:
            axes.tick_params(axis="x", labelbottom=False)

    return height, paint


_Row = Lane | str  # a lane, or a line of text: the name of a cause, what is left out


def _rows(groups: Sequence[Group]) -> list[_Row]:
    rows: list[_Row] = []
    for group in groups:
        kinds = {incident.cause for lane in group.lanes for incident in lane.incidents}
        if len(groups) > 1 or kinds != {""}:
            rows.append(group.cause)
        rows += group.lanes
        if group.left_out:
            rows.append(f"and {group.left_out:,} more")
    return rows


def _label(row: _Row) -> str:
    name = row.component if isinstance(row, Lane) else row
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _paint_lanes(axes: "Axes", rows: Sequence[_Row], end_s: float) -> None:
    axes.set_ylim(max(1, len(rows)) - 0.4, -0.6)
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    if not rows:
        axes.text(0.5, 0.5, "nothing fails", transform=axes.transAxes, ha="center", va="center", color=palette.MUTED)
    for y, row in enumerate(rows):
        if isinstance(row, Lane):
            _beside(axes, -0.012, y, _label(row), fontsize=8.5, color=palette.INK)
            _paint_bars(axes, y, row, end_s)
            _beside(axes, 1.012, y, told(row))
        else:
            style = {"fontstyle": "italic"} if row.startswith("and ") else {"fontweight": "bold"}
            _beside(axes, -0.012, y, _label(row), **style)


def _beside(axes: "Axes", x: float, y: float, text: str, **style: Any) -> None:
    """Text beside a lane: left of the axes, to the right-hand edge, where x < 0."""
    align = "right" if x < 0 else "left"
    whole = {"fontsize": 8.0, "color": palette.MUTED, **style}
    axes.text(x, y, text, transform=axes.get_yaxis_transform(), va="center", ha=align, parse_math=False, **whole)


def _paint_bars(axes: "Axes", y: int, lane: Lane, end_s: float) -> None:
    least = end_s / FINEST  # a bar that is narrower would not be seen
    for bar in bars_of(lane, end_s):
        wide = max(bar.end_s - bar.begin_s, least)
        color = palette.DOWN if bar.state == 0 else palette.SLOWER
        axes.barh(y, wide, 0.62, bar.begin_s, color=color, alpha=0.3 + 0.7 * bar.density, linewidth=0)
        if bar.state > 0 and bar.count == 1 and wide > 0.08 * end_s:
            middle, text = bar.begin_s + wide / 2, f"{100 * bar.state:.3g}%"
            axes.text(middle, y, text, ha="center", va="center", fontsize=7.5, fontweight="bold", color=palette.PAPER)
    if any(one.end_s > end_s for one in lane.incidents):
        color = palette.DOWN if lane.incidents[-1].state == 0 else palette.SLOWER
        axes.plot([end_s], [y], ">", color=color, markersize=5.5, clip_on=False)


def _paint_legend(figure: "Figure", axes: "Axes", incidents: Sequence[Incident]) -> None:
    from matplotlib.patches import Patch

    kinds = [
        Patch(color=color, label=label)
        for color, label, shown in (
            (palette.DOWN, "down", any(one.state == 0 for one in incidents)),
            (palette.SLOWER, "slower (rate left)", any(one.state > 0 for one in incidents)),
        )
        if shown
    ]
    if kinds:
        figure.legend(
            handles=kinds, loc="lower left", bbox_to_anchor=(-0.005, 1.0), bbox_transform=axes.transAxes, ncols=2
        )


def _paint_loss(axes: "Axes", incidents: Sequence[Incident], cluster: Cluster, end_s: float) -> None:
    times, lost = bandwidth_lost(incidents, cluster)
    seen = times <= end_s
    xs, ys = np.append(times[seen], end_s), np.append(lost[seen], lost[seen][-1])
    axes.fill_between(xs, ys, step="post", color=palette.MEASURED, alpha=0.5, linewidth=0)
    axes.plot(xs, ys, drawstyle="steps-post", color=palette.INK, linewidth=1.0 if len(xs) < 150 else 0.4)
    axes.set_ylim(0, 1.15 * max(float(ys.max()), 1e-9))
    axes.locator_params(axis="y", nbins=3)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _beside(axes, 1.012, axes.get_ylim()[1] / 2, "bandwidth of all\nNICs lost (%)")


def _time_axis(panels: Sequence["Axes"], end_s: float) -> None:
    scale, name = unit_of(end_s) if end_s > 0 else (1.0, "")
    for axes in panels:
        axes.set_xlim(0, end_s or 1.0)
        ticks = _ticks(end_s / scale) if end_s > 0 else [0.0]
        axes.set_xticks([tick * scale for tick in ticks], [f"{tick:g}" for tick in ticks])
    panels[-1].set_xlabel(f"time ({name})" if name else "time")


def _ticks(end: float) -> list[float]:
    """About eight round numbers from 0 to `end`."""
    power = 10.0 ** math.floor(math.log10(end / 8))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if end / (factor * power) <= 10)
    return [round(k * step, 12) for k in range(int(end / step * (1 + 1e-9)) + 1)]
