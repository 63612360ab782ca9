"""Draws docs/images/overhead.svg from the results of `r2cc-simai sweep`: `python tools/docs_picture.py RUN_FOLDER`.

Left: overhead over the lost bandwidth X for 8 servers, by simulation, with the closed form and the lower bound.
Right: an AllReduce of 4 GiB on three real servers, measured and simulated.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
from docs_rows import BARS, Rows

from r2cc_simai.results.report import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "overhead.svg"
SERVERS = 8
LINES = (("balance", "Balance"), ("r2cc-allreduce:k=128", "R2CC-AllReduce"), ("optcc:k=128", "OptCC"))
LOST = {0.125: "1/8", 0.25: "1/4", 0.375: "3/8", 0.5: "1/2"}
LOOK = {
    "svg.hashsalt": "r2cc-simai",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": palette.MUTED,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": palette.GRID,
    "text.color": palette.INK,
    "xtick.color": palette.INK,
    "ytick.color": palette.INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
}


def main(folder: Path) -> None:
    """Draws the picture."""
    matplotlib.use("svg")
    from matplotlib import pyplot

    rows = Rows(folder)
    with matplotlib.rc_context(LOOK):  # type: ignore[arg-type]
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.3), width_ratios=(1, 1.25), layout="constrained")
        _overhead(left, rows)
        _bars(right, rows)
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(PICTURE, metadata={"Date": None, "Creator": None})


def _overhead(axes: "Axes", rows: Rows) -> None:
    colors = palette.strategy_colors([strategy for strategy, _ in LINES])
    for strategy, label in LINES:
        flow, chunk = (
            [rows.figure7(SERVERS, x, strategy, backend).overhead_pct or 0.0 for x in LOST]
            for backend in ("flow", "chunk")
        )
        axes.plot([*LOST], flow, color=colors[strategy], lw=2.2, zorder=3)
        axes.plot([*LOST], chunk, "o", color=colors[strategy], mfc="white", ms=7, zorder=4)
        _name(axes, label, flow[-1], colors[strategy])
    published = [rows.published_overhead(SERVERS, x) for x in LOST]
    axes.plot([*LOST], published, "x", color=palette.INK, ms=6, mew=1.6, zorder=5)
    bound = [rows.bound_overhead(SERVERS, x) for x in LOST]
    axes.plot([*LOST], bound, "--", color=palette.BOUND, lw=1.6)
    _name(axes, "lower bound", bound[-1] - 6, palette.BOUND)  # below the label of OptCC, which lies on it
    axes.plot([], [], color=palette.MUTED, lw=2.2, label="simulated, flow")
    axes.plot([], [], "o", color=palette.MUTED, mfc="white", ms=7, label="simulated, chunk")
    axes.plot([], [], "x", color=palette.INK, ms=6, mew=1.6, label="R2CC closed form")
    axes.legend(loc="upper left")
    axes.set_xticks([*LOST], [*LOST.values()])
    axes.set_xlim(0.1, 0.7)
    axes.set_ylim(0, 108)
    axes.set_title("AllReduce overhead when one of 8 servers\nloses a part of its bandwidth (%)")
    axes.set_xlabel("lost part X of that server's bandwidth")


def _name(axes: "Axes", text: str, y: float, color: str) -> None:
    axes.annotate(text, (0.5, y), (9, 0), textcoords="offset points", color=color, va="center")


def _bars(axes: "Axes", rows: Rows) -> None:
    for i, bar in enumerate(reversed(BARS)):
        row = rows.bar(bar)
        assert row.measured is not None
        assert row.simulated is not None
        axes.barh(i + 0.19, row.measured, 0.36, color=palette.MEASURED, label="measured" if i == 0 else None)
        axes.barh(i - 0.19, row.simulated, 0.36, color=palette.SIMULATED, label="simulated (flow)" if i == 0 else None)
        end = max(row.measured, row.simulated)
        axes.text(end + 0.06, i, f"{row.error_pct:+.1f}%", va="center", color=palette.MUTED, fontsize=9)
    axes.set_yticks(range(len(BARS)), [bar.label for bar in reversed(BARS)])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.set_xlim(0, 4.6)
    axes.legend(loc="upper right")
    axes.set_title("4 GiB AllReduce on three r7525 servers, healthy\nand with one of three NICs of a server down (s)")
    axes.set_xlabel("seconds; in grey the error of the simulation")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
