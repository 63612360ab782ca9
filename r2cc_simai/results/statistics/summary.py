"""The distribution of a number over the draws, in a few numbers."""

import math
from dataclasses import dataclass

import numpy as np

from r2cc_simai.results.statistics.intervals import CONFIDENCE, Interval, mean_interval, quantile, quantile_interval
from r2cc_simai.results.statistics.samples import Floats


@dataclass(frozen=True)
class Summary:
    """A sample's numbers, in its own unit.

    mean = sum(x) / n, stderr = s / sqrt(n) with s^2 = sum((x - mean)^2) / (n - 1); p50, p90 and p99 are values that
    were drawn (`quantile`). What one draw cannot tell is None; so are mean and intervals where a value is infinite.
    """

    n: int
    mean: float | None
    stderr: float | None
    least: float
    p50: float
    p90: float
    p99: float
    largest: float
    mean_interval: Interval | None
    p99_interval: Interval | None


def summarise(values: Floats, confidence: float = CONFIDENCE) -> Summary:
    """The summary of at least one value, shape (n,); intervals of the given confidence."""
    n, finite = len(values), bool(np.isfinite(values).all())
    p50, p90, p99 = (float(quantile(values, q)) for q in (0.5, 0.9, 0.99))
    return Summary(
        n=n,
        mean=float(values.mean()) if finite else None,
        stderr=float(values.std(ddof=1)) / math.sqrt(n) if finite and n > 1 else None,
        least=float(values.min()),
        p50=p50,
        p90=p90,
        p99=p99,
        largest=float(values.max()),
        mean_interval=mean_interval(values, confidence),
        p99_interval=quantile_interval(values, 0.99, confidence),
    )
