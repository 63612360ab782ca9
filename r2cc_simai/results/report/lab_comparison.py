"""The emulated cluster beside its simulation: times, their ratios to healthy, and bytes per NIC, a section a lab."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import labels, palette, plotting, units
from r2cc_simai.results.report.document import (
    Block,
    Cell,
    Heading,
    Plot,
    Section,
    SectionKind,
    Table,
    Text,
    Tone,
    columns,
)
from r2cc_simai.results.table import Row
from r2cc_simai.results.tolerance import LAB, LAB_TIMES_PCT, check, lab_deviation_pct

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLUG = "lab"
CUT = "/cut"
CALIBRATED = {
    "calibrated_step": "for a step",
    "calibrated_base": "for a collective beside its steps and bytes",
    "calibrated_header": "around the payload of a packet",
}
"""The metrics that say what was calibrated, and what each means."""
TIMES = ("time", "time_cut")

_SPREAD = re.compile(r"lab: median of \d+, (?P<low>\S+) to (?P<high>\S+) ")


def claims(row: Row) -> bool:
    """Claim all rows of emulated clusters that have a simulated value."""
    return row.scenario.startswith(LAB) and row.simulated is not None


def build(rows: Sequence[Row]) -> Section:
    """Return the section: for each lab what was calibrated, times as bars and as a table, and bytes."""
    blocks: list[Block] = [
        Text(
            "Servers are network namespaces, NICs are veth pairs with rate limits, and cuts are real: every rank is a "
            "process that moves real bytes over TCP, and every element of every result is checked. Measured values are "
            "medians, with the least and the greatest of the repetitions."
        )
    ]
    clusters = list(dict.fromkeys(row.cluster for row in rows))
    findings: list[str] = []
    for cluster in clusters:
        own = [row for row in rows if row.cluster == cluster]
        blocks += [Heading(cluster)] if len(clusters) > 1 else []
        blocks += _lab(cluster, own)
        findings += _finding(cluster, own)
    return Section(SLUG, "Emulated cluster beside simulation", tuple(blocks), tuple(findings))


def _lab(cluster: str, rows: Sequence[Row]) -> list[Block]:
    calibrated = [row for row in rows if row.metric in CALIBRATED]
    parts = [f"{units.value(row.simulated, row.unit)} {CALIBRATED[row.metric]}" for row in calibrated]
    text = f"Calibrated from the healthy iterations alone: {'; '.join(parts)}." if parts else ""
    times = sorted((row for row in rows if row.metric in TIMES), key=_order)
    ratios = {_case(row): row for row in rows if row.metric == "ratio"}
    counted = [row for row in rows if labels.counter(row.metric) and row.measured is not None]
    blocks: list[Block] = [Text(text)] if text else []
    blocks += [_plot(cluster, times), _times(times, ratios)] if times else []
    return blocks + ([_bytes(counted)] if counted else [])


def _order(row: Row) -> tuple[object, ...]:
    known = row.pattern == "none" or all(part.endswith("@0") for part in row.pattern.split())
    return row.metric != "time", not known, labels.natural(row.pattern), labels.strategy_order(row.strategy)


def _case(row: Row) -> tuple[str, str]:
    return row.strategy, row.pattern


def _name(row: Row) -> str:
    failure = labels.short_pattern(row.pattern)
    hit = ", hit by the cut" if row.metric == "time_cut" else ""
    return f"{labels.strategy_name(row.strategy)}{hit}" + (f"\n{failure}" if failure != "none" else "")


def _plot(cluster: str, rows: Sequence[Row]) -> Plot:
    """Return bars, measured beside simulated, the measured ones with the spread of their repetitions."""
    series = [
        ("measured", palette.MEASURED, [row.measured for row in rows]),
        ("simulated", palette.SIMULATED, [row.simulated for row in rows]),
    ]
    height = plotting.bars_height(len(rows), len(series))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        figure.subplots_adjust(left=0.36, right=0.98, top=1 - 0.4 / height, bottom=0.5 / height)
        plotting.grouped_bars(axes, [_name(row) for row in rows], series, units.time)
        axes.set_xlabel("time of an iteration")
        axes.xaxis.set_major_formatter(lambda v, _: units.time(v))
        axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, borderaxespad=0.2)

    caption = f"Time of an iteration on the emulated cluster {cluster}, measured and simulated."
    return Plot(f"{SLUG}-{cluster}", caption, plotting.draw(height, paint))


def _times(rows: Sequence[Row], ratios: dict[tuple[str, str], Row]) -> Table:
    lines = []
    for row in rows:
        ratio = ratios.get(_case(row)) if row.metric == "time" else None
        lines.append(
            (
                Cell(labels.short_pattern(row.pattern)),
                Cell(labels.strategy_name(row.strategy)),
                Cell(_iteration(row)),
                Cell(units.value(row.measured, row.unit)),
                Cell(_spread(row)),
                Cell(units.value(row.simulated, row.unit)),
                _error(row),
                *(_ratio(ratio) if ratio is not None else [Cell(units.DASH)] * 2),
            )
        )
    titles = columns(
        *("<failure", "<strategy", "<iteration", "measured", "spread", "simulated", "error"),
        *("× healthy", "simulated"),
    )
    allowed = ", ".join(f"{labels.metric_name(metric)} ±{pct:g}%" for metric, pct in LAB_TIMES_PCT.items())
    return Table(f"Times, and their ratios to the healthy time. Aimed at: {allowed}", titles, tuple(lines))


def _ratio(row: Row) -> list[Cell]:
    assert row.measured is not None
    assert row.simulated is not None
    error = _error(row)
    return [Cell(units.ratio(row.measured)), Cell(units.ratio(row.simulated), error.text, error.tone)]


def _iteration(row: Row) -> str:
    return "hit by the cut" if row.metric == "time_cut" or row.scenario.endswith(CUT) else "steady"


def _error(row: Row) -> Cell:
    judged = check(row)
    tone: Tone = "muted" if judged is None else "ok" if judged.ok else "bad"
    return Cell(units.error(lab_deviation_pct(row)), tone=tone)


def _spread(row: Row) -> str:
    found = _SPREAD.match(row.source)
    if found is None:
        return units.DASH
    low, high = (units.value(float(found[end]), row.unit) for end in ("low", "high"))
    return f"{low} to {high}"


def _bytes(rows: Sequence[Row]) -> Table:
    """Return the NIC and direction that is furthest off in each case."""
    cases: dict[tuple[str, str, bool], list[Row]] = {}
    for row in sorted(rows, key=_order):
        cases.setdefault((*_case(row), row.scenario.endswith(CUT)), []).append(row)
    lines = []
    for (strategy, pattern, _), own in cases.items():
        worst = max(own, key=lambda row: abs(lab_deviation_pct(row) or 0.0))
        head = (labels.short_pattern(pattern), labels.strategy_name(strategy), _iteration(own[0]))
        values = (units.value(worst.measured, "B"), units.value(worst.simulated, "B"))
        where = labels.metric_name(worst.metric)
        lines.append((*map(Cell, (*head, where, *values)), _error(worst)))
    titles = columns("<failure", "<strategy", "<iteration", "<where", "measured", "simulated", "error")
    return Table("Bytes per NIC on the wire: the direction that is furthest off in each case", titles, tuple(lines))


def _finding(cluster: str, rows: Sequence[Row]) -> list[str]:
    judged = [found for row in rows if (found := check(row)) is not None]
    if not judged:
        return []
    parts = []
    for name, metrics in (("times", ("time",)), ("ratios to healthy", ("ratio",)), ("hit by a cut", ("time_cut",))):
        own = [one for one in judged if one.row.metric in metrics]
        if own:
            worst = max(own, key=lambda one: abs(one.deviation))
            parts.append(f"{name} {units.error(worst.deviation)} (aimed at ±{worst.tolerance:g}%)")
    inside = sum(one.ok for one in judged)
    return [
        f"Emulated cluster {cluster}, real bytes beside simulation: {inside} of {len(judged)} values within what is "
        f"aimed at; largest errors: {', '.join(parts)}."
    ]


KIND = SectionKind(claims, build)
