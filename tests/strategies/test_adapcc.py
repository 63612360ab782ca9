"""AdapCC drops the ranks that a failure hits; the job goes on with those that are left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.checker import check_schedule
from r2cc_simai.collectives.operations import OPERATIONS, Call
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.runners.collective import Job, run_job
from r2cc_simai.runners.rows import job_rows, simulate
from r2cc_simai.strategies.adapcc import affected_ranks
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.registry import parse_strategy

MIB, GIB = 2**20, 2**30
BOTH = pytest.mark.parametrize("backend", list(Backend))


def job(cluster, strategy, *fails, size=64 * MIB, iterations=4, **more):
    """Iterations under `--fail` options."""
    timeline = parse_failures(fails, cluster)
    return run_job(cluster, parse_strategy(strategy), timeline, Job(size, iterations=iterations, **more))


def down(cluster, *nics):
    return View(cluster, tuple(0.0 if n.index in nics else 1.0 for n in cluster.nics))


@BOTH
def test_the_ring_shrinks(backend, cluster_of):
    """n = 4 servers of one rank, one drops out: 2(3-1)/3 D/B afterwards, a third of the ranks' work for each more."""
    cluster = cluster_of(servers=4)
    result = job(cluster, "adapcc", "server1.nic0@1e-3", backend=backend)
    assert [len(i.group) for i in result.iterations] == [3] * 4
    assert result.steady.time_s == pytest.approx(2 * 2 / 3 * 64 * MIB / 1e10, rel=0.01)
    assert result.work_factor == pytest.approx(4 / 3)
    assert result.steady.bytes.tx[1] == 0


@BOTH
def test_the_collective_that_is_hit_is_repeated_without_them(backend, cluster_of):
    """Aborted when both ends know, then once more from its start: t_fail + delay + T(n - 1)."""
    cluster = cluster_of(servers=4, failover={"detection_ms": 2, "notify_ms": 0.5, "migrate_ms": 0.5})
    result = job(cluster, "adapcc", "server1.nic0@4e-3", backend=backend)
    assert result.cut is result.iterations[0]
    assert result.cut.time_s == pytest.approx(4e-3 + 3e-3 + result.steady.time_s, rel=1e-6)


def test_a_new_communicator_costs_once(cluster_of):
    """rebuild_s is paid in the iteration that is hit."""
    cluster = cluster_of(servers=4)
    free, paid = (job(cluster, s, "server1.nic0@4e-3") for s in ("adapcc", "adapcc:rebuild_s=0.5"))
    assert paid.cut.time_s - free.cut.time_s == pytest.approx(0.5)
    assert paid.steady.time_s == free.steady.time_s


def test_a_repair_does_not_bring_them_back(cluster_of):
    """The group stays shrunk."""
    result = job(cluster_of(servers=4), "adapcc", "server1.nic0@1e-3..15e-3", iterations=6)
    assert [len(i.group) for i in result.iterations] == [3] * 6


def test_a_failure_at_time_0_drops_them_from_the_start(cluster_of):
    """No iteration is hit."""
    result = job(cluster_of(servers=4), "adapcc", "server1.nic0@0")
    assert result.cut is None
    assert [len(i.group) for i in result.iterations] == [3] * 4


def test_two_failures_drop_two(cluster_of):
    """One after the other."""
    result = job(cluster_of(servers=4), "adapcc", "server1.nic0@1e-3", "server3.nic0@60e-3", iterations=12)
    assert [result.iterations[0].group, result.iterations[-1].group] == [(0, 2, 3), (0, 2)]


def test_one_of_sixteen_gpus_on_h100():
    """2 x 8 H100, one NIC dead: 15 ranks are left over 7 NICs, and the same work takes 16/15 (R2CC paper's setting)."""
    cluster = load_cluster("h100")
    result = job(cluster, "adapcc", "server0.nic3@0", size=GIB, iterations=2)
    assert result.iterations[0].group == tuple(r for r in range(16) if r != 3)
    assert result.work_factor == pytest.approx(16 / 15)
    assert any("1 of 16 ranks dropped" in note and "1.067 times" in note for note in result.notes)
    assert result.steady.bytes.tx[3] == 0


def test_under_3d_parallelism_a_whole_replica_goes():
    """Replicas of 8 ranks (TP 8): one dead NIC costs a whole server's ranks, 16/8 of the time for the same work."""
    cluster = load_cluster("h100x4")
    result = job(cluster, "adapcc:dp_replica=8", "server1.nic3@1e-3", size=GIB, iterations=2)
    assert result.iterations[-1].group == tuple(r for r in range(32) if r // 8 != 1)
    assert result.work_factor == pytest.approx(32 / 24)


def test_replicas_must_divide_the_ranks(cluster_of):
    """Exit 2 in one line."""
    with pytest.raises(InputError, match="dp_replica=3 does not divide the 4 ranks"):
        job(cluster_of(servers=4), "adapcc:dp_replica=3")
    with pytest.raises(InputError, match="at least 1 rank"):
        parse_strategy("adapcc:dp_replica=0")


def test_nobody_left_ends_the_job(cluster_of):
    """Exit 3 with the reason, at the start and in the middle."""
    for when in ("0", "1e-3"):
        with pytest.raises(PartitionedError, match=r"only rank 1 is left without server0\.nic0"):
            job(cluster_of(servers=2), "adapcc", f"server0.nic0@{when}")


def test_the_root_of_a_broadcast_cannot_be_dropped(cluster_of):
    """Named in one line."""
    cluster = cluster_of(servers=3)
    with pytest.raises(PartitionedError, match="rank 1 is dropped, and it is the root of broadcast"):
        parse_strategy("adapcc").plan(Request("broadcast", (0, 1, 2), MIB, root=1), down(cluster, 1))


@given(dead=st.sets(st.integers(0, 11), max_size=4), replica=st.sampled_from([1, 2]))
def test_plans_reduce_every_contribution_of_those_that_are_left(dead, replica, cluster_of):
    """Exactly once, for any dead NICs of 3 x 4; the ranks dropped take no part."""
    cluster = cluster_of(servers=3, gpus=4, nics=4)
    strategy = parse_strategy(f"adapcc:dp_replica={replica}")
    view = down(cluster, *dead)
    group = strategy.members(tuple(range(12)), view)
    assert 12 - replica * len(dead) <= len(group) <= 12 - len(dead)
    plan = strategy.plan(Request("all_reduce", tuple(range(12)), MIB + 5), view)
    ranks = {int(rank) for route in plan.schedule.routes for rank in route}
    assert ranks <= set(group)
    wanted = OPERATIONS["all_reduce"].wanted(Call(group, MIB + 5))
    assert check_schedule(plan.schedule, wanted) is None


def test_no_bound_for_another_collective(cluster_of):
    """Fewer ranks reduce less: the bound of the whole group does not hold for them."""
    cluster = cluster_of(servers=4, nics=2)
    done = simulate(
        cluster, parse_strategy("adapcc"), parse_failures(["server1.nic0@0"], cluster), Job(MIB, iterations=2)
    )
    rows = job_rows(done, "x", nic_bytes=False)
    assert all(row.bound is None for row in rows)
    (factor,) = [row for row in rows if row.metric == "work_factor"]
    assert (factor.unit, factor.simulated) == ("1", pytest.approx(4 / 3))
    assert factor.overhead_pct == pytest.approx(100 / 3)


def test_the_ranks_that_a_dead_nic_affects(cluster_of):
    """A NIC per GPU: the GPU next to it. Two GPUs a NIC: both. No NIC left: all of the server."""
    assert affected_ranks(down(cluster_of(gpus=4, nics=4), 2, 5)) == {2, 5}
    assert affected_ranks(down(cluster_of(gpus=4, nics=2), 1)) == {1, 3}
    assert affected_ranks(down(cluster_of(gpus=4, nics=2), 2, 3)) == {4, 5, 6, 7}
    assert affected_ranks(View.healthy(cluster_of(gpus=4, nics=4))) == set()


def test_a_group_of_one_rail_keeps_it_and_others_are_not_touched(cluster_of):
    """Four groups with a rail each, NIC 1 of server 0 dead: group 1 goes on with two of three ranks on its own rail."""
    cluster = cluster_of(servers=3, gpus=4, nics=4)
    for rail in range(4):
        plan = parse_strategy("adapcc").plan(Request("all_reduce", (rail, rail + 4, rail + 8), MIB), down(cluster, 1))
        ranks = {rank for route in plan.schedule.routes for rank in route.tolist()}
        assert ranks == ({rail + 4, rail + 8} if rail == 1 else {rail, rail + 4, rail + 8})
        assert {nic % 4 for row in plan.binding.core.rows() for nic in row[3:5]} == {rail}
