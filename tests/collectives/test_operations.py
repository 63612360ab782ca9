"""The collectives by name: nccl-tests' factors and spellings, bounds by hand, who is asked for what."""

import math

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.collectives.operations import OPERATIONS, Call, default_group, lower_bound, operation, wanted_after
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Event, Timeline

B, D = 1e10, 8_000_000  # NIC of cluster_of in bytes per second; bytes


def bound(cluster, op, group=None, lost=(), size=D, root=0):
    """The bound in units of D/B."""
    timeline = Timeline(tuple(Event(nic, fraction) for nic, fraction in lost))
    call = Call(group or default_group(op, cluster), size, root)
    return lower_bound(cluster, op, call, timeline) / (D / B)


def test_bus_factors_are_those_of_nccl_tests():
    """doc/PERFORMANCE.md, 8 ranks."""
    factors = {name: one.bus_factor(8) for name, one in OPERATIONS.items()}
    assert factors == {
        "all_reduce": 14 / 8,
        "all_gather": 7 / 8,
        "reduce_scatter": 7 / 8,
        "broadcast": 1,
        "reduce": 1,
        "all_to_all": 7 / 8,
        "send_recv": 1,
        "send": 1,
    }


def test_the_names_of_nccl_tests_are_known():
    assert operation("alltoall").name == "all_to_all"
    assert operation("sendrecv").name == "send_recv"
    with pytest.raises(InputError, match="scan: no collective that is known"):
        operation("scan")


def test_what_each_rank_must_have():
    """Ranks 4, 5, 6 with 9 bytes in all: blocks of 3."""
    group = (4, 5, 6)
    everything = 0b1110000
    assert wanted_after("all_gather", group, 9)(6, 3, 6) == 1 << 5
    assert wanted_after("reduce_scatter", group, 9)(5, 3, 6) == everything
    assert wanted_after("reduce_scatter", group, 9)(5, 6, 9) == 0
    assert wanted_after("broadcast", group, 9, 6)(4, 0, 9) == 1 << 6
    assert wanted_after("reduce", group, 9, 6)(6, 0, 9) == everything
    assert wanted_after("reduce", group, 9, 6)(4, 0, 9) == 0
    assert wanted_after("all_to_all", group, 9)(6, 9 + 6, 9 + 9) == 1 << 5
    assert wanted_after("all_to_all", group, 9)(6, 9 + 3, 9 + 6) == 0
    assert wanted_after("send_recv", group, 9)(4, 18, 27) == 1 << 6
    assert wanted_after("all_reduce", group, 9)(0, 0, 9) == 0


def test_bounds_of_a_healthy_cluster(cluster_of):
    """4 servers with 2 GPUs and 2 NICs each: a quarter of everything is a server's, its bandwidth is 2B."""
    cluster = cluster_of(servers=4, gpus=2, nics=2)
    assert bound(cluster, "all_gather") == pytest.approx(0.75 / 2)
    assert bound(cluster, "reduce_scatter") == pytest.approx(0.75 / 2)
    assert bound(cluster, "broadcast") == pytest.approx(1 / 2)
    assert bound(cluster, "reduce") == pytest.approx(1 / 2)
    assert bound(cluster, "all_to_all") == pytest.approx(2 * 0.75 / 2)
    assert bound(cluster, "send_recv") == pytest.approx(2 / 2)
    assert bound(cluster, "send") == pytest.approx(1 / 2)


def test_a_degraded_server_sets_the_bound_by_what_it_must_move(cluster_of):
    """X = 1/2 of server 1: twice the time for all, whose part of the work is the same on each server."""
    cluster = cluster_of(servers=4, gpus=2, nics=2)
    for op in OPERATIONS:
        if op != "all_reduce":
            assert bound(cluster, op, lost=[(2, 0.0)]) == pytest.approx(2 * bound(cluster, op))


def test_pairs_inside_a_server_cost_nothing(cluster_of):
    """Ranks server after server: one pair leaves each server. A group of one server: 0."""
    cluster = cluster_of(servers=4, gpus=2, nics=2)
    assert bound(cluster, "send_recv", group=tuple(range(8))) == pytest.approx(0.5)
    for op in OPERATIONS:
        if op != "all_reduce":
            assert bound(cluster, op, group=(0, 1)) == 0
            assert bound(cluster, op, size=0) == 0


def test_a_server_without_nics_has_no_bound_that_is_finite(cluster_of):
    assert math.isinf(bound(cluster_of(), "all_gather", lost=[(0, 0.0)]))


def test_a_group_is_bound_by_its_own_servers_alone(cluster_of):
    """AllReduce over 2 of 4 servers: D/C; what another server has lost does not matter, what its own have does."""
    cluster = cluster_of(servers=4, gpus=2, nics=2)
    assert bound(cluster, "all_reduce", group=(2, 3, 6, 7)) == pytest.approx(1 / 2)
    assert bound(cluster, "all_reduce", group=(2, 3, 6, 7), lost=[(4, 0.0), (5, 0.0)]) == pytest.approx(1 / 2)
    assert bound(cluster, "all_reduce", group=(2, 3, 6, 7), lost=[(2, 0.0)]) == pytest.approx(1)
    assert bound(cluster, "all_reduce", group=(2, 3), lost=[(2, 0.0)]) == 0


def test_send_recv_deals_the_ranks_to_the_servers_in_turn():
    """Every pair crosses between servers."""
    assert default_group("send_recv", load_cluster("h100"))[:4] == (0, 8, 1, 9)
    assert default_group("all_gather", load_cluster("h100")) == tuple(range(16))


def test_send_goes_from_a_server_to_the_next():
    """Inside the server where there is only one."""
    assert default_group("send", load_cluster("h100")) == (0, 8)
    assert default_group("send", load_cluster("h100x1")) == (0, 1)
