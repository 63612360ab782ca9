"""Overhead and gap to the lower bound at a glance: scenarios by strategies."""

from collections.abc import Sequence
from statistics import mean, median

from r2cc_simai.results.report import facets, labels, units
from r2cc_simai.results.report.document import Cell, Column, Section, Table, Text, columns
from r2cc_simai.results.table import Row

SLUG = "overheads"
TELLING = ("effective_time", "tokens_per_s", "time_cut", "time", "iteration_cut", "iteration")
"""Metrics by which a scenario's strategies are compared; the first that it has."""
STOPPED = "stopped"
"""Metric of the time that a job stands still, which its overhead afterwards does not tell."""
IDEAL = "ideal"
Case = tuple[str, str, str, int | None, str, str]


def build(rows: Sequence[Row]) -> Section | None:
    """Return the section; None where nothing is compared with the healthy cluster."""
    known = [row for row in rows if row.overhead_pct is not None and row.metric in TELLING]
    compared = [row for row in known if labels.family(row.strategy) != IDEAL]
    if not compared:
        return None
    stopped = [row for row in rows if row.metric == STOPPED and row.simulated is not None]
    text = (
        "Overhead over the healthy cluster, each case at its largest size. Large: the median of a scenario's cases, "
        "of drawn failures the mean. "
        "Small: the least and the largest, how far the median lies above the lower bound, and how long a job stands "
        "still before that."
    )
    return Section(SLUG, "Overhead at a glance", (Text(text), _table(compared, stopped)), (), facets.of_rows(compared))


def _table(rows: Sequence[Row], stopped: Sequence[Row]) -> Table:
    families = sorted({labels.family(row.strategy) for row in rows}, key=labels.strategy_order)
    lines = []
    for scenario in dict.fromkeys(row.scenario for row in rows):
        own = [row for row in rows if row.scenario == scenario]
        metric = next(metric for metric in TELLING if any(row.metric == metric for row in own))
        chosen = _at_largest_size([row for row in own if row.metric == metric])
        halts = [row for row in stopped if row.scenario == scenario]
        cells = [_cell(_of(chosen, family), _of(halts, family)) for family in families]
        drawn = ", mean of draws" if _drawn(chosen) else ""
        lines.append((Cell(scenario, f"{labels.metric_name(metric)}{drawn}"), *cells))
    names = [labels.family_name(family) for family in families]
    titles = (*columns("<scenario"), *(Column(name, strategy=name) for name in names))
    return Table("Overhead by scenario and strategy", titles, tuple(lines))


def _drawn(rows: Sequence[Row]) -> bool:
    """Whether some failures are drawn: most draws cost little, so that their mean says more than their median."""
    return any(row.seed is not None for row in rows)


def _of(rows: Sequence[Row], family: str) -> list[Row]:
    return [row for row in rows if labels.family(row.strategy) == family]


def _at_largest_size(rows: Sequence[Row]) -> list[Row]:
    """Return of each case the rows at its largest buffer."""
    largest: dict[Case, int] = {}
    for row in rows:
        largest[_case(row)] = max(row.bytes, largest.get(_case(row), 0))
    return [row for row in rows if row.bytes == largest[_case(row)]]


def _case(row: Row) -> Case:
    return row.cluster, row.workload, row.pattern, row.seed, row.strategy, row.backend


def _cell(rows: Sequence[Row], stopped: Sequence[Row]) -> Cell:
    overheads = [row.overhead_pct for row in rows if row.overhead_pct is not None]
    if not overheads:
        return Cell(units.DASH, tone="muted")
    least, largest = units.percent(min(overheads)), units.percent(max(overheads))
    notes = [f"{least} to {largest}"] if least != largest else []
    gaps = [row.bound_gap_pct for row in rows if row.bound_gap_pct is not None]
    if gaps:
        notes.append(f"{units.more(median(gaps))} over bound")
    if stopped:
        notes.append(f"stops {units.time(median(row.simulated or 0.0 for row in stopped))}")
    middle = mean(overheads) if _drawn(rows) else median(overheads)
    return Cell(units.percent(middle), "\n".join(notes))
