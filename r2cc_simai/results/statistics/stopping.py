"""How many draws are enough: a rule that ends a sweep's draws once the means are known well enough.

A rule that looks at the data and stops when an interval happens to be narrow stops too early too often: a small
spread that came by chance both narrows the interval and, since losses are skewed, goes with a mean that is too low.
Two things bound that. The rule is asked at the ends of batches alone, not after each draw, and not before `least`
draws; see docs/models.md for how often the interval then holds the truth.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from r2cc_simai.config import Strict
from r2cc_simai.results.statistics.intervals import CONFIDENCE, mean_interval
from r2cc_simai.results.statistics.samples import (
    EFFECTIVE_TIME,
    INCIDENTS,
    LOST,
    TELLING,
    Draws,
    Floats,
    Sample,
    gather,
)
from r2cc_simai.results.table import Row

OVERHEAD = "overhead_pct"
"""Name of the overhead of the metric that tells most of a case."""
COURSE_METRICS = (EFFECTIVE_TIME, LOST, INCIDENTS)
METRICS = (OVERHEAD, *COURSE_METRICS, *(m for m in TELLING if m not in COURSE_METRICS))
NOISE = 1e-9
"""What rounding leaves of a zero, in the metric's unit."""
_PART = re.compile(r"(lost_gpu_h|incidents)\[.+\]")


class Stop(Strict):
    """When a sweep draws no more: the interval of the mean of `metric` is narrow for every case and strategy.

    Narrow: half its width is at most `half_width_pct` percent of the mean, at `confidence`. Asked after every `batch`
    draws, from `least` draws on.
    """

    metric: str
    half_width_pct: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    confidence: Annotated[float, Field(ge=0.5, le=0.999)] = CONFIDENCE
    batch: Annotated[int, Field(ge=1)] = 100
    least: Annotated[int, Field(ge=2)] = 30

    @field_validator("metric")
    @classmethod
    def _known(cls, metric: str) -> str:
        if metric not in METRICS and not _PART.fullmatch(metric):
            allowed = ", ".join((*METRICS, f"{LOST}[CAUSE]", f"{INCIDENTS}[CAUSE]"))
            raise ValueError(f"{metric!r} is no metric of drawn failures (allowed: {allowed})")
        return metric

    @property
    def needs_course(self) -> bool:
        """Whether only a job over `hours` has the metric."""
        return self.metric.partition("[")[0] in COURSE_METRICS


def enough(rows: Sequence[Row], stop: Stop) -> bool:
    """Whether the rows of all draws so far are enough for `stop`.

    Every strategy of every case must be known well enough; what is not drawn (no seed), and a strategy all of whose
    cases failed, need no more draws. Values that are all zero are believed once something failed in at least `least`
    draws of their case: until then their zero may only say that nothing has happened yet. Without any drawn value:
    False.
    """
    judged = [
        (sample.values, active)
        for own in gather(row for row in rows if row.seed is not None).values()
        for active in [_active(own)]
        for draws in own.values()
        if (sample := _sample(draws, stop.metric)) is not None
    ]
    return bool(judged) and all(_narrow(values, active, stop) for values, active in judged)


def draws_needed(values: Floats, half_width_pct: float, confidence: float = CONFIDENCE) -> int | None:
    """About how many draws make half the width of the mean's interval that many percent of the mean.

    n = (z s / w)^2: z of the normal distribution for `confidence`, s the standard deviation of the values, w the half
    width wanted. None where fewer than two values, a mean of zero or an infinite value leave nothing to go by.
    """
    from scipy.special import ndtri

    if len(values) < 2 or not np.isfinite(values).all() or values.mean() == 0.0:
        return None
    wanted = abs(float(values.mean())) * half_width_pct / 100
    z = float(ndtri((1 + confidence) / 2))
    return max(1, math.ceil((z * float(values.std(ddof=1)) / wanted) ** 2))


def _narrow(values: Floats, active: int, stop: Stop) -> bool:
    if len(values) < stop.least:
        return False
    if np.abs(values).max() <= NOISE:
        return active >= stop.least
    interval = mean_interval(values, stop.confidence)
    mean = abs(float(values.mean()))
    return interval is not None and interval.half_width <= mean * stop.half_width_pct / 100


def _sample(draws: Draws, metric: str) -> Sample | None:
    if metric == OVERHEAD:
        return draws.overhead_pct[draws.telling] if draws.telling else None
    return draws.sample(metric)


def _active(own: Mapping[str, Draws]) -> int:
    """In how many draws of a case something failed: components did, or a strategy had an overhead."""
    seeds: set[int | None] = set()
    for draws in own.values():
        for sample in (draws.values.get(INCIDENTS), *draws.overhead_pct.values()):
            if sample is not None:
                seeds.update(seed for seed, value in zip(sample.seeds, sample.values, strict=True) if value > NOISE)
    return len(seeds)
