"""The healthy r7525 servers, from 8 bytes to 4 GiB: simulated beside measured."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import comparison, palette, plotting, units
from r2cc_simai.results.report.document import Plot, Section, SectionKind, Text
from r2cc_simai.results.table import Row
from r2cc_simai.results.tolerance import is_outlier, tolerance_pct

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCENARIO = "r7525-healthy"
_BACKEND_COLORS = (palette.SIMULATED, "#b45308", "#7c3aec")
_HEIGHT = 5.2


def claims(row: Row) -> bool:
    """Claim the times of scenario `r7525-healthy`."""
    return row.scenario == SCENARIO and row.metric == "time" and row.bytes > 0 and bool(row.simulated)


def build(rows: Sequence[Row]) -> Section:
    """Return the section: time over size with the error below, and a table."""
    ordered = sorted(rows, key=lambda row: (row.bytes, row.backend, row.strategy))
    leading = (comparison.SIZE, comparison.BACKEND)
    return Section(
        SCENARIO,
        "r7525, healthy: 8 B to 4 GiB",
        (
            Text(
                "Three servers with three 10 Gb/s NIC ports each, six ranks, NCCL AllReduce. Allowed: 1% "
                "from 512 MiB on, 5% from 16 MiB on, 25% below. A cross marks a measured value "
                "known to be an outlier."
            ),
            Plot(
                SCENARIO,
                "Above: time over buffer size, measured and simulated. Below: error of the simulation, "
                "the allowed range shaded.",
                plotting.draw(_HEIGHT, lambda figure: _paint(figure, ordered)),
            ),
            comparison.table("Time of an AllReduce by size", ordered, leading),
        ),
    )


def _paint(figure: "Figure", rows: Sequence[Row]) -> None:
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1.0))
    figure.subplots_adjust(left=0.085, right=0.985, top=0.98, bottom=0.105, hspace=0.1)
    backends = sorted({row.backend for row in rows}, key=lambda b: (b != "flow", b))
    _paint_measured(upper, rows)
    for backend, color in zip(backends, _BACKEND_COLORS, strict=False):
        own = [row for row in rows if row.backend == backend]
        upper.plot(
            [r.bytes for r in own],
            [r.simulated or 0.0 for r in own],
            color=color,
            label=f"simulated, {backend}",
        )
        judged = [(r.bytes, r.error_pct) for r in own if r.error_pct is not None and not is_outlier(r)]
        lower.plot([p[0] for p in judged], [p[1] for p in judged], "o-", color=color, lw=1.0, ms=3.5)
    _finish_upper(upper)
    _finish_lower(lower, rows)


def _paint_measured(axes: "Axes", rows: Sequence[Row]) -> None:
    for outlier, marker, label in ((False, "o", "measured"), (True, "x", "measured, outlier")):
        points = sorted({(r.bytes, r.measured) for r in rows if r.measured and is_outlier(r) == outlier})
        if points:
            axes.plot(
                [p[0] for p in points],
                [p[1] for p in points],
                marker,
                color=palette.MUTED,
                markerfacecolor=palette.PAPER,
                markeredgewidth=1.4,
                ms=6.0,
                label=label,
            )


def _finish_upper(axes: "Axes") -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda v, _: units.time(v))
    axes.minorticks_off()
    axes.set_ylabel("time")
    axes.legend(loc="upper left")


def _finish_lower(axes: "Axes", rows: Sequence[Row]) -> None:
    sizes = sorted({row.bytes for row in rows})
    edges = [float(s) for s in sizes]
    allowed = [tolerance_pct("time", s) for s in sizes]
    axes.fill_between(edges, [-a for a in allowed], allowed, step="mid", color=palette.BAND, linewidth=0, zorder=0.5)
    axes.axhline(0.0, color=palette.MUTED, lw=0.8)
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.6)
    largest = max([abs(r.error_pct) for r in rows if r.error_pct is not None] + [25.0])
    axes.set_ylim(-1.3 * largest, 1.3 * largest)
    axes.set_yticks([-25, -5, -1, 0, 1, 5, 25], ["−25", "−5", "−1", "0", "1", "5", "25"])
    axes.set_xticks(edges[::3], [units.size(s) for s in sizes[::3]])
    axes.minorticks_off()
    axes.set_ylabel("error (%)")
    axes.set_xlabel("size of the AllReduce's buffer")


KIND = SectionKind(claims, build)
