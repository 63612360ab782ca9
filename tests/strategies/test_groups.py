"""Every strategy, collective and kind of group that training has: the plan is right, and both backends run it.

Groups inside one server (tensor parallelism) and across them with one rank a server or several (data parallelism),
pairs (pipeline stages, embeddings), unequal parts of servers (four ranks of one, six of another), a single rank.
"""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.checker import check_schedule, check_trace
from r2cc_simai.collectives.operations import OPERATIONS, Call, lower_bound, wanted_after
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Event, Timeline
from r2cc_simai.strategies.adapcc import affected_ranks
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.registry import parse_strategy

MIB = 2**20
GPUS = 4
FABRICS = {
    "one switch": {"kind": "one-switch"},
    "a switch per rail": {"kind": "switch-per-rail"},
    "leaf-spine by rail": {"kind": "leaf-spine", "servers_per_leaf": 2, "oversubscription": 2},
    "leaf-spine": {"kind": "leaf-spine", "servers_per_leaf": 2, "oversubscription": 2, "rail_optimized": False},
}
STRATEGIES = [
    "ideal",
    "nccl",
    "hot-repair",
    "nccl-failover",
    "balance",
    "balance:split=weighted",
    "r2cc-allreduce",
    "r2cc-allreduce:k=2,y=opt",
    "optcc",
    "optcc:k=4,form=three",
    "optcc:k=3,mix=off",
    "adapcc",
    "auto",
]


def groups(servers: int) -> dict[str, tuple[int, ...]]:
    """Groups of ranks on servers of four GPUs, by what they are for."""
    across = [tuple(range(j, servers * GPUS, GPUS)) for j in range(GPUS)]
    last = (servers - 1) * GPUS
    return {
        "tensor parallel": tuple(range(GPUS, 2 * GPUS)),
        "half of a server": (1, 3),
        "data parallel": across[2],
        "data parallel, two ranks a server": tuple(sorted(across[1] + across[3])),
        "expert parallel": tuple(range(2 * GPUS)),
        "all but the first rank": tuple(range(1, servers * GPUS)),
        "pipeline": (GPUS + 1, 1),
        "embedding": (0, last + 3),
        "unequal": (0, 1, 2, last, last + 1),
        "out of order": (last + 2, 0, GPUS + 3, 1),
        "one rank": (5,),
    }


@settings(max_examples=300)
@given(
    op=st.sampled_from(list(OPERATIONS)),
    strategy=st.sampled_from(STRATEGIES),
    servers=st.integers(2, 5),
    kind=st.sampled_from(list(groups(2))),
    fabric=st.sampled_from(list(FABRICS)),
    nics=st.sampled_from([2, 4]),
    lost=st.dictionaries(st.integers(0, 19), st.sampled_from([0.0, 0.0, 0.4]), max_size=3),
    large=st.booleans(),
)
def test_every_plan_is_right_and_runs(
    op: str,
    strategy: str,
    servers: int,
    kind: str,
    fabric: str,
    nics: int,
    lost: dict[int, float],
    large: bool,
    cluster_of,
) -> None:
    """By the checker before and by the chunks' bit masks after it ran; never faster than the group's bound.

    A plan is refused only where something is not joined: no NIC is left on a server, or on a fabric of separate rails
    two servers have none in common; AdapCC also where it drops all ranks but one.
    """
    cluster = cluster_of(
        servers=servers, gpus=GPUS, nics=nics, fabric=FABRICS[fabric], transport={"chunk_kib": 1024, "window_chunks": 4}
    )
    group = groups(servers)[kind]
    if op == "send":
        group = group[:2]
    size = 17 * MIB + 5 if large and op == "all_reduce" else 100_003
    left = {nic % len(cluster.nics): fraction for nic, fraction in lost.items()}
    view = View(cluster, tuple(left.get(nic.index, 1.0) for nic in cluster.nics))
    chosen = parse_strategy(strategy)
    request = Request(op, group, size, root=group[-1])
    try:
        plan = chosen.plan(request, view)
    except PartitionedError:
        assert parted(cluster, view, group) or (strategy == "adapcc" and affected_ranks(view) & set(group))
        return
    members = chosen.members(group, view)
    if len(members) == 1:
        assert plan.schedule.passes == ()
    wanted = wanted_after(op, members, size, group[-1])
    assert check_schedule(plan.schedule, wanted) is None
    known = tuple(Event(nic, fraction) for nic, fraction in left.items()) if chosen.sees_failures else ()
    provenance = _core.Provenance(plan.schedule.core)
    events = [_core.NicEvent(nic=event.nic, fraction=event.fraction) for event in known]
    out = _core.run_chunk(core_cluster(cluster), plan.schedule.core, plan.binding.core, events, provenance=provenance)
    assert out.status == _core.Status.DONE, out.reason
    assert check_trace(plan.schedule, provenance, wanted) is None
    flow = run_schedule(cluster, plan.schedule, plan.binding, known, Backend.FLOW)
    least = lower_bound(cluster, op, Call(members, size, group[-1]), Timeline(known))
    assert min(out.elapsed_s, flow.elapsed_s) >= least * (1 - 1e-6)


@settings(max_examples=80)
@given(
    op=st.sampled_from(list(OPERATIONS)),
    strategy=st.sampled_from(["hot-repair", "balance", "r2cc-allreduce:k=2", "optcc:k=4"]),
    kind=st.sampled_from([kind for kind in groups(2) if kind != "one rank"]),
    fabric=st.sampled_from(list(FABRICS)),
    known=st.sampled_from([{}, {1: 0.0}, {8: 0.5}]),
    cut=st.floats(0, 1.2),
)
def test_what_was_executed_is_right_whenever_a_cut_comes(
    op: str, strategy: str, kind: str, fabric: str, known: dict[int, float], cut: float, cluster_of
) -> None:
    """NIC 4 (server 1) goes down while a group of three servers runs; every contribution arrives once."""
    cluster = cluster_of(
        servers=3,
        gpus=GPUS,
        nics=4,
        fabric=FABRICS[fabric],
        transport={"chunk_kib": 256, "window_chunks": 3},
        failover={"detection_ms": 0.2},
    )
    group = groups(3)[kind][: 2 if op == "send" else None]
    size = 16 * MIB + 3 if op == "all_reduce" else MIB + 3
    view = View(cluster, tuple(known.get(nic.index, 1.0) for nic in cluster.nics))
    plan = parse_strategy(strategy).plan(Request(op, group, size, root=group[0]), view)
    events = [_core.NicEvent(nic=nic, fraction=fraction) for nic, fraction in known.items()]
    events.append(_core.NicEvent(nic=4, fraction=0.0, time_s=cut * size / 1e10))
    provenance = _core.Provenance(plan.schedule.core)
    out = _core.run_chunk(core_cluster(cluster), plan.schedule.core, plan.binding.core, events, provenance=provenance)
    assert out.status == _core.Status.DONE, out.reason
    assert check_trace(plan.schedule, provenance, wanted_after(op, group, size, group[0])) is None


def parted(cluster: Cluster, view: View, group: tuple[int, ...]) -> bool:
    """Whether two servers of a group have nothing that joins them."""
    on = [server for server in cluster.servers if set(server.ranks) & set(group)]
    rails = [{cluster.nics[n].rail for n in server.nics if view.fraction[n] > 0} for server in on]
    if len(on) < 2:
        return False
    if cluster.rails_connected:
        return not all(rails)
    return any(not a & b for a, b in product(rails, rails))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("op", OPERATIONS)
def test_a_group_inside_a_server_needs_no_nic(op: str, strategy: str, cluster_of) -> None:
    """All NICs of the server are dead; the bytes take the links between its GPUs."""
    cluster = cluster_of(servers=2, gpus=4, nics=4)
    view = View(cluster, (0.0,) * 4 + (1.0,) * 4)
    group = (0, 2, 3) if op != "send" else (0, 2)
    if strategy == "adapcc":  # drops every rank of such a server
        with pytest.raises(PartitionedError, match="nobody to reduce with"):
            parse_strategy(strategy).plan(Request(op, group, 999), view)
        return
    plan = parse_strategy(strategy).plan(Request(op, group, 999), view)
    assert check_schedule(plan.schedule, wanted_after(op, group, 999)) is None
    assert len(plan.binding.src) == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("op", OPERATIONS)
def test_a_degraded_server_without_a_rank_of_the_group_does_not_matter(op: str, strategy: str, cluster_of) -> None:
    """The plan is that of the healthy cluster."""
    cluster = cluster_of(servers=4, gpus=2, nics=2)
    group = (0, 2, 6) if op != "send" else (0, 6)
    hurt = View(cluster, tuple(0.0 if nic == 4 else 1.0 for nic in range(8)))  # of server 2
    request = Request(op, group, 17 * MIB)
    mine, other = (parse_strategy(strategy).plan(request, view) for view in (hurt, View.healthy(cluster)))
    assert mine.binding.core.rows() == other.binding.core.rows()
    assert len(mine.schedule.passes) == len(other.schedule.passes)


def test_a_pair_uses_the_nics_of_its_own_gpus(cluster_of) -> None:
    """Rank 0 and rank 7 of two servers with a NIC per GPU: NIC 0 to NIC 7, across rails."""
    plan = parse_strategy("ideal").plan(Request("all_reduce", (0, 7), MIB), View.healthy(cluster_of(gpus=4, nics=4)))
    assert {row[3:5] for row in plan.binding.core.rows()} == {(0, 7), (7, 0)}


def test_gpus_that_share_a_nic_share_its_rail(cluster_of) -> None:
    """Four GPUs, two NICs: local ranks 0 and 2 have NIC 0, 1 and 3 NIC 1; a group of either has one rail."""
    cluster = cluster_of(gpus=4, nics=2)
    for local in range(4):
        plan = parse_strategy("balance").plan(Request("all_gather", (local, local + 4), MIB), View.healthy(cluster))
        assert {row[3:5] for row in plan.binding.core.rows()} == {
            (local % 2, local % 2 + 2),
            (local % 2 + 2, local % 2),
        }
