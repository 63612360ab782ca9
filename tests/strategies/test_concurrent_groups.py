"""Planning per server over all concurrent communicators: 16 servers, tensor parallelism 8, so eight data-parallel
groups of 16 ranks that own one rail each.

One dead NIC of eight is X = 1/8 for all of them under Balance (8/7), but 2 for the groups whose rails share a NIC under
hot repair (design: planning is per server, not per group).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Event
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.concurrent import plan_concurrent, siblings
from r2cc_simai.strategies.registry import parse_strategy

SERVERS, GPUS, SIZE = 16, 8, 2**28
GIB = 2**30
BACKENDS = pytest.mark.parametrize("backend", list(Backend))
FABRICS = pytest.mark.parametrize("preset", ["h100", "hpn-h800"])  # one switch, a switch per rail


def data_parallel(servers: int, tensor_parallel: int) -> list[tuple[int, ...]]:
    """The groups across servers of eight GPUs."""
    ranks = range(servers * GPUS)
    return [tuple(rank for rank in ranks if rank % tensor_parallel == first) for first in range(tensor_parallel)]


def ran(
    cluster: Cluster,
    strategy: str,
    groups: Sequence[tuple[int, ...]],
    size: int,
    lost: Mapping[int, float],
    how: Backend,
) -> np.ndarray:
    """When each of some groups has ended an AllReduce, in units of 2(p-1)/p D/B with B the group's own NICs."""
    view = View(cluster, tuple(lost.get(nic.index, 1.0) for nic in cluster.nics))
    plan, spans = plan_concurrent(parse_strategy(strategy), [Request("all_reduce", g, size) for g in groups], view)
    events = tuple(Event(nic, fraction) for nic, fraction in lost.items())
    run = run_schedule(cluster, plan.schedule, plan.binding, events, how)
    p, own = len(groups[0]), GPUS // len(groups)
    return np.array([run.pass_end_s[span].max() for span in spans]) / (
        2 * (p - 1) / p * size / (own * cluster.nics[0].payload_rate)
    )


def times(strategy: str, dead: int | None, backend: Backend) -> np.ndarray:
    """When each of the eight groups of 16 servers has ended, in units of the healthy time."""
    cluster = load_cluster(f"h100x{SERVERS}").zero_latency()
    return ran(cluster, strategy, data_parallel(SERVERS, 8), SIZE, {} if dead is None else {dead: 0.0}, backend)


def r2cc(n: int, x: float) -> float:
    """T/T0 = 1 + nX / (2(n-1)(1-X)) for K -> infinity (R2CC paper, arXiv 2512.25059)."""
    return 1 + n * x / (2 * (n - 1) * (1 - x))


@BACKENDS
def test_healthy_groups_have_a_rail_each(backend: Backend) -> None:
    """T = 2(n-1)/n D/B for each, B the rate of one NIC."""
    assert times("ideal", None, backend) == pytest.approx(np.ones(GPUS), rel=1e-3)


@BACKENDS
def test_hot_repair_slows_two_groups_by_two(backend: Backend) -> None:
    """The dead NIC's group and the one whose NIC is the backup share it; the other six go on as before."""
    assert sorted(times("hot-repair", 3, backend)) == pytest.approx([1.0] * 6 + [2.0] * 2, rel=1e-3)


@BACKENDS
@FABRICS
def test_hot_repair_over_two_backups_slows_three_groups_by_a_half(preset: str, backend: Backend) -> None:
    """Half of the dead NIC's traffic lies on each of two backups: 3/2 for its group and for theirs."""
    cluster = load_cluster(f"{preset}x4").zero_latency()
    failover = cluster.spec.failover.model_copy(update={"backups_per_nic": 2})
    two = Cluster(cluster.name, cluster.spec.model_copy(update={"failover": failover}))
    found = ran(two, "hot-repair", data_parallel(4, 8), SIZE, {3: 0.0}, backend)
    assert sorted(found) == pytest.approx([1.0] * 5 + [1.5] * 3, rel=0.01)


@BACKENDS
def test_balance_slows_all_eight_by_eight_sevenths(backend: Backend) -> None:
    """X = 1/8 for all: 1/(1-X) = 8/7."""
    assert times("balance", 3, backend) == pytest.approx(np.full(GPUS, 8 / 7), rel=0.01)


@BACKENDS
@FABRICS
def test_a_slow_nic_costs_one_group_or_a_little_all_of_them(preset: str, backend: Backend) -> None:
    """NIC 3 at half of its rate: twice the time for its group; with weights X = 1/16 for all, 16/15."""
    cluster = load_cluster(f"{preset}x4").zero_latency()
    even, weighted = (
        ran(cluster, strategy, data_parallel(4, 8), SIZE, {3: 0.5}, backend)
        for strategy in ("balance", "balance:split=weighted")
    )
    assert even == pytest.approx([1, 1, 1, 2, 1, 1, 1, 1], rel=0.01)
    assert weighted == pytest.approx(np.full(GPUS, 16 / 15), rel=0.02)


@FABRICS
@pytest.mark.parametrize("n", [3, 4, 16])
def test_r2cc_allreduce_slows_all_eight_by_the_formula_of_n_servers(n: int, preset: str) -> None:
    """X = 1/8, K = 128, by flow: within 2% of the overhead's formula, 7.6% at n = 16."""
    cluster = load_cluster(f"{preset}x{n}").zero_latency()
    found = ran(cluster, "r2cc-allreduce:k=128", data_parallel(n, 8), GIB, {3: 0.0}, Backend.FLOW)
    assert found == pytest.approx(np.full(GPUS, r2cc(n, 1 / 8)), rel=0.02)
    fine = ran(cluster, "r2cc-allreduce:k=128", data_parallel(n, 8), 16 * GIB, {3: 0.0}, Backend.FLOW)
    assert fine == pytest.approx(np.full(GPUS, r2cc(n, 1 / 8)), abs=0.003)  # where chunks are small against the buffer


def test_r2cc_allreduce_by_chunks() -> None:
    """K = 16 adds 1/16 of the overhead, and the chains have to fill: within 2%."""
    cluster = load_cluster("h100x8").zero_latency()
    found = ran(cluster, "r2cc-allreduce:k=16", data_parallel(8, 8), GIB, {3: 0.0}, Backend.CHUNK)
    assert found == pytest.approx(np.full(GPUS, 1 + (r2cc(8, 1 / 8) - 1) * (1 + 1 / 16)), rel=0.02)


@pytest.mark.parametrize("lost", [{3: 0.5}, {1: 0.0, 2: 0.0}, {1: 0.0, 2: 0.5, 7: 0.25}])
def test_what_counts_is_the_part_that_the_server_has_lost(lost: dict[int, float]) -> None:
    """X is the sum over its NICs, slowed ones too."""
    cluster = load_cluster("h100x8").zero_latency()
    x = sum(1 - left for left in lost.values()) / 8
    found = ran(cluster, "r2cc-allreduce:k=128", data_parallel(8, 8), 16 * GIB, lost, Backend.FLOW)
    assert found == pytest.approx(np.full(GPUS, r2cc(8, x)), rel=0.02)


@pytest.mark.parametrize("lost", [{3: 0.0, 8: 0.0}, {3: 0.0, 64: 0.0}, {0: 0.0, 16: 0.0, 17: 0.0}])
def test_of_several_degraded_servers_the_most_degraded_one_decides(lost: dict[int, float]) -> None:
    """Levels: 1 + n X_1 / (2(n-1)(1-X_1)), X_1 the largest loss, within 3% (K = 16 and uneven roots); Balance more."""
    cluster = load_cluster("h100x16").zero_latency()
    x = max(sum(nic // 8 == server for nic in lost) for server in range(16)) / 8
    found = ran(cluster, "r2cc-allreduce:k=16", data_parallel(16, 8), 16 * GIB, lost, Backend.FLOW)
    assert found == pytest.approx(np.full(GPUS, r2cc(16, x)), rel=0.035)
    assert (found < 1 / (1 - x)).all()


def test_several_degraded_servers_on_rails_apart_are_balanced() -> None:
    """Their neighbours could not carry their part on the rails that are left: the note says so."""
    cluster = load_cluster("hpn-h800x4")
    view = View(cluster, tuple(0.0 if nic.index in (3, 8) else 1.0 for nic in cluster.nics))
    plan = parse_strategy("r2cc-allreduce").plan(Request("all_reduce", data_parallel(4, 8)[0], GIB), view)
    assert plan.note == "r2cc-allreduce falls back to balance: 2 degraded servers of a group, and rails apart"


@pytest.mark.parametrize("tensor_parallel", [2, 4])
def test_groups_of_several_ranks_a_server_lose_the_same_part(tensor_parallel: int) -> None:
    """Four or two rails each: 8/7 by Balance; by R2CC-AllReduce 2(p-1)/p of both rings and D of stage 2."""
    n, x = 8, 1 / 8
    cluster, groups = load_cluster(f"h100x{n}").zero_latency(), data_parallel(n, tensor_parallel)
    balanced = ran(cluster, "balance", groups, GIB, {3: 0.0}, Backend.FLOW)
    assert balanced == pytest.approx(np.full(tensor_parallel, 8 / 7), rel=0.01)
    p = len(groups[0])
    exact = 1 + x / (1 - x) / (2 * (p - 1) / p)
    found = ran(cluster, "r2cc-allreduce:k=64", groups, 16 * GIB, {3: 0.0}, Backend.FLOW)
    assert found == pytest.approx(np.full(tensor_parallel, exact), rel=0.02)


@FABRICS
@pytest.mark.parametrize("n", [4, 8, 16])
def test_optcc_is_near_the_bound_for_all_eight(n: int, preset: str) -> None:
    """Bound n/(n-X) of the healthy ring (OptCC paper, arXiv 2606.01680); the mixture pays about 2/K and, where no leg
    loads the lost rail, (1 - y)/(7m) more."""
    cluster = load_cluster(f"{preset}x{n}").zero_latency()
    found = ran(cluster, "optcc:k=128", data_parallel(n, 8), 16 * GIB, {3: 0.0}, Backend.FLOW)
    bound = n / (n - 1 / 8)
    assert (found >= bound * (1 - 1e-6)).all()
    assert found == pytest.approx(np.full(GPUS, bound), rel=0.02)


def test_auto_judges_a_group_beside_its_siblings() -> None:
    """Alone, Balance would have seven NICs for what one had; all eight groups take OptCC, as they do together."""
    cluster = load_cluster("h100x8")
    view = View(cluster, tuple(0.0 if nic.index == 3 else 1.0 for nic in cluster.nics))
    notes = {
        parse_strategy("auto").plan(Request("all_reduce", group, 4 * GIB), view).note for group in data_parallel(8, 8)
    }
    assert len(notes) == 1
    assert notes.pop().startswith("auto takes optcc")


def test_siblings_are_the_groups_of_the_other_gpus() -> None:
    """One rank a server: eight. Four of eight: two. All ranks of a server, or of the cluster: alone."""
    cluster = load_cluster("h100x2")
    groups = data_parallel(2, 8)
    for group in groups:
        assert [one.group for one in siblings(Request("all_reduce", group, 1), cluster)] == groups
    half = tuple(range(0, 16, 2))
    assert [one.group for one in siblings(Request("all_reduce", half, 1), cluster)] == data_parallel(2, 2)
    for alone in (tuple(range(8)), tuple(range(16))):
        assert [one.group for one in siblings(Request("all_reduce", alone, 1), cluster)] == [alone]
    roots = [one.root for one in siblings(Request("broadcast", (1, 9), 1, root=9), cluster)]
    assert roots == list(range(8, 16))


def test_groups_that_overlap_are_refused() -> None:
    cluster = load_cluster("h100x2")
    requests = [Request("all_reduce", (0, 8), 1), Request("all_reduce", (8, 9), 1)]
    with pytest.raises(InputError, match="rank 8 is in two groups"):
        plan_concurrent(parse_strategy("balance"), requests, View.healthy(cluster))
