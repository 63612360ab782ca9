"""Clusters of 2,048 servers are walked once, not with every plan."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.registry import parse_strategy

SERVERS, GPUS = 2048, 8


def lines_of(work: Callable[[], object]) -> int:
    """Lines of Python that a call runs, each turn of a loop counted: its work, whoever else uses the processor."""
    count = 0

    def trace(_frame: object, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("strategy", ["ideal", "hot-repair", "balance", "r2cc-allreduce", "adapcc"])
@pytest.mark.parametrize("dead", [False, True])
def test_plans_cost_what_their_groups_cost(strategy: str, dead: bool) -> None:
    """A pair, and an AllReduce of 128 ranks, are as much work on 2,048 servers as on 256."""
    pairs, rails = zip(*(work_of_plans(servers, strategy, dead) for servers in (256, SERVERS)), strict=True)
    assert pairs[1] == pytest.approx(pairs[0], rel=0.01)  # what other tests have left in caches is a few lines
    assert rails[1] == pytest.approx(rails[0], rel=0.01)
    assert pairs[1] < SERVERS


def work_of_plans(servers: int, strategy: str, dead: bool) -> tuple[int, int]:
    """Lines run for a send and for an AllReduce of one rail, once the view keeps what is often asked of it."""
    cluster = load_cluster(f"h100x{servers}")
    down = 3 if dead else -1
    view = View(cluster, tuple(float(nic != down) for nic in range(len(cluster.nics))))
    chosen = parse_strategy(strategy)

    def pair(i: int) -> object:
        return chosen.plan(Request("send", (GPUS * (i + 1), GPUS * (i + 9)), 2**20), view)

    def rail(i: int) -> object:
        ranks = range((i + 4) % GPUS, 128 * GPUS, GPUS)
        return chosen.plan(Request("all_reduce", tuple(ranks), 2**30 + i), view)

    pair(100)
    rail(0)
    return lines_of(lambda: pair(1)), lines_of(lambda: rail(1))


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
