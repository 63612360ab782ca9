"""A day with failures: checkpoint and restore beside failover, tokens trained over the hours."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import labels, palette, plotting, training_settings, units
from r2cc_simai.results.report.document import Block, Cell, Plot, Section, SectionKind, Table, Text, columns
from r2cc_simai.results.table import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCENARIO = "training-day"
_AT = re.compile(r"(?P<what>tokens|failure)\[(?P<key>[0-9.]+)\]")
_HEIGHT = 4.2
ALL = "all strategies"


def claims(row: Row) -> bool:
    """Claim the scenario."""
    return row.scenario == SCENARIO


def build(rows: Sequence[Row]) -> Section:
    """Return the section: effective training time over many drawn days, and the course of one of them."""
    first = rows[0]
    said = training_settings.parse(first.workload)
    blocks: list[Block] = [
        Text(
            f"NICs fail at drawn times: {first.pattern}. (Unless a scenario says otherwise, that is the rate at which "
            "network and NICs interrupted the training of Llama 3.) Under NCCL the job stops for detection, isolation "
            "and loading, and goes back to its last checkpoint, one every "
            f"{said.get('checkpoint_min', '?')} min at no cost; the failed server is replaced. AdapCC does without the "
            "replica of a failed NIC until the end of the day. The others go on, slower until the repair. A failure is "
            "that of a NIC of the first pipeline stage, where gradients are on the critical path; several at once are "
            "taken to add up."
        ),
        Text(f"Settings, chosen: {training_settings.prose(first.workload)}."),
        _table(rows, said.get("days", "")),
    ]
    courses = _courses(rows)
    if courses:
        failures = _failures(rows)
        caption = (
            f"Tokens that are behind those of a job without failures, over the day with most failures "
            f"({len(failures)}, dotted)."
        )
        blocks.append(Plot("training-day", caption, plotting.draw(_HEIGHT, lambda f: _paint(f, courses, failures))))
    return Section(SCENARIO, "A day with failures (Figure 21)", tuple(blocks), tuple(_findings(rows)))


def _table(rows: Sequence[Row], days: str) -> Table:
    lines = []
    for strategy in _strategies(rows):
        own = {row.metric: row.simulated for row in rows if row.strategy == strategy}
        share, error, least = (own.get(f"effective_time{name}") for name in ("", "_stderr", "_least"))
        lines.append(
            (
                Cell(labels.strategy_name(strategy)),
                Cell(_share(share), f"± {100 * error:.3f}" if error is not None else ""),
                Cell(units.DASH if share is None else units.time(86_400 * (1 - share))),
                Cell(_share(least)),
            )
        )
    titles = columns("<strategy", "effective training time", "lost a day", "worst day")
    return Table(f"Work done over that of a job without failures, mean of {days} drawn days", titles, tuple(lines))


def _share(number: float | None) -> str:
    return units.DASH if number is None else f"{100 * number:.2f}%"


def _courses(rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """Hours, and tokens behind the job without failures, by strategy."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        at = _AT.fullmatch(row.metric)
        if at and at["what"] == "tokens" and row.simulated is not None and row.ideal is not None:
            found.setdefault(row.strategy, []).append((float(at["key"]), row.ideal - row.simulated))
    return {strategy: found[strategy] for strategy in sorted(found, key=labels.strategy_order)}


def _failures(rows: Sequence[Row]) -> list[float]:
    """Hours at which something fails on the day that is shown; the same for all strategies."""
    hours = {row.metric: row.simulated for row in rows if row.metric.startswith("failure[")}
    return sorted(hour for hour in hours.values() if hour is not None)


def _paint(figure: "Figure", courses: dict[str, list[tuple[float, float]]], failures: Sequence[float]) -> None:
    panels = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.065, right=0.84, top=0.92, bottom=0.13, wspace=0.52)
    behind = {strategy: points[-1][1] for strategy, points in courses.items()}
    restarts = max(behind, key=lambda s: behind[s])
    rest = {s: points for s, points in courses.items() if s != restarts}
    for axes, shown, title in (
        (panels[0], courses, ALL),
        (panels[1], rest or courses, f"without {labels.strategy_name(restarts)}"),
    ):
        _paint_panel(axes, shown, failures, title if rest else ALL)


def _paint_panel(
    axes: "Axes", courses: dict[str, list[tuple[float, float]]], failures: Sequence[float], title: str
) -> None:
    colors = palette.strategy_colors(list(courses))
    for hour in failures:
        axes.axvline(hour, color=palette.MUTED, lw=0.8, linestyle=":")
    ends = []
    for strategy, points in courses.items():
        axes.plot([p[0] for p in points], [p[1] / 1e9 for p in points], color=colors[strategy])
        ends.append((points[-1][0] * 1.02, points[-1][1] / 1e9, labels.strategy_name(strategy), colors[strategy]))
    top = 1.06 * max(points[-1][1] / 1e9 for points in courses.values())
    limits = (0.0, max(top, 1.06 * max(p[1] / 1e9 for points in courses.values() for p in points), 1e-9))
    axes.set_ylim(*limits)
    axes.set_xlim(0.0, max(points[-1][0] for points in courses.values()))
    axes.set_xlabel("hour of the day")
    axes.set_ylabel("billion tokens behind")
    axes.set_title(title)
    plotting.label_ends(axes, ends, limits)


def _findings(rows: Sequence[Row]) -> list[str]:
    shares = {row.strategy: row.simulated for row in rows if row.metric == "effective_time"}
    parts = [
        f"{labels.strategy_name(s)} {units.time(86_400 * (1 - share))}"
        for s in _strategies(rows)
        if (share := shares.get(s)) is not None
    ]
    if not parts:
        return []
    return [
        f"A day with failures ({rows[0].cluster}, {rows[0].pattern}): training time lost a day, {', '.join(parts)}."
    ]


def _strategies(rows: Sequence[Row]) -> list[str]:
    return sorted({row.strategy for row in rows}, key=labels.strategy_order)


KIND = SectionKind(claims, build)
