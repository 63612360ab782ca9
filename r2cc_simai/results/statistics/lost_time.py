"""GPU-hours that failures cost a month, and which failures cost them."""

from collections.abc import Sequence
from dataclasses import dataclass

from r2cc_simai.results.statistics.intervals import CONFIDENCE, Interval, mean_interval
from r2cc_simai.results.statistics.samples import GPU_H, HOURS, INCIDENTS, LOST, Draws, Sample

MONTH_H = 730.0
"""Hours of a month: 8,760 / 12."""


@dataclass(frozen=True)
class MonthlyLoss:
    """Expected GPU-hours lost a month and their interval; `share_pct` of all GPU-hours that the job holds."""

    gpu_h: float
    interval: Interval | None
    share_pct: float
    all_gpu_h: float


@dataclass(frozen=True)
class CauseLoss:
    """What one cause costs: GPU-hours a month, their share in percent of all that are lost (None: nothing is lost),
    how often it occurs a month, and GPU-hours lost per occurrence (None: it did not occur)."""

    cause: str
    gpu_h: float
    share_pct: float | None
    incidents: float
    gpu_h_per_incident: float | None


def monthly_sample(draws: Draws) -> Sample | None:
    """GPU-hours lost a month, one a draw: lost_gpu_h / hours * 730; None where the job is not a course."""
    lost, hours = draws.values.get(LOST), draws.values.get(HOURS)
    if lost is None or hours is None or lost.seeds != hours.seeds:
        return None
    return Sample(lost.seeds, lost.values / hours.values * MONTH_H)


def monthly_loss(draws: Draws, confidence: float = CONFIDENCE) -> MonthlyLoss | None:
    """The expected loss of a month: the mean of `monthly_sample` over the draws."""
    sample, held = monthly_sample(draws), draws.values.get(GPU_H)
    if sample is None or held is None:
        return None
    mean = float(sample.values.mean())
    all_gpu_h = held.total() / draws.values[HOURS].total() * MONTH_H
    return MonthlyLoss(mean, mean_interval(sample.values, confidence), 100 * mean / all_gpu_h, all_gpu_h)


def loss_by_cause(draws: Draws) -> list[CauseLoss]:
    """What each cause costs, the costliest first; empty where the job is not a course."""
    hours = draws.values.get(HOURS)
    causes = dict.fromkeys(draws.causes(LOST) + draws.causes(INCIDENTS))
    if hours is None:
        return []
    months = hours.total() / MONTH_H
    lost = {cause: _total(draws, f"{LOST}[{cause}]") for cause in causes}
    everything = sum(lost.values())
    found = [_cause(draws, cause, lost[cause], everything, months) for cause in causes]
    return sorted(found, key=lambda one: (-one.gpu_h, one.cause))


def ranked_causes(by_strategy: Sequence[Sequence[CauseLoss]]) -> list[str]:
    """The causes of all strategies, by their largest share under any of them."""
    largest: dict[str, float] = {}
    for losses in by_strategy:
        for one in losses:
            largest[one.cause] = max(largest.get(one.cause, 0.0), one.share_pct or 0.0)
    return sorted(largest, key=lambda cause: (-largest[cause], cause))


def _cause(draws: Draws, cause: str, lost: float, everything: float, months: float) -> CauseLoss:
    count = _total(draws, f"{INCIDENTS}[{cause}]")
    return CauseLoss(
        cause=cause,
        gpu_h=lost / months,
        share_pct=100 * lost / everything if everything > 0 else None,
        incidents=count / months,
        gpu_h_per_incident=lost / count if count else None,
    )


def _total(draws: Draws, metric: str) -> float:
    sample = draws.values.get(metric)
    return sample.total() if sample else 0.0
