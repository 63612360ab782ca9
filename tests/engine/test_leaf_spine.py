"""Leaf-spine fabrics with oversubscription, by both backends: what crosses the spine shares its leaf's uplink.

Servers of `GPUS` GPUs and NICs of 1e10 B/s, two servers a pod. A ring over all servers crosses the border of a pod once
per channel and direction with 2(p-1)/p D, so that with uplinks of 2B/o for two servers the time is max(1, o/2) times
that of one switch.
"""

import pytest

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.operations import default_group
from r2cc_simai.engine.run import Backend, Run, run_schedule
from r2cc_simai.failures.component import nics_of
from r2cc_simai.failures.timeline import Event
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.concurrent import plan_concurrent
from r2cc_simai.strategies.registry import parse_strategy

MIB, GIB = 2**20, 2**30
B = 1e10
GPUS = 4
BACKENDS = pytest.mark.parametrize("backend", list(Backend))
BY_RAIL = pytest.mark.parametrize("by_rail", [True, False])


def fabric(oversubscription: float, by_rail: bool = True) -> dict[str, object]:
    return {
        "kind": "leaf-spine",
        "servers_per_leaf": 2,
        "oversubscription": oversubscription,
        "rail_optimized": by_rail,
    }


def ran(
    cluster: Cluster,
    op: str,
    group: tuple[int, ...],
    size: int,
    backend: Backend,
    strategy: str = "ideal",
    dead: int = -1,
) -> Run:
    view = View(cluster, tuple(float(nic.index != dead) for nic in cluster.nics))
    plan = parse_strategy(strategy).plan(Request(op, group, size), view)
    events = (Event(dead, 0.0),) if dead >= 0 else ()
    return run_schedule(cluster, plan.schedule, plan.binding, events, backend)


@BACKENDS
@BY_RAIL
@pytest.mark.parametrize("oversubscription", [1, 2, 4, 8])
def test_an_allreduce_across_two_leaves_takes_what_the_uplink_allows(
    oversubscription: int, by_rail: bool, backend: Backend, cluster_of
) -> None:
    """T = 2(p-1)/p D/(4B) max(1, o/2)."""
    cluster = cluster_of(servers=4, gpus=GPUS, nics=GPUS, fabric=fabric(oversubscription, by_rail))
    run = ran(cluster, "all_reduce", tuple(range(16)), GIB, backend)
    assert run.elapsed_s == pytest.approx(2 * 15 / 16 * GIB / (GPUS * B) * max(1, oversubscription / 2), rel=0.002)


@BACKENDS
@BY_RAIL
def test_within_a_leaf_nothing_changes(by_rail: bool, backend: Backend, cluster_of) -> None:
    """An AllReduce over the two servers of a pod, whatever the uplinks carry."""
    cluster = cluster_of(servers=4, gpus=GPUS, nics=GPUS, fabric=fabric(64, by_rail))
    group = tuple(range(8, 16))
    there = cluster_of(servers=4, gpus=GPUS, nics=GPUS)
    alone, plain = (ran(one, "all_reduce", group, 64 * MIB, backend) for one in (cluster, there))
    assert alone.elapsed_s == plain.elapsed_s
    assert (alone.bytes.tx == plain.bytes.tx).all()


@BACKENDS
@pytest.mark.parametrize(("op", "factor"), [("all_gather", 3 / 4), ("broadcast", 1), ("send_recv", 1)])
def test_other_collectives(op: str, factor: float, backend: Backend, cluster_of) -> None:
    """One GPU a server, 4:1: half of B for the flow that leaves a pod of two, so twice the time of one switch.

    In send_recv one pair of each pod goes to the other one. A broadcast has one flow that crosses.
    """
    cluster = cluster_of(servers=4, fabric=fabric(4))
    run = ran(cluster, op, default_group(op, cluster), GIB, backend)
    assert run.elapsed_s == pytest.approx(2 * factor * GIB / B, rel=0.01)


@BACKENDS
def test_all_to_all_sends_half_of_all_over_the_spine(backend: Backend, cluster_of) -> None:
    """Each of two servers of a pod sends D/4 to each of two others: D in all over an uplink of 2B/o; 3/4 D/B at 1:1."""
    for oversubscription in (1, 2, 4, 8):
        cluster = cluster_of(servers=4, fabric=fabric(oversubscription))
        run = ran(cluster, "all_to_all", (0, 1, 2, 3), GIB, backend)
        assert run.elapsed_s == pytest.approx(max(3 / 4, oversubscription / 2) * GIB / B, rel=0.01)


@BACKENDS
def test_groups_of_a_rail_each_share_no_leaf_of_a_rail_optimised_fabric(backend: Backend, cluster_of) -> None:
    """Four groups, 4:1. Rails apart: twice the time for all. In one leaf a single group has all uplinks for itself."""
    groups = [tuple(range(rail, 16, GPUS)) for rail in range(GPUS)]
    for by_rail, running, slower in ((True, 4, 2), (True, 1, 2), (False, 4, 2), (False, 1, 1)):
        cluster = cluster_of(servers=4, gpus=GPUS, nics=GPUS, fabric=fabric(4, by_rail))
        requests = [Request("all_reduce", group, 64 * MIB) for group in groups[:running]]
        plan, _ = plan_concurrent(parse_strategy("ideal"), requests, View.healthy(cluster))
        run = run_schedule(cluster, plan.schedule, plan.binding, (), backend)
        assert run.elapsed_s == pytest.approx(slower * 2 * 3 / 4 * 64 * MIB / B, rel=0.01)


@BACKENDS
@BY_RAIL
def test_balance_over_an_oversubscribed_fabric(by_rail: bool, backend: Backend, cluster_of) -> None:
    """A dead NIC of four, 4:1. Rails apart: three uplinks of B/2 carry what four did, 4/3 of twice the time. One leaf
    for all: the uplinks carry as much as before, twice the time."""
    cluster = cluster_of(servers=4, gpus=GPUS, nics=GPUS, fabric=fabric(4, by_rail))
    run = ran(cluster, "all_reduce", tuple(range(16)), GIB, backend, "balance", dead=1)
    exact = 2 * 15 / 16 * GIB / (GPUS * B) * 2 * (4 / 3 if by_rail else 1)
    assert run.elapsed_s == pytest.approx(exact, rel=0.01)


def test_both_backends_agree(cluster_of) -> None:
    """All collectives, 8 servers in 4 pods, a dead NIC: within 2% where chunks are small."""
    cluster = cluster_of(servers=8, gpus=2, nics=2, fabric=fabric(4), transport={"chunk_kib": 256, "window_chunks": 8})
    for op in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"):
        flow, chunk = (
            ran(cluster, op, default_group(op, cluster), 256 * MIB, backend, "balance", dead=3) for backend in Backend
        )
        assert flow.elapsed_s == pytest.approx(chunk.elapsed_s, rel=0.02), op


@BACKENDS
def test_a_leaf_that_fails_takes_its_nics_with_it(backend: Backend, cluster_of) -> None:
    """A leaf of rail 0: both servers of its pod lose a NIC of two in mid-collective, and their traffic moves over."""
    cluster = cluster_of(servers=4, gpus=2, nics=2, fabric=fabric(1))
    assert nics_of(cluster, "leaf0") == [0, 2]
    plan = parse_strategy("hot-repair").plan(Request("all_reduce", tuple(range(8)), GIB), View.healthy(cluster))
    whole = 2 * 7 / 8 * GIB / (2 * B)
    events = tuple(Event(nic, 0.0, whole / 2) for nic in nics_of(cluster, "leaf0"))
    run = run_schedule(cluster, plan.schedule, plan.binding, events, backend)
    assert run.elapsed_s == pytest.approx(1.5 * whole, rel=0.02)
