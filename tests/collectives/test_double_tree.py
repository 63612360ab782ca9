"""Double binary trees: their shape, what they leave, and when they are chosen."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.checker import check_schedule, check_trace
from r2cc_simai.collectives.double_tree import NO_PARENT, binary_tree, depths, double_tree
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.engine.run import Backend, Run, run_schedule
from r2cc_simai.failures.timeline import Event
from r2cc_simai.strategies import tuning
from r2cc_simai.strategies.base import Plan, Request
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.strategies.tuning import restricted_to

KIB, MIB = 2**10, 2**20


def planned(cluster: Cluster, size: int, strategy: str = "ideal", lost: dict[int, float] | None = None) -> Plan:
    view = View(cluster, tuple((lost or {}).get(nic.index, 1.0) for nic in cluster.nics))
    return parse_strategy(strategy).plan(Request("all_reduce", tuple(range(cluster.n_ranks)), size), view)


def is_ring(plan: Plan) -> bool:
    return all(one.cyclic for one in plan.schedule.passes)


def test_the_tree_of_eight_is_that_of_nccl() -> None:
    """src/graph/trees.cc draws 0 - 8.. for 14 nodes; of eight, 0 has 4, 4 has 2 and 6, the odd ones are leaves."""
    assert binary_tree(8) == (NO_PARENT, 2, 4, 2, 0, 6, 4, 6)


@given(n=st.integers(2, 300))
def test_both_trees_span_all_nodes_with_logarithmic_depth(n: int) -> None:
    """One root each, no cycle, at most two children, and depth at most log2(n) + 1."""
    for tree in double_tree(n):
        assert tree.count(NO_PARENT) == 1
        assert max(Counter(up for up in tree if up != NO_PARENT).values()) <= 2
        assert max(depths(tree)) <= n.bit_length()


@given(n=st.integers(2, 300))
def test_no_server_is_an_inner_node_of_both_trees_with_two_children(n: int) -> None:
    """Four edges in both trees together at most, so a NIC carries at most 2 D in each direction."""
    edges = Counter[int]()
    for tree in double_tree(n):
        for node, up in enumerate(tree):
            if up != NO_PARENT:
                edges.update((node, up))
    assert max(edges.values()) <= 4


@pytest.mark.parametrize("servers", range(2, 18))
@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("size", [0, 7, 100_003])
def test_every_contribution_arrives_once(servers: int, gpus: int, size: int, cluster_of, monkeypatch) -> None:
    """Any number of slices, odd sizes, dead NICs."""
    cluster = restricted_to(cluster_of(servers=servers, gpus=gpus, nics=2), "tree")
    for slices in (1, 3):
        monkeypatch.setattr(tuning, "SLICES", (slices,))
        for strategy, lost in (("ideal", {}), ("balance", {1: 0.0}), ("hot-repair", {1: 0.0})):
            assert check_schedule(planned(cluster, size, strategy, lost).schedule) is None


@pytest.mark.parametrize("after", [True, False])
def test_a_tree_that_does_not_wait_for_its_children_is_caught(after: bool, cluster_of) -> None:
    """The negative control."""
    schedule = planned(restricted_to(cluster_of(servers=4), "tree"), 1000).schedule
    passes = tuple(
        one if after else type(one)(one.channel, one.route, one.lo, one.hi, one.start, one.reduce_hops, one.copy_hops)
        for one in schedule.passes
    )
    violation = check_schedule(type(schedule)(schedule.n_ranks, schedule.bytes, schedule.routes, passes))
    assert (violation is None) == after


@given(cut=st.floats(0, 1.2), strategy=st.sampled_from(["hot-repair", "balance"]), latency_us=st.sampled_from([0, 20]))
def test_what_was_executed_is_an_all_reduce_whenever_the_cut_comes(
    cut: float, strategy: str, latency_us: int, cluster_of
) -> None:
    cluster = cluster_of(
        servers=5,
        nics=2,
        gpus=2,
        transport={"step_latency_us": latency_us, "chunk_kib": 32, "algorithms": ["tree"]},
        failover={"detection_ms": 0.02},
    )
    plan = planned(cluster, MIB + 1, strategy)
    provenance = _core.Provenance(plan.schedule.core)
    events = [_core.NicEvent(nic=4, fraction=0.0, time_s=cut * 2e-4)]
    args = core_cluster(cluster), plan.schedule.core, plan.binding.core, events, None
    assert _core.run_chunk(*args, provenance=provenance).status == _core.Status.DONE
    assert check_trace(plan.schedule, provenance) is None


def both(cluster: Cluster, size: int) -> tuple[Plan, list[Run], list[Run]]:
    """The plan that is chosen, its runs by both backends, and those of the ring."""
    chosen, ring = planned(cluster, size), planned(restricted_to(cluster, "ring"), size)
    runs = [[run_schedule(cluster, p.schedule, p.binding, (), b) for b in Backend] for p in (chosen, ring)]
    return chosen, *runs


@pytest.mark.parametrize("name", ["h100x2", "h100x3", "h100x4", "a100x7", "hpn-h800x5", "h100x9"])
def test_where_a_tree_is_chosen_it_is_faster(name: str) -> None:
    """From 1 B to 64 MiB, by both backends."""
    cluster = load_cluster(name)
    chosen = 0
    for exponent in range(0, 27, 2):
        plan, own, ring = both(cluster, 2**exponent)
        if is_ring(plan):
            continue
        chosen += 1
        for mine, others in zip(own, ring, strict=True):
            assert mine.elapsed_s < others.elapsed_s
    assert chosen >= 5


@pytest.mark.parametrize("servers", [2, 4, 9, 16, 17])
def test_a_tree_is_chosen_for_its_latency_alone(servers: int) -> None:
    """Small AllReduces on trees, large ones on rings, one change between them; without latency rings."""
    cluster = load_cluster(f"h100x{servers}")
    rings = [is_ring(planned(cluster, 2**exponent)) for exponent in range(32)]
    assert rings == sorted(rings)
    assert not rings[10]
    assert rings[30]
    assert all(is_ring(planned(cluster.zero_latency(), 2**exponent)) for exponent in range(0, 32, 3))


def test_the_time_of_a_small_tree_is_that_of_its_steps() -> None:
    """h100x4: 15 us + 2 x 7 links of 1 us + 2 x 2 steps of 5 us = 49 us, where the ring's 62 steps take 109 us.

    `flow` counts a chunk as if its window limited it: up to 2 x 5/8 us for each pass between servers on the way.
    """
    _, (flow, chunk), (ring, _) = both(load_cluster("h100x4"), 1024)
    assert chunk.elapsed_s == pytest.approx(49e-6, rel=0.01)
    assert chunk.elapsed_s <= flow.elapsed_s * (1 + 1e-6)
    assert flow.elapsed_s <= chunk.elapsed_s + 6 * 2 * 5e-6 / 8
    assert ring.elapsed_s == pytest.approx(109e-6, rel=0.01)


def test_the_calibrated_r7525_and_the_ring_of_the_formulas_have_rings_alone() -> None:
    for name in ("r7525", "uniformx16"):
        assert is_ring(planned(load_cluster(name), 8))


def test_a_dead_nic_leaves_a_tree_on_the_others() -> None:
    """Balance at 64 KiB: 7 of 8 NICs, no traffic on the dead one, and nearly no time lost."""
    cluster = load_cluster("h100x4")
    lost = {3: 0.0}
    plan = planned(cluster, 64 * KIB, "balance", lost)
    assert not is_ring(plan)
    run = run_schedule(cluster, plan.schedule, plan.binding, (Event(3, 0.0),))
    healthy = planned(cluster, 64 * KIB)
    assert run.bytes.rx[3] == run.bytes.tx[3] == 0
    calm = run_schedule(cluster, healthy.schedule, healthy.binding)
    assert run.elapsed_s == pytest.approx(calm.elapsed_s, rel=0.02)
