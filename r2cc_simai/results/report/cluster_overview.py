"""All servers of a large cluster as small squares, row by row, coloured by the worst that a NIC of theirs meets."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.results.report import palette, plotting
from r2cc_simai.results.report.cluster_states import States

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT = 0.15  # inches
_AREA = 1.5
_LARGEST = 0.17
_TEXT = 0.32
_SHARED = 0.4
"""Opacity of a server that only a switch of many servers hits."""


def overview_height(cluster: Cluster) -> float:
    """Inches that the overview takes, its line of text included."""
    rows, _, cell = _grid(len(cluster.servers))
    return rows * cell + _TEXT + 0.12


def all_servers(axes: "Axes", cluster: Cluster, states: States, bottom: float) -> None:
    """Draw the overview with its lower edge at `bottom` (inches)."""
    from matplotlib.collections import PolyCollection

    count = len(cluster.servers)
    rows, columns, cell = _grid(count)
    top = bottom + rows * cell
    worst = np.ones(count)
    np.minimum.at(worst, [nic.server for nic in cluster.nics], states.nic)
    alone = states.alone > 0
    for chosen, color, alpha in (
        (worst == 1, palette.WORKS, 1.0),
        ((worst > 0) & (worst < 1) & ~alone, palette.SLOWER, _SHARED),
        ((worst == 0) & ~alone, palette.DOWN, _SHARED),
        ((worst > 0) & (worst < 1) & alone, palette.SLOWER, 1.0),
        ((worst == 0) & alone, palette.DOWN, 1.0),
    ):
        boxes = [
            _corners(_LEFT + first * cell, top - (row + 1) * cell, (last - first) * cell, cell)
            for row, first, last in _runs(chosen, columns)
        ]
        axes.add_collection(PolyCollection(boxes, facecolors=color, edgecolors="none", alpha=alpha, zorder=2))
    width = 0.12 * cell * 72
    axes.hlines(
        [top - k * cell for k in range(rows + 1)], _LEFT, _LEFT + columns * cell, palette.PAPER, linewidth=width
    )
    axes.vlines([_LEFT + k * cell for k in range(columns + 1)], bottom, top, palette.PAPER, linewidth=width)
    axes.text(_LEFT, top + 0.14, _told(worst, alone), va="center", fontsize=8.0, color=palette.MUTED)


def _told(worst: NDArray[np.float64], alone: NDArray[np.bool_]) -> str:
    """The line above the squares: how many servers are hit, and what a pale square is where there are any."""
    hit, shared = int((worst < 1).sum()), int(((worst < 1) & ~alone).sum())
    text = f"All {len(worst):,} servers by number: {len(worst) - hit:,} healthy, {hit:,} hit"
    return text + (f" (pale: {shared:,} only by a switch that they share)" if shared else "")


def _grid(count: int) -> tuple[int, int, float]:
    """Rows, columns, and inches of a square."""
    width = plotting.WIDTH - 2 * _LEFT
    cell = min(_LARGEST, math.sqrt(width * _AREA / count))
    columns = max(1, int(width / cell))
    return math.ceil(count / columns), columns, cell


def _runs(chosen: NDArray[np.bool_], columns: int) -> Iterator[tuple[int, int, int]]:
    """Row, first column and the one behind the last, of neighbours in a row that are all chosen."""
    for row in range(math.ceil(len(chosen) / columns)):
        own = np.concatenate(([False], chosen[row * columns : (row + 1) * columns], [False])).astype(np.int8)
        steps = np.diff(own)
        firsts, lasts = np.nonzero(steps == 1)[0], np.nonzero(steps == -1)[0]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            yield row, first, last


def _corners(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
