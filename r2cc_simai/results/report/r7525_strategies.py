"""The r7525 servers after one of three NICs has failed: steady times, strategy by strategy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import comparison, labels, palette, plotting, units
from r2cc_simai.results.report.document import Block, Plot, Section, SectionKind, Text
from r2cc_simai.results.table import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

End = tuple[float, str, str]
"""The right end of a line: its value, its label, its colour."""

SLUG = "r7525-strategies"
_HEIGHT = 3.4


def claims(row: Row) -> bool:
    """Claim the times of the scenarios `r7525-balance`, `r7525-r2cc` and their like."""
    ours = row.scenario.startswith("r7525-") and not row.scenario.startswith("r7525-cut")
    return ours and row.metric in ("time", "time_first") and bool(row.simulated)


def build(rows: Sequence[Row]) -> Section:
    """Return the section: time over K where several K were run, and a table."""
    ordered = sorted(rows, key=lambda r: (-r.bytes, labels.strategy_order(r.strategy), r.metric, r.backend, r.pattern))
    largest = [row for row in ordered if row.bytes == ordered[0].bytes]
    blocks: list[Block] = [
        Text(
            "mlx5_2 of one server is down for the whole run. Model of the paper for X = 1/3: Balance 1.5 "
            "× healthy, R2CC-AllReduce 1 + 0.3 (1 + 1/K) × healthy."
        ),
        *_k_plot(largest),
        comparison.table(
            "Steady times, largest size first",
            ordered,
            (comparison.SIZE, comparison.STRATEGY, comparison.METRIC, comparison.BACKEND),
        ),
    ]
    findings = _headline(largest)
    return Section(SLUG, "r7525, one of three NICs down", tuple(blocks), tuple(findings))


def _headline(rows: Sequence[Row]) -> list[str]:
    best: dict[str, Row] = {}
    for row in rows:
        if row.metric == "time" and row.ideal and row.simulated:
            held = best.setdefault(labels.family(row.strategy), row)
            if row.simulated < (held.simulated or 0.0):
                best[labels.family(row.strategy)] = row
    if not best:
        return []
    parts = [f"{labels.strategy_name(r.strategy)} {_ratio(r)}" for r in best.values()]
    return [
        f"{units.size(rows[0].bytes)} AllReduce with one of three NICs of a server down, relative to "
        f"healthy: {', '.join(parts)}."
    ]


def _ratio(row: Row) -> str:
    assert row.simulated
    assert row.ideal
    measured = f" (measured {row.measured / row.ideal:.3f})" if row.measured else ""
    return f"{row.simulated / row.ideal:.3f}{measured}"


def _k_plot(rows: Sequence[Row]) -> list[Block]:
    """Return time over K with the other strategies as levels, where at least three K were run."""
    swept = _swept(rows)
    if len({k for k, _ in swept}) < 3:
        return []
    levels = {r.strategy: r for r in rows if r.metric == "time" and "k" not in labels.options(r.strategy)}
    caption = f"Time of R2CC-AllReduce over the number of pipelined chunks K, {units.size(rows[0].bytes)}."
    return [
        Plot(
            "r7525-k",
            caption,
            plotting.draw(_HEIGHT, lambda figure: _paint(figure, swept, list(levels.values()))),
        )
    ]


def _swept(rows: Sequence[Row]) -> list[tuple[int, Row]]:
    found = []
    for row in rows:
        chosen = labels.options(row.strategy)
        if row.metric == "time" and chosen.get("k", "").isdigit() and chosen.get("y", "x") == "x":
            found.append((int(chosen["k"]), row))
    return sorted(found, key=lambda item: (item[0], item[1].backend))


def _paint(figure: "Figure", swept: list[tuple[int, Row]], levels: Sequence[Row]) -> None:
    axes = figure.subplots()
    figure.subplots_adjust(left=0.085, right=0.83, top=0.9, bottom=0.15)
    ks = sorted({k for k, _ in swept})
    ends = [*_paint_swept(axes, swept), *_paint_levels(axes, levels, ks)]
    values = [v for r in [*levels, *(r for _, r in swept)] for v in (r.simulated, r.measured, r.ideal) if v]
    limits = (0.94 * min(values), 1.03 * max(values))
    axes.set_xscale("log", base=2)
    axes.set_xticks(ks, [str(k) for k in ks])
    axes.minorticks_off()
    axes.set_ylim(*limits)
    axes.yaxis.set_major_formatter(lambda v, _: units.time(v))
    axes.set_xlabel("K = pipelined chunks")
    axes.set_ylabel("time")
    x = ks[-1] * (ks[-1] / ks[0]) ** 0.06
    plotting.label_ends(axes, [(x, y, text, color) for y, text, color in ends], limits)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=4, borderaxespad=0.2)


def _paint_swept(axes: "Axes", swept: list[tuple[int, Row]]) -> list[End]:
    color = palette.strategy_colors(["r2cc-allreduce"])["r2cc-allreduce"]
    backends = sorted({r.backend for _, r in swept}, key=lambda b: (b != "flow", b))
    for backend, style in zip(backends, ("-", "--", ":"), strict=False):
        own = [(k, r.simulated or 0.0) for k, r in swept if r.backend == backend]
        axes.plot([p[0] for p in own], [p[1] for p in own], style, color=color, label=f"simulated, {backend}")
    _paint_measured(axes, sorted({(float(k), r.measured) for k, r in swept if r.measured}), "measured")
    return [(swept[-1][1].simulated or 0.0, "R2CC-AllReduce", color)]


def _paint_levels(axes: "Axes", levels: Sequence[Row], ks: list[int]) -> list[End]:
    colors = palette.strategy_colors([r.strategy for r in levels])
    ends = []
    for row in levels:
        axes.axhline(row.simulated or 0.0, color=colors[row.strategy])
        if row.measured:
            _paint_measured(axes, [(float(k), row.measured) for k in (ks[0], ks[-1])], "_measured")
        ends.append((row.simulated or 0.0, labels.strategy_name(row.strategy), colors[row.strategy]))
    healthy = next((r.ideal for r in levels if r.ideal), None)
    if healthy and not any(labels.family(r.strategy) == "ideal" for r in levels):
        axes.axhline(healthy, color=palette.BOUND, linestyle=(0, (4, 2.5)), lw=1.3)
        ends.append((healthy, "healthy", palette.BOUND))
    return ends


def _paint_measured(axes: "Axes", points: Sequence[tuple[float, float]], label: str) -> None:
    axes.plot(
        [p[0] for p in points],
        [p[1] for p in points],
        "o",
        color=palette.INK,
        markerfacecolor=palette.PAPER,
        markeredgewidth=1.4,
        label=label,
    )


KIND = SectionKind(claims, build)
