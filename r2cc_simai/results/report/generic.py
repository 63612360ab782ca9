"""A section for any scenario that has none of its own: strategies by size, and their overhead."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from r2cc_simai.results.report import comparison, facets, labels, units
from r2cc_simai.results.report.by_size import by_size
from r2cc_simai.results.report.document import Block, Cell, Heading, Section, Table, Text, columns
from r2cc_simai.results.report.overhead_bars import overhead_bars
from r2cc_simai.results.table import Row

MANY = 8
"""From more cases than this on, overheads are shown as medians and ranges over the cases."""

FEW = 3
"""Up to this many cases each has a finding of its own."""

Case = tuple[str, str, str, str]
"""Cluster, workload, pattern, backend."""


def build(scenario: str, rows: Sequence[Row]) -> Section:
    """Return the section of one scenario."""
    cases: dict[Case, list[Row]] = {}
    for row in rows:
        cases.setdefault((row.cluster, row.workload, row.pattern, row.backend), []).append(row)
    blocks: list[Block] = [*(_plots_by_size(scenario, cases) or _plot(scenario, cases))]
    if len(cases) <= MANY:
        for case, own in cases.items():
            blocks += [Heading(_case_name(case, cases)), *_tables(own)]
    else:
        text = f"{len(cases)} cases, each at its largest size; the CSV holds every one of them."
        blocks += [Text(text), _summary(cases)]
    return Section(f"scenario-{slug(scenario)}", scenario, tuple(blocks), tuple(_findings(scenario, cases)))


def slug(text: str) -> str:
    """Return `text` as a part of a file name and of an anchor."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "-") else "-" for c in text.lower())


def _tables(rows: Sequence[Row]) -> list[Block]:
    metrics = dict.fromkeys((row.metric, row.unit) for row in rows)
    tables = [_pivot(metric, unit, [r for r in rows if r.metric == metric]) for metric, unit in metrics]
    if any(row.measured is not None for row in rows):
        leading = (comparison.SIZE, comparison.STRATEGY, comparison.METRIC)
        compared = [row for row in rows if row.measured is not None]
        tables.append(comparison.table("Against measured values", compared, leading))
    return [replace(table, facets=facets.of_rows(rows)) for table in tables]


def _pivot(metric: str, unit: str, rows: Sequence[Row]) -> Table:
    """Return strategies by sizes: value, and overhead as the remark."""
    sizes = sorted({row.bytes for row in rows})
    cells = {(row.strategy, row.bytes): row for row in rows}
    lines = [
        (Cell(labels.strategy_name(s)), *(_cell(cells.get((s, b)), unit) for b in sizes)) for s in _strategies(rows)
    ]
    name = labels.metric_name(metric).capitalize()
    bound = " and over the lower bound" if any(row.bound_gap_pct is not None for row in rows) else ""
    by = " by size" if any(sizes) else ""
    caption = f"{name}{by}, with its overhead over the healthy cluster{bound}"
    return Table(caption, columns("<strategy", *(units.size(b) if b else "" for b in sizes)), tuple(lines))


def _cell(row: Row | None, unit: str) -> Cell:
    if row is None:
        return Cell(units.DASH)
    notes = [units.more(row.overhead_pct)] if row.overhead_pct is not None else []
    if row.bound_gap_pct is not None and row.strategy != "ideal":
        notes.append(f"{units.more(row.bound_gap_pct)} over bound")
    return Cell(units.value(row.simulated, unit), " · ".join(notes))


def _plots_by_size(scenario: str, cases: dict[Case, list[Row]]) -> list[Block]:
    """Return overhead over size, a plot a case, where the cases are few and the sizes many."""
    if len(cases) > FEW:
        return []
    plots = []
    for number, (case, own) in enumerate(cases.items()):
        caption = f"Overhead of the steady time over the healthy cluster by size, {_case_name(case, cases)}."
        plot = by_size(f"by-size-{slug(scenario)}-{number}", caption, own)
        plots += [plot] if plot else []
    return [*plots]


def _plot(scenario: str, cases: dict[Case, list[Row]]) -> list[Block]:
    shown = {case: overheads for case, rows in cases.items() if (overheads := _overheads(rows))}
    if not shown:
        return []
    metrics = [row.metric for own in cases.values() for row in own if row.overhead_pct is not None]
    caption = f"Overhead over the healthy cluster, {labels.metric_name(_telling(metrics))}, largest size of each case"
    if len(shown) <= MANY:
        panels = [
            (_case_name(case, cases), {s: [v] for s, v in overheads.items()}) for case, overheads in shown.items()
        ]
        return [overhead_bars(f"overhead-{slug(scenario)}", f"{caption}.", panels)]
    caption += f": median of {len(shown)} cases; the lines reach from the least to the largest."
    return [overhead_bars(f"overhead-{slug(scenario)}", caption, [("", _by_strategy(shown.values()))])]


def _by_strategy(overheads: Iterable[dict[str, float]]) -> dict[str, list[float]]:
    """Return the overheads of all cases by strategy."""
    gathered: dict[str, list[float]] = {}
    for case in overheads:
        for strategy, overhead in case.items():
            gathered.setdefault(strategy, []).append(overhead)
    return gathered


def _summary(cases: dict[Case, list[Row]]) -> Table:
    gathered = _by_strategy(_overheads(rows) for rows in cases.values())
    lines = []
    for strategy in sorted(gathered, key=labels.strategy_order):
        values = gathered[strategy]
        numbers = (Cell(units.percent(v)) for v in (median(values), min(values), max(values)))
        lines.append((Cell(labels.strategy_name(strategy)), Cell(f"{len(values)}"), *numbers))
    titles = columns("<strategy", "cases", "median", "least", "largest")
    return Table("Overhead over the healthy cluster", titles, tuple(lines))


def _overheads(rows: Sequence[Row]) -> dict[str, float]:
    """Return each strategy's overhead in percent at the largest size.

    The iteration that a failure hits tells strategies apart where there is one, else the steady time does.
    """
    known = [row for row in rows if row.overhead_pct is not None]
    if not known:
        return {}
    metric = _telling([row.metric for row in known])
    largest = max(row.bytes for row in known if row.metric == metric)
    return {r.strategy: r.overhead_pct or 0.0 for r in known if r.metric == metric and r.bytes == largest}


def _telling(metrics: Sequence[str]) -> str:
    """Return the metric by which strategies are compared."""
    return next((metric for metric in ("time_cut", "time") if metric in metrics), metrics[0])


def _findings(scenario: str, cases: dict[Case, list[Row]]) -> list[str]:
    """Return a sentence a case, or one on the largest overheads where there are many cases."""
    metrics = [row.metric for own in cases.values() for row in own if row.overhead_pct is not None]
    if not metrics:
        return []
    what = f"{labels.metric_name(_telling(metrics))}, overhead over the healthy cluster"
    if len(cases) > FEW:
        gathered = _by_strategy(_overheads(own) for own in cases.values())
        worst = {strategy: max(values) for strategy, values in gathered.items()}
        return _sentence(f"{scenario}: {what}, each strategy's largest of {len(cases)} cases", worst)
    texts = []
    for case, own in cases.items():
        which = f" ({_case_name(case, cases)})" if len(cases) > 1 else ""
        texts += _sentence(f"{scenario}{which}: {what}", _overheads(own))
    return texts


def _sentence(head: str, overheads: dict[str, float]) -> list[str]:
    ordered = sorted((v, s) for s, v in overheads.items() if s != "ideal")
    listed = ", ".join(f"{labels.strategy_name(s)} {units.percent(v)}" for v, s in ordered)
    return [f"{head}: {listed}."] if listed else []


def _strategies(rows: Iterable[Row]) -> list[str]:
    return sorted({row.strategy for row in rows}, key=labels.strategy_order)


def _case_name(case: Case, cases: dict[Case, list[Row]]) -> str:
    """Return the parts of a case that differ between the cases; all of them when there is one case."""
    kept = [part for i, part in enumerate(case) if part and (len(cases) == 1 or len({c[i] for c in cases}) > 1)]
    return " · ".join(labels.short_pattern(part) for part in kept)
