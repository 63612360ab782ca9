"""Drawing when independent parts fail and are repaired, over a span of time.

Each part is an alternating renewal process: it works for an exponential time of mean MTTF, is repaired for a time R,
and works again; all work at time 0. Let the n parts be hit by one Poisson process of rate n/MTTF, each hit on a part
drawn evenly, and let a part that is being repaired ignore its hits. By the superposition theorem the hits of one part
are a Poisson process of rate 1/MTTF of its own, and since its times are memoryless the time from the end of a repair
to the next hit is exponential with mean MTTF: the process is the renewal process exactly, not to first order. In a
span H the number of hits is Poisson with mean nH/MTTF and their times are independent and even over (0, H), so the
work is that of the failures and not of the parts.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.errors import InputError

MOST_HITS = 1_000_000


@dataclass(frozen=True)
class Repair:
    """Distribution of repair times: `kind` fixed, exponential or lognormal (`sigma` of the logarithm), mean in s."""

    mean_s: float
    kind: str = "fixed"
    sigma: float = 0.0

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Repair times in s, shape (count,). A lognormal of mean m has mu = ln m - sigma^2/2."""
        if self.kind == "exponential":
            return random.exponential(self.mean_s, count)
        if self.kind == "lognormal":
            return random.lognormal(math.log(self.mean_s) - self.sigma**2 / 2, self.sigma, count)
        return np.full(count, self.mean_s)


@dataclass(frozen=True)
class Outages:
    """Outages in order of their begin: number of the part, begin and end in s, each of shape (n_outages,)."""

    part: NDArray[np.int64]
    begin_s: NDArray[np.float64]
    end_s: NDArray[np.float64]


def draw_outages(random: np.random.Generator, parts: int, mttf_s: float, repair: Repair, horizon_s: float) -> Outages:
    """The outages of `parts` equal parts that begin within `horizon_s`; the last repairs may end after it.

    Raises:
        InputError: more than a million hits are expected.
    """
    expected = parts * horizon_s / mttf_s
    if expected > MOST_HITS:
        raise InputError(
            f"{parts} parts that fail every {mttf_s / 3600:.4g} h give {expected:.3g} failures in "
            f"{horizon_s / 3600:.4g} h; at most {MOST_HITS:,} are drawn: shorten the job or lengthen the MTTF"
        )
    hits = int(random.poisson(expected))
    begin = np.sort(random.uniform(0.0, horizon_s, hits))
    part = random.integers(0, parts, hits)
    end = begin + repair.draw(random, hits)
    kept = _not_ignored(part, begin, end)
    return Outages(part[kept], begin[kept], end[kept])


def _not_ignored(part: NDArray[np.int64], begin: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which hits find their part working. Only parts with several hits are walked."""
    kept = np.ones(len(part), dtype=bool)
    seen, counts = np.unique(part, return_counts=True)
    busy_until = dict.fromkeys(seen[counts > 1].tolist(), 0.0)
    for i in np.nonzero(np.isin(part, seen[counts > 1]))[0].tolist():
        own = int(part[i])
        if begin[i] < busy_until[own]:
            kept[i] = False
        else:
            busy_until[own] = float(end[i])
    return kept


def shares_lost(outages: Outages, parts: int) -> Iterator[tuple[int, float, float, float]]:
    """Component, begin, end and rate that is left, where components have `parts` parts each that fail one by one.

    While k parts of a component are down it keeps 1 - k/parts. A time in which at least k are down is one incident of
    that state, so there are as many incidents as failures, and they last as long in all: a failure opens the incident
    of the count that it brings about, and a repair closes the one of the count that it ends.
    """
    by_component: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for part, begin, end in zip(outages.part.tolist(), outages.begin_s.tolist(), outages.end_s.tolist(), strict=True):
        by_component[part // parts].append((begin, end))
    for component, spans in by_component.items():
        begins = [(begin, True) for begin, _ in spans]
        open_since: list[float] = []
        for time_s, fails in sorted(begins + [(end, False) for _, end in spans]):
            if fails:
                open_since.append(time_s)
            else:
                left = 1.0 - len(open_since) / parts
                yield component, open_since.pop(), time_s, left
