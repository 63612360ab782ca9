"""Tables of the section on drawn failures."""

from collections.abc import Iterable, Sequence

from r2cc_simai.results.report import labels, units
from r2cc_simai.results.report.document import Cell, Column, Facets, Table, columns
from r2cc_simai.results.report.drawn_words import MONTH, ends, gpu_h, name, small_percent
from r2cc_simai.results.statistics import Difference, Study, Summary
from r2cc_simai.results.statistics.lost_time import ranked_causes


def all_cases(found: Sequence[Study]) -> Table:
    """Return the mean of each strategy (a column) in each case (a line)."""
    strategies = _ordered({strategy for study in found for strategy in study.compared})
    lines = []
    for study in found:
        cells = [_mean(study, strategy) for strategy in strategies]
        lines.append((Cell(name(study, found)), Cell(f"{study.seeds:,}" if study.seeds else units.DASH), *cells))
    shown = [Column(labels.strategy_name(s), strategy=labels.family_name(s)) for s in strategies]
    caption = "Mean overhead over the healthy job; of jobs over hours also GPU-hours lost a month"
    return Table(caption, (*columns("<case", "draws"), *shown), tuple(lines))


def overheads(study: Study) -> list[Table]:
    """Return a table for each metric that has an overhead."""
    return [_overhead(study, metric) for metric in study.metrics]


def monthly(study: Study) -> Table:
    """Return what a course loses a month, and how many draws would tell it more exactly."""
    lines = []
    for strategy in _ordered(study.monthly):
        loss = study.monthly[strategy]
        lost = Cell(gpu_h(loss.gpu_h), ends(loss.interval, "gpu_h"))
        lines.append(
            (Cell(labels.strategy_name(strategy)), lost, Cell(small_percent(loss.share_pct)), _needed(study, strategy))
        )
    every = next(iter(study.monthly.values())).all_gpu_h
    titles = columns("<strategy", "GPU-hours lost", "of all", _aim(study))
    return Table(f"GPU-hours lost in a month of {MONTH}, of {gpu_h(every)}", titles, tuple(lines), _facets(study))


def causes(study: Study) -> Table:
    """Return which failures cost the GPU-hours: a line a cause, a column a strategy."""
    strategies = _ordered(study.causes)
    lines = []
    for cause in ranked_causes([study.causes[s] for s in strategies]):
        own = {s: one for s in strategies for one in study.causes[s] if one.cause == cause}
        frequency = max(one.incidents for one in own.values())
        cells = []
        for strategy in strategies:
            one = own.get(strategy)
            if one is None or one.share_pct is None:
                cells.append(Cell(units.DASH))
                continue
            each = "" if one.gpu_h_per_incident is None else f"{gpu_h(one.gpu_h_per_incident)} GPU-h each"
            cells.append(Cell(f"{one.share_pct:.1f}%", each))
        lines.append((Cell(cause), Cell(f"{frequency:.3g}"), *cells))
    shown = [Column(labels.strategy_name(s), strategy=labels.family_name(s)) for s in strategies]
    caption = "Which failures cost most: share of the lost GPU-hours, and loss for each"
    return Table(caption, (*columns("<cause", "a month"), *shown), tuple(lines), _facets(study))


def differences(study: Study) -> Table:
    """Return the strategies in pairs, compared on the same draws."""
    unit = "GPU-hours a month" if study.is_course else "points of overhead"
    titles = columns("<better on average", "<than", f"saves ({unit})", "better in", "worse in", "<certain")
    lines = tuple(_difference(one) for one in study.differences)
    return Table("Strategies on the same draws", titles, lines, _facets(study))


def _mean(study: Study, strategy: str) -> Cell:
    if strategy not in study.compared:
        return Cell(units.DASH)
    summary = study.overhead[study.metrics[0]].get(strategy) if study.metrics else None
    mean = small_percent(summary.mean) if summary and summary.mean is not None else units.DASH
    loss = study.monthly.get(strategy)
    return Cell(mean, f"{gpu_h(loss.gpu_h)} GPU-h" if loss else "")


def _overhead(study: Study, metric: str) -> Table:
    told = study.overhead[metric]
    compared = not study.is_course and metric == study.metrics[0]  # else the months tell how many draws are needed
    lines = []
    for strategy in _ordered(told):
        line = (Cell(labels.strategy_name(strategy)), Cell(f"{told[strategy].n:,}"), *_numbers(told[strategy]))
        lines.append((*line, _needed(study, strategy)) if compared else line)
    titles = ["<strategy", "draws", "mean", "p50", "p90", "p99", "worst", *([_aim(study)] if compared else [])]
    caption = f"Overhead over the healthy job: {labels.metric_name(metric)}"
    return Table(caption, columns(*titles), tuple(lines), _facets(study))


def _needed(study: Study, strategy: str) -> Cell:
    """About how many draws tell the mean as exactly as the column's title says."""
    count = study.needed(strategy)
    return Cell(units.DASH if count is None else f"{count:,}")


def _aim(study: Study) -> str:
    return f"draws for ±{study.half_width_pct:g}%"


def _numbers(one: Summary) -> list[Cell]:
    mean = Cell(units.DASH) if one.mean is None else Cell(small_percent(one.mean), ends(one.mean_interval, "percent"))
    p99 = Cell(_finite(one.p99), ends(one.p99_interval, "percent"))
    return [mean, Cell(_finite(one.p50)), Cell(_finite(one.p90)), p99, Cell(_finite(one.largest))]


def _difference(one: Difference) -> tuple[Cell, ...]:
    certain = Cell("yes", tone="ok") if one.better else Cell("no: the interval holds 0", tone="muted")
    interval = None if one.interval is None else type(one.interval)(-one.interval.high, -one.interval.low)
    return (
        Cell(labels.strategy_name(one.first)),
        Cell(labels.strategy_name(one.second)),
        Cell(gpu_h(-one.mean), ends(interval, "gpu_h")),
        Cell(f"{one.first_less_pct:.1f}%"),
        Cell(f"{one.second_less_pct:.1f}%"),
        certain if one.interval else Cell("one draw alone", tone="muted"),
    )


def _finite(value: float) -> str:
    return units.DASH if value == float("inf") else small_percent(value)  # nothing was done


def _facets(study: Study) -> Facets:
    case = study.case
    return {"scenario": (case.scenario,), "cluster": (case.cluster,), "backend": (case.backend,)}


def _ordered(strategies: Iterable[str]) -> list[str]:
    return sorted(strategies, key=labels.strategy_order)
