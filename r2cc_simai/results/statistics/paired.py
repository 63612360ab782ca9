"""Strategies compared on the same draws.

All strategies meet the same failures (common random numbers), so what one draw costs under one of them is compared with
what the same draw costs under another: d_i = a_i - b_i. Draws differ much more than strategies do in one draw, and
Var(a - b) = Var(a) + Var(b) - 2 Cov(a, b): the interval of the mean of d is much narrower than those of both means say.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2cc_simai.results.statistics.intervals import CONFIDENCE, Interval, mean_interval
from r2cc_simai.results.statistics.samples import Sample

ALL_PAIRS_UP_TO = 5
"""Of more strategies each is compared with the best one alone."""


@dataclass(frozen=True)
class Difference:
    """`mean` of first minus second over the `n` draws that both have, less being better; in the samples' unit.

    `first_less_pct` and `second_less_pct`: percent of the draws in which one of them is less; the rest are equal.
    """

    first: str
    second: str
    n: int
    mean: float
    interval: Interval | None
    first_less_pct: float
    second_less_pct: float

    @property
    def better(self) -> str | None:
        """The strategy that is better on average; None where the interval holds 0 or there is none."""
        if self.interval is None or self.interval.holds(0.0):
            return None
        return self.first if self.mean < 0 else self.second


def difference(
    first: tuple[str, Sample], second: tuple[str, Sample], confidence: float = CONFIDENCE
) -> Difference | None:
    """The paired difference of two strategies' samples; None where no draw is finite in both."""
    other = dict(zip(second[1].seeds, second[1].values, strict=True))
    both = [(a, other[seed]) for seed, a in zip(first[1].seeds, first[1].values, strict=True) if seed in other]
    pairs = np.array([pair for pair in both if np.isfinite(pair).all()], dtype=np.float64).reshape(-1, 2)
    if not len(pairs):
        return None
    apart = pairs[:, 0] - pairs[:, 1]
    return Difference(
        first=first[0],
        second=second[0],
        n=len(apart),
        mean=float(apart.mean()),
        interval=mean_interval(apart, confidence),
        first_less_pct=100 * float((apart < 0).mean()),
        second_less_pct=100 * float((apart > 0).mean()),
    )


def differences(samples: Mapping[str, Sample], confidence: float = CONFIDENCE) -> list[Difference]:
    """All pairs of strategies, or each with the best where they are many; the one of less mean first, best ones first.

    Strategies without a draw that is drawn (a seed) are left out.
    """
    drawn = {name: sample for name, sample in samples.items() if any(seed is not None for seed in sample.seeds)}
    ranking = sorted(drawn, key=lambda name: float(drawn[name].values.mean()))
    found = [difference((a, drawn[a]), (b, drawn[b]), confidence) for a, b in _pairs(ranking)]
    return [one for one in found if one is not None]


def _pairs(ranking: Sequence[str]) -> list[tuple[str, str]]:
    if len(ranking) <= ALL_PAIRS_UP_TO:
        return list(itertools.combinations(ranking, 2))
    return [(ranking[0], other) for other in ranking[1:]]
