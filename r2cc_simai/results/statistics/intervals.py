"""Bootstrap intervals of a mean and of a quantile, the same for the same values.

Mean: the bias-corrected and accelerated bootstrap (BCa; B. Efron, "Better bootstrap confidence intervals", Journal of
the American Statistical Association 82, 1987), which allows for the skew that losses have: most draws lose little, few
lose much. Beyond `BCA_UP_TO` values skew no longer matters and the percentile bootstrap is taken, since BCa leaves
out each value in turn, which costs n * n.

Quantile: the percentile bootstrap. It resamples the values that there are, so it cannot see beyond the largest. Where
the largest of n draws is below the quantile q with a probability q^n of more than half of 1 - confidence, there is no
upper end, and no interval is given: for p99 at 95% below 368 draws.

BCa counts how many resampled means are below the sample's. Draws often have few distinct values, so that many of those
means are equal but for rounding: they are rounded to `DIGITS`, lest the last bit decide.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from r2cc_simai.results.statistics.samples import Floats

CONFIDENCE = 0.95
RESAMPLES = 2000
BCA_UP_TO = 2000
SEED = 20
"""Of the resampling: intervals do not differ from call to call."""
DIGITS = 10
"""Decimals of means, relative to the largest value."""
_AT_ONCE = 1 << 21  # values that are resampled at a time: 16 MiB


@dataclass(frozen=True)
class Interval:
    """A confidence interval, in the unit of what it is about."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.high - self.low) / 2

    def times(self, factor: float) -> "Interval":
        """The interval of `factor` > 0 times the quantity."""
        return Interval(self.low * factor, self.high * factor)

    def holds(self, value: float) -> bool:
        """Whether the value is in it, ends included."""
        return self.low <= value <= self.high


def mean_interval(values: Floats, confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of the mean of what the n `values` are draws of; None for fewer than two, or one that is infinite.

    Equal values give an interval without width, which is all that they tell.
    """
    if not _differ(values):
        return _point(values)
    scale = float(np.abs(values).max())
    found = _bootstrap(values / scale, _mean, "BCa", confidence) if len(values) <= BCA_UP_TO else None
    found = found or _bootstrap(values / scale, _mean, "percentile", confidence)
    return None if found is None else found.times(scale)


def quantile_interval(values: Floats, q: float, confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of the quantile `q` (0 to 1); None where the values are too few to bound it, or one is infinite."""
    if not _differ(values):
        return _point(values)
    if max(q, 1.0 - q) ** len(values) > (1.0 - confidence) / 2:
        return None
    return _bootstrap(values, lambda x, axis: quantile(x, q, axis), "percentile", confidence)


def quantile(values: Floats, q: float | Floats, axis: int = -1) -> Any:
    """The smallest of the values that at least a share `q` of them do not exceed.

    The inverse of the empirical distribution, type 1 of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical
    packages", American Statistician 50, 1996.
    """
    return np.quantile(values, q, axis=axis, method="inverted_cdf")


def _mean(values: Floats, axis: int) -> Any:
    return np.round(np.mean(values, axis=axis), DIGITS)


def _differ(values: Floats) -> bool:
    return len(values) > 1 and bool(np.isfinite(values).all()) and float(np.ptp(values)) > 0.0


def _point(values: Floats) -> Interval | None:
    """The interval of values that do not differ, as far as there is one."""
    return Interval(float(values[0]), float(values[0])) if len(values) > 1 and np.isfinite(values).all() else None


def _bootstrap(
    values: Floats, statistic: Callable[..., Any], method: Literal["BCa", "percentile"], confidence: float
) -> Interval | None:
    from scipy.stats import bootstrap

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # BCa has no answer where the resampled means hardly differ: told by NaN
        found = bootstrap(
            (values,),
            statistic,
            n_resamples=RESAMPLES,
            batch=max(1, _AT_ONCE // len(values)),
            vectorized=True,
            confidence_level=confidence,
            method=method,
            rng=np.random.default_rng(SEED),
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    return Interval(low, high) if np.isfinite([low, high]).all() else None
