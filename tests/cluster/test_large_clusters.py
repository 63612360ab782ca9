"""Clusters of 2,048 servers: made in a second, and walked once, not with every plan."""

import time
from collections.abc import Callable

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.registry import parse_strategy

SERVERS, GPUS = 2048, 8


def best_s(work: Callable[[int], object], times: int = 7) -> float:
    """Processor seconds of the fastest of some runs, since others may want the processor too."""
    found = []
    for i in range(times):
        begin = time.process_time()
        work(i)
        found.append(time.process_time() - begin)
    return min(found)


def test_a_cluster_is_made_within_a_second() -> None:
    """16,384 NICs."""
    cluster = load_cluster(f"h100x{SERVERS}")
    assert best_s(lambda _: cluster.zero_latency(), 2) < 1


@pytest.mark.parametrize("strategy", ["ideal", "hot-repair", "balance", "r2cc-allreduce", "adapcc"])
@pytest.mark.parametrize("dead", [False, True])
def test_plans_cost_what_their_groups_cost(strategy: str, dead: bool) -> None:
    """A pair well under 1 ms, an AllReduce of 128 ranks under 5 ms (measured: 0.2 and 1.3 to 4); no plan is asked for
    twice."""
    cluster = load_cluster(f"h100x{SERVERS}")
    down = 3 if dead else -1
    view = View(cluster, tuple(float(nic != down) for nic in range(len(cluster.nics))))
    chosen = parse_strategy(strategy)

    def pair(i: int) -> object:
        return chosen.plan(Request("send", (GPUS * (i + 1), GPUS * (i + 9)), 2**20), view)

    def rail(i: int) -> object:
        ranks = range((i + 4) % GPUS, 128 * GPUS, GPUS)
        return chosen.plan(Request("all_reduce", tuple(ranks), 2**30 + i), view)

    pair(SERVERS // 2)
    assert best_s(pair) < 1e-3
    assert best_s(rail) < 5e-3


def test_views_compare_by_value() -> None:
    """Equal ones have one hash, and what they say cannot be changed."""
    cluster = load_cluster("h100x4")
    one, other = (View(cluster, tuple(float(nic != 3) for nic in range(32))) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != View.healthy(cluster)
    assert one.degraded() == one.degraded([0, 1]) == [0]
    assert one.degraded([1, 2]) == []
    with pytest.raises(ValueError, match="read-only"):
        one.alive[3] = True


def test_clusters_compare_by_name_and_specification() -> None:
    cluster = load_cluster("h100x4")
    assert cluster.zero_latency() == cluster.zero_latency()
    assert cluster.zero_latency() != cluster
    assert hash(cluster.zero_latency()) == hash(cluster.zero_latency())
    assert load_cluster("h100x8") != cluster
