"""What the section on drawn failures says in words, and how it writes its numbers."""

import math
from collections.abc import Sequence

from r2cc_simai.results.report import labels, training_settings, units
from r2cc_simai.results.statistics import CONFIDENCE, MONTH_H, Interval, Study

METHOD = (
    "Failures are drawn; all strategies meet the same ones. Below a mean or p99 stands its "
    f"{100 * CONFIDENCE:g}% interval (bootstrap over the draws). p50, p90 and p99: so many percent of the draws cost "
    "at most that."
)


_JOB = 3  # its place among `_parts`


def name(study: Study, others: Sequence[Study]) -> str:
    """Return the parts of a case in which the cases differ; scenario and pattern where there is one case."""
    own, all_parts = _parts(study), [_parts(other) for other in others]
    short = list(own)
    short[_JOB] = _job_apart(study, others) or own[_JOB]
    different = [short[i] for i, part in enumerate(own) if part and len({parts[i] for parts in all_parts}) > 1]
    return " · ".join(different or own[0:3:2])


def extent(study: Study) -> str:
    """Return what was drawn, of which job on which cluster, and which draws are missing."""
    case = study.case
    size = f" of {units.size(case.bytes)}" if case.bytes else ""
    what = f"{_draws(study)} of `{case.pattern}` on {case.cluster}, {_job(case.workload)}{size}{_checkpoints(study)}"
    missing = [
        f"{study.seeds - len(sample.values):,} of {labels.strategy_name(strategy)}"
        for strategy, sample in study.compared.items()
        if len(sample.values) < study.seeds
    ]
    left_out = f" Left out, since these cases failed: {', '.join(missing)}." if missing else ""
    return f"{what}, backend {case.backend}.{left_out}"


def finding(study: Study, others: Sequence[Study]) -> str:
    """Return a sentence: what failures cost under each strategy, how many times the best one's cost, and why.

    It names the job where the same was drawn for others, too.
    """
    where = f"{study.case.cluster}{_apart(study, others)}"
    head = f"{study.case.scenario} ({where}, {_draws(study)} of `{study.case.pattern}`)"
    means = {s: float(sample.values.mean()) for s, sample in study.compared.items() if s != "ideal"}
    ranking = sorted(means, key=lambda s: (means[s], labels.strategy_order(s)))
    if not ranking:
        return f"{head}: the healthy job alone."
    what = "GPU-hours lost a month" if study.is_course else "mean overhead over the healthy job"
    listed = "; ".join(_told(study, strategy, means, ranking[0]) for strategy in ranking)
    return f"{head}: {what}, {listed}.{_undecided(study, ranking)}{_dominant(study, ranking[0])}"


def _apart(study: Study, others: Sequence[Study]) -> str:
    """Return what tells the job from those of others with the same failures."""
    case = study.case
    alike = [other for other in others if _parts(other)[:3] == _parts(study)[:3] and other.hours == study.hours]
    job = _job_apart(study, alike) if len({other.case.workload for other in alike}) > 1 else ""
    size = units.size(case.bytes) if len({other.case.bytes for other in alike}) > 1 and case.bytes else ""
    return "".join(f", {part}" for part in (job, size) if part)


def _job_apart(study: Study, others: Sequence[Study]) -> str:
    """Return the settings in which the job differs from those of others."""
    workloads = [other.case.workload for other in others]
    try:
        return training_settings.apart(study.case.workload, workloads, without=("hours",))
    except ValueError:
        return study.case.workload


def gpu_h(hours: float) -> str:
    """Return GPU-hours: `3,230`, `33.7`, `0.052`."""
    return (f"{hours:,.0f}" if abs(hours) >= 99.95 else _three_digits(hours)).replace("-", "−")


def small_percent(share: float) -> str:
    """Return a percentage with three significant digits, since overheads may be far below 1%: `0.00451%`."""
    if abs(share) >= 999.5:
        return units.percent(share)
    return _three_digits(share).replace("-", "−") + "%"


def _three_digits(number: float) -> str:
    """Return a number below 1,000 with three significant digits and no exponent; less than 1e-9 is a zero."""
    if abs(number) < 1e-9:
        return "0"
    places = 2 - math.floor(math.log10(abs(float(f"{number:.3g}"))))
    return f"{number:.{places}f}"


def ends(interval: Interval | None, written: str) -> str:
    """Return an interval whose ends are written as `gpu_h` or `small_percent`; nothing where there is none."""
    if interval is None:
        return ""
    write = {"gpu_h": gpu_h, "percent": small_percent}[written]
    return f"{write(interval.low).removesuffix('%')} to {write(interval.high)}"


def _parts(study: Study) -> tuple[str, ...]:
    case = study.case
    size = units.size(case.bytes) if case.bytes else ""
    hours = "" if study.hours is None else f"{study.hours:g} h"
    return (case.scenario, case.cluster, case.pattern, _job(case.workload), size, hours, case.backend)


def _job(workload: str) -> str:
    """Return the job in words, as far as it is written as the project writes jobs."""
    try:
        return training_settings.prose(workload, without=("hours",)) if workload else ""
    except ValueError:
        return workload


def _checkpoints(study: Study) -> str:
    workload = study.case.workload
    minutes = training_settings.parse(workload).get("checkpoint_min") if workload and study.is_course else None
    return f", a checkpoint every {minutes} min" if minutes else ""


def _draws(study: Study) -> str:
    hours = f" of {study.hours:g} h" if study.hours is not None else ""
    if not study.seeds:
        return f"one course{hours}" if study.is_course else "one run"
    return f"{study.seeds:,} draw{'' if study.seeds == 1 else 's'}{hours}"


def _told(study: Study, strategy: str, means: dict[str, float], best: str) -> str:
    told = f"{labels.strategy_name(strategy)} {_value(study, means[strategy])}"
    if strategy == best:
        return f"{told}{_sureness(study, best)}"
    if means[best] <= 0:
        return told
    times = float(f"{means[strategy] / means[best]:.3g}")
    return f"{told} ({'as much' if times == 1 else f'{times:,g} times as much'})"


def _value(study: Study, mean: float) -> str:
    return gpu_h(mean) if study.is_course else small_percent(mean)


def _sureness(study: Study, best: str) -> str:
    """The interval of the best strategy's mean, and its share of a month's GPU-hours."""
    if study.is_course:
        loss = study.monthly.get(best)
        if loss is None:
            return ""
        known = f"{ends(loss.interval, 'gpu_h')}, " if loss.interval else ""
        return f" ({known}{small_percent(loss.share_pct)} of all {loss.all_gpu_h:,.0f})"
    interval = study.overhead[study.metrics[0]][best].mean_interval
    return f" ({ends(interval, 'percent')})" if interval else ""


def _undecided(study: Study, ranking: Sequence[str]) -> str:
    """Which strategies these draws cannot tell from the best one."""
    best = ranking[0]
    pairs = [{one.first, one.second} for one in study.differences if one.better is None]
    same = [labels.strategy_name(other) for other in ranking[1:] if {best, other} in pairs]
    return f" These draws do not tell {labels.strategy_name(best)} from {' and '.join(same)}." if same else ""


def _dominant(study: Study, best: str) -> str:
    """The cause that costs most under the best strategy."""
    losses = [one for one in study.causes.get(best, []) if one.share_pct]
    if len(losses) < 2:
        return ""
    first = losses[0]
    return f" Under {labels.strategy_name(best)} {first.cause} costs most, {first.share_pct:.0f}% of it."


MONTH = f"{MONTH_H:g} h"
