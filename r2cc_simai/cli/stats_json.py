"""The statistics of a case as a JSON object; a number that does not exist, or is infinite, is null."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r2cc_simai.results.statistics import CauseLoss, Difference, Interval, MonthlyLoss, Study, Summary


def case_json(study: "Study") -> dict[str, Any]:
    """Everything that `Study` knows; `metrics` are in the units of the results table."""
    strategies = [_strategy(study, name) for name in study.draws]
    unit = "gpu_h_per_month" if study.is_course else "overhead_points"
    return {
        **asdict(study.case),
        "draws": study.seeds,
        "hours": study.hours,
        "strategies": strategies,
        "differences": [_difference(one, unit) for one in study.differences],
    }


def _strategy(study: "Study", name: str) -> dict[str, Any]:
    monthly = study.monthly.get(name)
    return {
        "strategy": name,
        "overhead_pct": {metric: _summary(own[name]) for metric, own in study.overhead.items() if name in own},
        "lost_per_month": None if monthly is None else _monthly(monthly),
        "draws_needed": study.needed(name),
        "causes": [_cause(one) for one in study.causes.get(name, [])],
        "metrics": {metric: _summary(one) for metric, one in study.summaries(name).items()},
    }


def _summary(one: "Summary") -> dict[str, Any]:
    numbers = {key: _finite(getattr(one, key)) for key in ("mean", "stderr", "least", "p50", "p90", "p99", "largest")}
    intervals = {"mean_interval": _ends(one.mean_interval), "p99_interval": _ends(one.p99_interval)}
    return {"n": one.n, **numbers, **intervals}


def _monthly(one: "MonthlyLoss") -> dict[str, Any]:
    return {
        "gpu_h": one.gpu_h,
        "gpu_h_interval": _ends(one.interval),
        "share_pct": one.share_pct,
        "all_gpu_h": one.all_gpu_h,
    }


def _cause(one: "CauseLoss") -> dict[str, Any]:
    return {
        "cause": one.cause,
        "gpu_h_per_month": one.gpu_h,
        "share_pct": one.share_pct,
        "incidents_per_month": one.incidents,
        "gpu_h_per_incident": one.gpu_h_per_incident,
    }


def _difference(one: "Difference", unit: str) -> dict[str, Any]:
    return {
        "first": one.first,
        "second": one.second,
        "n": one.n,
        f"first_minus_second_{unit}": one.mean,
        "interval": _ends(one.interval),
        "first_less_pct": one.first_less_pct,
        "second_less_pct": one.second_less_pct,
        "better": one.better,
    }


def _ends(interval: "Interval | None") -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
