"""Any schedule and binding with real bytes: every element of every rank's result is what the collective promises."""

import pytest

from r2cc_simai.collectives.binding import binding_of
from r2cc_simai.collectives.operations import OPERATIONS
from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.lab.work import Collective, Learn
from r2cc_simai.strategies.base import Plan, Request

RAILS = {"kind": "switch-per-rail"}


def outcomes(results):
    return {(r.error, r.wrong_elements, len(r.recoveries)) for r in results}


RIGHT = {(None, 0, 0)}


@pytest.mark.parametrize("op", ["sum", "max", "avg"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_every_type_and_reduction(dtype, op, loopback, cluster_of, planned):
    """AllReduce of a size that neither ranks nor units divide, three iterations with data of their own."""
    cluster = cluster_of(servers=3, nics=2, gpus=2, fabric=RAILS)
    collective = planned(cluster, "ideal", size=1_000_012, dtype=dtype, op=op, unit_bytes=20_000)
    assert outcomes(loopback(cluster).run(collective, 3)) == RIGHT


@pytest.mark.parametrize("op", list(OPERATIONS))
def test_every_collective(op, loopback, cluster_of, planned):
    cluster = cluster_of(servers=3, nics=2, gpus=2)
    assert outcomes(loopback(cluster).run(planned(cluster, "ideal", op, 600_000), 2)) == RIGHT


@pytest.mark.parametrize("fabric", ["switch-per-rail", "one-switch"])
@pytest.mark.parametrize(
    ("strategy", "lost"),
    [
        ("hot-repair", {1: 0.0}),
        ("balance", {1: 0.0}),
        ("balance:split=weighted", {1: 0.25}),
        ("r2cc-allreduce", {1: 0.0}),
        ("r2cc-allreduce:k=1", {1: 0.0, 2: 0.0}),
        ("r2cc-allreduce:y=opt", {1: 0.0, 3: 0.5}),
        ("optcc:k=8", {1: 0.0}),
        ("optcc:k=3,form=four", {1: 0.0}),
        ("optcc:k=2", {1: 0.0, 5: 0.0}),
    ],
)
def test_every_strategy_with_failures_that_are_known(strategy, lost, fabric, loopback, cluster_of, planned):
    """Four servers with three NICs: nothing runs over those that are dead."""
    cluster = cluster_of(servers=4, nics=3, gpus=2, fabric={"kind": fabric})
    collective = planned(cluster, strategy, size=1_200_000, lost=lost, unit_bytes=16_384)
    dead = frozenset(nic for nic, left in lost.items() if left == 0)
    assert outcomes(loopback(cluster).run(collective, 2, dead)) == RIGHT


def test_a_tree(loopback, cluster_of, planned):
    """NCCL's double tree, which it takes for small sizes."""
    cluster = cluster_of(servers=4, nics=2, gpus=2, transport={"step_latency_us": 1000, "algorithms": ["tree"]})
    assert outcomes(loopback(cluster).run(planned(cluster, "ideal", size=40_000), 2)) == RIGHT


def test_a_hop_with_several_lanes_of_unequal_shares(loopback, cluster_of):
    """A schedule that no strategy makes: one hop over three NIC pairs with 60, 30 and 10%, a broadcast by hand."""
    cluster = cluster_of(servers=2, nics=3)
    builder = ScheduleBuilder(n_ranks=2, bytes=4_000_000, chunk_bytes=2**17)
    builder.chain(builder.new_channel(), builder.route([0, 1]), 0, 4_000_000, 0, 1)
    binding = binding_of([(0, 0, 1, 0, 3, 0.6), (0, 0, 1, 1, 4, 0.3), (0, 0, 1, 2, 5, 0.1)])
    request = Request("broadcast", (0, 1), 4_000_000)
    assert outcomes(loopback(cluster).run(Collective.of(Plan(builder.build(), binding), request), 2)) == RIGHT


def test_a_new_plan_on_the_same_ranks(loopback, cluster_of, planned):
    """Healthy, then NIC 1 is known to be down, then it is back: three plans one after another."""
    cluster = cluster_of(servers=3, nics=3, gpus=1, fabric=RAILS)
    ranks = loopback(cluster)
    assert outcomes(ranks.run(planned(cluster, "ideal"), 2)) == RIGHT
    ranks.tell(Learn(1, False))
    assert outcomes(ranks.run(planned(cluster, "r2cc-allreduce", lost={1: 0.0}), 2, frozenset({1}))) == RIGHT
    ranks.tell(Learn(1, True))
    assert outcomes(ranks.run(planned(cluster, "ideal"), 2)) == RIGHT


def test_a_hop_without_nics(loopback, cluster_of):
    """The plan's mistake is an answer of one line, not a traceback, and the ranks live on."""
    cluster = cluster_of(servers=2)
    builder = ScheduleBuilder(n_ranks=2, bytes=4000, chunk_bytes=4000)
    builder.chain(builder.new_channel(), builder.route([0, 1]), 0, 4000, 0, 1)
    ranks = loopback(cluster)
    answers = ranks.prepare(Collective.of(Plan(builder.build(), binding_of([])), Request("broadcast", (0, 1), 4000)))
    assert [a.error for a in answers] == [
        f"rank {r}: lab: channel 0, rank 0 to rank 1: no NICs are bound to it" for r in range(2)
    ]
