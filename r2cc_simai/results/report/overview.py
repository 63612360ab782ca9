"""The head of the report: what it answers, the key findings, and how simulation compares with reality."""

import math
from collections.abc import Mapping, Sequence

from r2cc_simai.results.report import labels, units
from r2cc_simai.results.report.document import Block, Cell, Section, Table, Text, columns
from r2cc_simai.results.report.failed_cases import said
from r2cc_simai.results.table import ERROR, Row
from r2cc_simai.results.tolerance import H100_TRAINING, LAB, Check, check

SLOWEST = 10
LONGEST = 100
"""Characters of a case's name in the table of wall times."""
KINDS = ("512 MiB and more", "16 to 256 MiB", "smaller sizes", "the iteration hit by a cut", "bytes per NIC")
"""Kinds of measured values, in the order in which the findings name them."""
MEASURED, OVER_X, TRAINED = "measured values", "the published overhead over X", "the published training overheads"
"""What simulated values are compared with."""


def overview(rows: Sequence[Row], notice: str = "") -> Section:
    """Return the opening section, `notice` in front; its findings are those of all sections, added by the caller."""
    results = [row for row in rows if row.metric != ERROR]
    blocks: list[Block] = [Text(notice)] if notice else []
    blocks += [
        Text(
            "A NIC, cable or port of a GPU cluster fails while a job runs. How much slower do "
            "collectives and training get under each fault-tolerance strategy, how near is that to the "
            "best that any algorithm could do, and does the simulator that says so agree with measurements?"
        ),
        Text(_extent(results) + (f" {said(len(rows) - len(results))}" if len(results) < len(rows) else "")),
    ]
    return Section("overview", "What this answers", tuple(blocks))


def accuracy(rows: Sequence[Row]) -> Section | None:
    """Return how far simulated values lie from measured and published ones; None without any."""
    checks = [c for c in map(check, rows) if c]
    if not checks:
        return None
    by_scenario: dict[tuple[str, str], list[Check]] = {}
    for item in checks:
        by_scenario.setdefault((item.row.scenario, item.row.backend), []).append(item)
    titles = columns("<scenario", "<backend", "compared", "within tolerance", "largest deviation", "<where")
    table = Table("Simulated against measured and published values", titles, tuple(map(_score, by_scenario.values())))
    others = [c for c in checks if not c.row.scenario.startswith(LAB)]  # an emulated cluster has a finding of its own
    return Section("accuracy", "Is the simulation right?", (table,), tuple(_findings(others)))


def reading(rows: Sequence[Row], timings: Mapping[str, float] | None) -> Section:
    """Return the closing section: definitions, sources, wall times."""
    blocks: list[Block] = [
        Text(
            "Overhead compares with `ideal`, NCCL's choice on the healthy cluster; the gap compares with "
            "`bound`, the lower bound in the failed state. `time` is the steady time of an iteration, "
            "`time_first` includes one-off costs, `time_cut` is the iteration that a failure hits; of "
            "training `iteration`, `iteration_cut`, and `tokens_per_s`, whose overhead counts dropped ranks. Sizes "
            "are binary (1 GiB = 2³⁰ B), bandwidths decimal (1 GB/s = 10⁹ B/s). Exact values are in "
            "`results.csv` and `results.parquet`."
        )
    ]
    sources: dict[str, int] = {}
    for row in rows:
        if row.measured is not None:
            sources[row.source] = sources.get(row.source, 0) + 1
    if sources:
        lines = tuple((Cell(source or units.DASH), Cell(f"{count}")) for source, count in sorted(sources.items()))
        blocks.append(Table("Sources of the measured and published values", columns("<source", "values"), lines))
    if timings:
        blocks.append(_timing_table(timings))
    return Section("reading", "How to read this", tuple(blocks))


def _extent(rows: Sequence[Row]) -> str:
    backends = sorted({row.backend for row in rows})
    strategies = sorted({row.strategy for row in rows}, key=labels.strategy_order)
    families = list(dict.fromkeys(labels.family_name(s) for s in strategies))
    return (
        f"{_count(len(rows), 'result')} of {_count(len({row.scenario for row in rows}), 'scenario')} on "
        f"{_count(len({row.cluster for row in rows}), 'cluster')}; strategies: "
        f"{', '.join(families) or units.DASH}; backends: {', '.join(backends) or units.DASH}."
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _score(checks: Sequence[Check]) -> tuple[Cell, ...]:
    worst = max(checks, key=lambda c: abs(c.deviation) / c.tolerance)
    inside = sum(c.ok for c in checks)
    row = worst.row
    where = (
        *([units.size(row.bytes)] if row.bytes else []),
        row.cluster,
        labels.strategy_name(row.strategy),
        labels.metric_name(row.metric),
    )
    return (
        Cell(row.scenario),
        Cell(row.backend),
        Cell(f"{len(checks)}"),
        Cell(f"{inside}", tone="ok" if inside == len(checks) else "bad"),
        Cell(units.error(worst.deviation, worst.unit), f"allowed ±{worst.tolerance:g}"),
        Cell(", ".join(where)),
    )


def _findings(checks: Sequence[Check]) -> list[str]:
    """Return how many values lie within tolerance, and the largest deviation of each kind of value."""
    texts = []
    for versus in (MEASURED, OVER_X, TRAINED):
        kinds: dict[str, list[Check]] = {}
        for item in checks:
            if _versus(item) == versus:
                kinds.setdefault(_kind(item), []).append(item)
        kinds = {kind: kinds[kind] for kind in sorted(kinds, key=_rank)}
        own = [item for items in kinds.values() for item in items]
        parts = [_largest(kind, items) for kind, items in kinds.items()]
        if own:
            inside = sum(item.ok for item in own)
            texts.append(
                f"Against {versus}, {inside} of {len(own)} simulated values are within tolerance. Largest "
                f"deviation: {'; '.join(parts)}."
            )
    return texts


def _versus(item: Check) -> str:
    if item.unit == "%":
        return MEASURED
    return TRAINED if item.row.scenario == H100_TRAINING else OVER_X


def _kind(item: Check) -> str:
    """Return what a value is, as far as tolerances differ."""
    row = item.row
    if row.scenario == H100_TRAINING:
        return f"{labels.strategy_name(row.strategy)} under {row.pattern}"
    if item.unit == "points":
        return f"backend {row.backend}"
    if labels.counter(row.metric):
        return KINDS[4]
    if row.metric == "time_cut":
        return KINDS[3]
    return {1.0: KINDS[0], 5.0: KINDS[1], 25.0: KINDS[2]}[item.tolerance]


def _rank(kind: str) -> tuple[int, str]:
    return KINDS.index(kind) if kind in KINDS else len(KINDS), kind.replace("flow", "")


def _largest(kind: str, items: Sequence[Check]) -> str:
    worst = max(items, key=lambda item: abs(item.deviation))
    return f"{kind} {units.error(worst.deviation, worst.unit)} (allowed ±{worst.tolerance:g})"


def _short(case: str) -> str:
    return case if len(case) <= LONGEST else f"{case[: LONGEST - 1]}…"


def _timing_table(timings: Mapping[str, float]) -> Table:
    slowest = sorted(timings.items(), key=lambda item: (-item[1], item[0]))[:SLOWEST]
    lines = [(Cell(f"all {len(timings)} cases"), Cell(units.time(math.fsum(timings.values()))))]
    lines += [(Cell(_short(case)), Cell(units.time(seconds))) for case, seconds in slowest]
    return Table("Wall time of the simulation, slowest cases", columns("<case", "wall time"), tuple(lines))
