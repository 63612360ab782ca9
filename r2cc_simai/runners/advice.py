"""The ranking of strategies for one question, and how it changes with the size of the buffer."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.bound import all_reduce_bound
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.results import Row, make_row
from r2cc_simai.strategies.auto import CANDIDATES
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.ideal import Ideal
from r2cc_simai.strategies.ranking import Ranked, rank
from r2cc_simai.units import parse_size

SMALLEST, LARGEST = 2**10, 2**34  # bytes: where crossovers are looked for
FINENESS = 2**0.25  # ratio to which a crossover size is found


@dataclass(frozen=True)
class Crossover:
    """From this size in bytes on, until the next one, the strategy is the fastest."""

    bytes: int
    strategy: str
    time_s: float | None


@dataclass(frozen=True, eq=False)
class Advice:
    """The answer: the ranking for `bytes`, the healthy time, the lower bound, and the best strategy by size."""

    cluster: Cluster
    pattern: str
    bytes: int
    ideal_s: float
    bound_s: float
    ranking: tuple[Ranked, ...]
    crossovers: tuple[Crossover, ...]


def advise(cluster: str, size: str, fail: tuple[str, ...], *, zero_latency: bool = False) -> Advice:
    """Ranks all strategies for a size in a known state of a cluster.

    Raises:
        InputError: no such cluster, size or component, or a failure that does not exist from the start.
        PartitionedError: the failures leave ranks without a path.
    """
    found = load_cluster(cluster)
    if zero_latency:
        found = found.zero_latency()
    timeline = parse_failures(fail, found)
    if any(event.at_bytes is not None or event.time_s > 0 for event in timeline.events):
        raise InputError("advise asks about what is known to be down: write --fail COMPONENT@0")
    view = View(found, tuple(float(f) for f in timeline.fractions(len(found.nics), 0.0)))
    count = parse_size(size)
    ranking = _ranked(view, count)
    if ranking[0].time_s is None:
        raise PartitionedError(ranking[0].why)
    ideal = rank((Ideal(),), _request(found, count), View.healthy(found))[0].time_s
    assert ideal is not None  # nothing fails on the healthy cluster
    bound = all_reduce_bound(found, count, timeline)
    return Advice(found, timeline.pattern, count, ideal, bound, tuple(ranking), tuple(_crossovers(view)))


def advice_rows(advice: Advice) -> list[Row]:
    """The ranking as rows of the results table (scenario `advise`), then the crossovers (scenario `crossover`)."""
    row = partial(
        make_row,
        cluster=advice.cluster.name,
        workload="all_reduce",
        pattern=advice.pattern,
        backend="flow",
        metric="time",
        unit="s",
    )
    ranking = [
        row(
            scenario="advise",
            strategy=one.strategy,
            bytes=advice.bytes,
            simulated=one.time_s,
            ideal=advice.ideal_s,
            bound=advice.bound_s,
            source=one.why,
        )
        for one in advice.ranking
    ]
    crossovers = [
        row(scenario="crossover", strategy=one.strategy, bytes=one.bytes, simulated=one.time_s)
        for one in advice.crossovers
    ]
    return ranking + crossovers


def _request(cluster: Cluster, count: int) -> Request:
    return Request("all_reduce", tuple(range(cluster.n_ranks)), count)


def _ranked(view: View, count: int) -> list[Ranked]:
    return rank(CANDIDATES, _request(view.cluster, count), view)


def _crossovers(view: View) -> list[Crossover]:
    """Where the best strategy changes between the smallest and the largest size, by bisection in steps of four."""
    points = [_best(view, SMALLEST * 4**i) for i in range(13)]
    found = [points[0]]
    for low, high in pairwise(points):
        if low.strategy != high.strategy:
            found.append(_first(view, low.bytes, high))
    return found


def _best(view: View, count: int) -> Crossover:
    fastest = _ranked(view, count)[0]
    return Crossover(count, fastest.strategy, fastest.time_s)


def _first(view: View, low: int, high: Crossover) -> Crossover:
    """The smallest size above `low` at which the strategy of `high` is the best, to within a factor of FINENESS."""
    while high.bytes / low > FINENESS:
        middle = _best(view, round((low * high.bytes) ** 0.5))
        if middle.strategy == high.strategy:
            high = middle
        else:
            low = middle.bytes
    return high
