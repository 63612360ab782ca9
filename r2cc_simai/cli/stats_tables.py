"""The statistics of a case as tables on the terminal."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from r2cc_simai.cli import show

if TYPE_CHECKING:
    from r2cc_simai.results.statistics import Difference, Interval, Study


def print_study(study: "Study") -> None:
    """Print what was drawn, then the tables that the case has."""
    case = study.case
    what = [case.scenario, case.cluster, case.workload, case.pattern, case.backend]
    typer.echo(", ".join(part for part in what if part))
    hours = f" of {study.hours:g} h" if study.hours is not None else ""
    interval = f"{study.seeds} draws{hours}; in brackets the {100 * study.confidence:g}% interval"
    typer.echo(f"{interval if study.seeds else f'not drawn: one run{hours}'}\n")
    for metric in study.metrics:
        _overhead(study, metric)
    if study.monthly:
        _monthly(study)
    if study.causes:
        _causes(study)
    if study.differences:
        _differences(study)
    _needed(study)


def _overhead(study: "Study", metric: str) -> None:
    lines = []
    for strategy, one in study.overhead[metric].items():
        ends = [_number(one.mean), _ends(one.mean_interval), _number(one.stderr)]
        ends += [_number(value) for value in (one.p50, one.p90, one.p99)]
        ends += [_ends(one.p99_interval), _number(one.largest)]
        lines.append([strategy, f"{one.n}", *ends])
    columns = ("strategy", "n", "mean", "", "std. error", "p50", "p90", "p99", "", "largest")
    show.table(f"Overhead over the healthy job, of {metric} (%)", columns, lines)


def _monthly(study: "Study") -> None:
    lines = [
        [strategy, _number(one.gpu_h), _ends(one.interval), _number(one.share_pct)]
        for strategy, one in study.monthly.items()
    ]
    every = next(iter(study.monthly.values())).all_gpu_h
    columns = ("strategy", "lost (GPU-h)", "", "of all (%)")
    show.table(f"GPU-hours lost a month of 730 h, of {every:,.0f}", columns, lines)


def _causes(study: "Study") -> None:
    lines = [
        [
            strategy,
            one.cause,
            _number(one.gpu_h),
            _number(one.share_pct),
            _number(one.incidents),
            _number(one.gpu_h_per_incident),
        ]
        for strategy, losses in study.causes.items()
        for one in losses
    ]
    columns = ("strategy", "cause", "lost a month (GPU-h)", "share (%)", "incidents a month", "lost each (GPU-h)")
    show.table("Which failures cost most", columns, lines, text=2)


def _needed(study: "Study") -> None:
    counts = {strategy: study.needed(strategy) for strategy in study.compared}
    told = [f"{strategy} {count}" for strategy, count in counts.items() if count is not None]
    if told:
        typer.echo(f"Draws for a mean within ±{study.half_width_pct:g}% of itself, about: {', '.join(told)}\n")


def _differences(study: "Study") -> None:
    unit = "GPU-h a month" if study.is_course else "points of overhead"
    columns = ("first", "second", "n", "first - second", "", "first better in (%)", "second better in (%)", "better")
    lines = [list(_difference(one)) for one in study.differences]
    show.table(f"On the same draws ({unit})", columns, lines, text=2)


def _difference(one: "Difference") -> Iterator[str]:
    yield from (one.first, one.second, f"{one.n}", _number(one.mean), _ends(one.interval))
    yield from (_number(one.first_less_pct), _number(one.second_less_pct), one.better or "not told apart")


def _ends(interval: "Interval | None") -> str:
    return "" if interval is None else f"[{_number(interval.low)}, {_number(interval.high)}]"


def _number(value: float | None) -> str:
    """Four significant digits, without an exponent where people would not write one."""
    if value is None or math.isinf(value):
        return show.NONE if value is None else "inf"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
