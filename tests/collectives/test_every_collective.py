"""Every collective under failure: what must be where at the end, how long it takes, and never below its bound."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.checker import check_schedule, check_trace
from r2cc_simai.collectives.operations import OPERATIONS, Call, default_group, lower_bound, wanted_after
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.engine.run import Backend, Run, run_schedule
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.timeline import Event, Timeline, sorted_timeline
from r2cc_simai.strategies.base import Plan, Request
from r2cc_simai.strategies.registry import parse_strategy

MIB, GIB = 2**20, 2**30
OPS = pytest.mark.parametrize("op", OPERATIONS)
OTHERS = pytest.mark.parametrize("op", [op for op in OPERATIONS if op != "all_reduce"])
BACKENDS = pytest.mark.parametrize("backend", list(Backend))
STRATEGIES = ["ideal", "nccl", "hot-repair", "balance", "balance:split=weighted"]


def planned(
    cluster: Cluster,
    op: str,
    size: int,
    strategy: str = "ideal",
    lost: dict[int, float] | None = None,
    root: int = 0,
    group: Sequence[int] | None = None,
) -> Plan:
    view = View(cluster, tuple((lost or {}).get(nic.index, 1.0) for nic in cluster.nics))
    ranks = tuple(group) if group is not None else default_group(op, cluster)
    return parse_strategy(strategy).plan(Request(op, ranks, size, root), view)


def ran(cluster: Cluster, plan: Plan, lost: dict[int, float] | None, backend: Backend) -> Run:
    events = tuple(Event(nic, fraction) for nic, fraction in (lost or {}).items())
    return run_schedule(cluster, plan.schedule, plan.binding, events, backend)


def bound_s(cluster: Cluster, op: str, size: int, lost: dict[int, float] | None = None, root: int = 0) -> float:
    timeline = Timeline(tuple(Event(nic, fraction) for nic, fraction in (lost or {}).items()))
    return lower_bound(cluster, op, Call(default_group(op, cluster), size, root), timeline)


@OPS
@pytest.mark.parametrize("n", range(2, 18))
@pytest.mark.parametrize("size", [0, 1, 13, 1_000_003])
def test_every_byte_is_where_it_must_be(op: str, n: int, size: int) -> None:
    """n servers with a NIC each, healthy and with a slowed one, any root."""
    cluster = load_cluster(f"uniformx{n}")
    for strategy, lost in (("ideal", {}), ("balance:split=weighted", {n // 2: 0.3})):
        root = (7 * n) % n if n % 2 else n - 1
        plan = planned(cluster, op, size, strategy, lost, root)
        assert check_schedule(plan.schedule, wanted_after(op, default_group(op, cluster), size, root)) is None


@OPS
@pytest.mark.parametrize("name", ["r7525", "h100x2", "hpn-h800x2"])
@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "nccl"])
def test_every_byte_is_where_it_must_be_when_nics_are_dead(op: str, name: str, strategy: str) -> None:
    """Two NICs of different servers are down; several NICs, GPUs and fabrics."""
    cluster = load_cluster(name)
    lost = {1: 0.0, len(cluster.servers[0].nics): 0.0}
    for size, root in ((100_003, 3), (16 * MIB, 0)):
        plan = planned(cluster, op, size, strategy, lost, root)
        assert check_schedule(plan.schedule, wanted_after(op, default_group(op, cluster), size, root)) is None


@OPS
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_group_may_be_a_part_of_the_cluster_in_any_order(op: str, strategy: str) -> None:
    """Five ranks of three servers, two for a send; block k belongs to the k-th of them."""
    cluster = load_cluster("h100x3")
    group = (17, 2, 9, 3, 16) if op != "send" else (17, 2)
    plan = planned(cluster, op, 100_003, strategy, {3: 0.0}, root=9, group=group)
    assert check_schedule(plan.schedule, wanted_after(op, group, 100_003, 9)) is None
    assert {rank for one in plan.schedule.routes for rank in one.tolist()} <= set(group)


@OTHERS
def test_a_hop_too_few_is_caught(op: str) -> None:
    """The negative control: the last hop of every section is missing."""
    schedule = planned(load_cluster("uniformx3"), op, 99).schedule
    shorter = tuple(
        replace(one, copy_hops=max(0, one.copy_hops - 1), reduce_hops=one.reduce_hops - (one.copy_hops == 0))
        for one in schedule.passes
    )
    group = default_group(op, load_cluster("uniformx3"))
    violation = check_schedule(replace(schedule, passes=shorter), wanted_after(op, group, 99))
    assert "are missing" in str(violation)


@settings(max_examples=60)
@given(
    op=st.sampled_from(list(OPERATIONS)),
    strategy=st.sampled_from(["hot-repair", "balance", "balance:split=weighted"]),
    known=st.sampled_from([{}, {1: 0.0}, {2: 0.5}]),
    cut=st.floats(0, 1.2),
    second=st.one_of(st.none(), st.floats(0, 1.2)),
    detection=st.floats(0, 0.5),
    latency_us=st.sampled_from([0, 50]),
    rails=st.booleans(),
    size=st.sampled_from([2 * MIB + 5, 300_007]),
)
def test_what_was_executed_is_right_whenever_the_cut_comes(
    op: str,
    strategy: str,
    known: dict[int, float],
    cut: float,
    second: float | None,
    detection: float,
    latency_us: int,
    rails: bool,
    size: int,
    cluster_of,
) -> None:
    """NIC 4 (server 1) is cut during the run, perhaps NIC 0 too; by the chunks' own bit masks, and above the bound."""
    cluster = cluster_of(
        servers=3,
        nics=3,
        gpus=2,
        transport={"chunk_kib": 64, "window_chunks": 3, "step_latency_us": latency_us},
        failover={"detection_ms": detection * size / 1e7},
        fabric={"kind": "switch-per-rail" if rails else "one-switch"},
    )
    unit = size / 1e10
    plan = planned(cluster, op, size, strategy, known, root=3)
    events = [Event(nic, fraction) for nic, fraction in known.items()] + [Event(4, 0.0, cut * unit)]
    if second is not None:
        events.append(Event(0, 0.0, second * unit))
    core = [_core.NicEvent(nic=e.nic, fraction=e.fraction, time_s=e.time_s) for e in events]
    provenance = _core.Provenance(plan.schedule.core)
    args = core_cluster(cluster), plan.schedule.core, plan.binding.core, core, None
    out = _core.run_chunk(*args, provenance=provenance)
    flow = _core.run_flow(*args)
    if out.status == _core.Status.DONE:
        group = default_group(op, cluster)
        assert check_trace(plan.schedule, provenance, wanted_after(op, group, size, 3)) is None
        least = lower_bound(cluster, op, Call(group, size, 3), sorted_timeline(events, ""))
        assert out.elapsed_s >= least * (1 - 1e-9)
        assert flow.elapsed_s >= least * (1 - 1e-9)
    else:
        assert out.status == flow.status == _core.Status.PARTITIONED


@BACKENDS
@pytest.mark.parametrize("name", ["h100", "h100x4", "hpn-h800x2"])
@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter", "send_recv", "all_to_all"])
@pytest.mark.parametrize("strategy", ["balance", "balance:split=weighted"])
def test_one_dead_nic_of_eight_leaves_seven_eighths_of_the_throughput(
    op: str, name: str, strategy: str, backend: Backend
) -> None:
    """1 - X = 87.5%; the R2CC paper (arXiv 2512.25059) measures 83-90% for AllGather, ReduceScatter and SendRecv."""
    cluster = load_cluster(name)
    size = GIB if backend is Backend.FLOW else 256 * MIB
    lost = {3: 0.0}
    healthy = ran(cluster, planned(cluster, op, size), None, backend).elapsed_s
    kept = healthy / ran(cluster, planned(cluster, op, size, strategy, lost), lost, backend).elapsed_s
    assert 0.83 <= kept <= 0.90
    assert kept == pytest.approx(0.875, abs=0.01 if backend is Backend.FLOW else 0.03)


@pytest.mark.parametrize("op", ["broadcast", "reduce"])
def test_a_chain_keeps_as_much(op: str) -> None:
    """Within the time that it needs to fill."""
    cluster, lost = load_cluster("h100x4"), {3: 0.0}
    healthy = ran(cluster, planned(cluster, op, GIB), None, Backend.FLOW).elapsed_s
    hurt = ran(cluster, planned(cluster, op, GIB, "balance", lost), lost, Backend.FLOW).elapsed_s
    assert healthy / hurt == pytest.approx(0.875, abs=0.01)


@BACKENDS
@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter", "send_recv", "all_to_all"])
def test_hot_repair_halves_the_throughput(op: str, backend: Backend) -> None:
    """The backup NIC carries two shares."""
    cluster = load_cluster("h100")
    lost = {3: 0.0}
    healthy = ran(cluster, planned(cluster, op, 256 * MIB), None, backend).elapsed_s
    hurt = ran(cluster, planned(cluster, op, 256 * MIB, "hot-repair", lost), lost, backend).elapsed_s
    assert hurt / healthy == pytest.approx(2, rel=0.04)


CLOSED_FORMS = {
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,  # noqa: ARG005
    "reduce": lambda n: 1.0,  # noqa: ARG005
    "send_recv": lambda n: 1.0,  # noqa: ARG005
    "send": lambda n: 1.0,  # noqa: ARG005
}


@BACKENDS
@pytest.mark.parametrize("op", CLOSED_FORMS)
@pytest.mark.parametrize("n", [2, 5, 8])
@pytest.mark.parametrize("left", [1.0, 0.5])
def test_times_equal_the_closed_forms(op: str, n: int, left: float, backend: Backend, cluster_of) -> None:
    """T = factor D/((1-X)B) without latency, one GPU and NIC of B = 1e10 B/s a server, one of them slowed.

    Within 2.5% where sections of 32 chunks and more follow one another; a chain fills with n - 1 of 256 chunks.
    """
    cluster, size = cluster_of(servers=n, transport={"chunk_kib": 256}), 64 * MIB
    lost = {1: left} if left < 1 else {}
    run = ran(cluster, planned(cluster, op, size, "balance", lost), lost, backend)
    exact = CLOSED_FORMS[op](n) * size / 1e10 / left
    assert run.elapsed_s == pytest.approx(exact, rel=max(0.025, (n + 1) / 256))
    least = bound_s(cluster, op, size, lost)
    assert least == pytest.approx(exact)
    assert run.elapsed_s >= least * (1 - 1e-9)


@OTHERS
@pytest.mark.parametrize("name", ["r7525", "h100x4", "hpn-h800x2", "uniformx6"])
@pytest.mark.parametrize("strategy", ["ideal", "balance", "hot-repair"])
def test_both_backends_agree_where_nothing_breaks(op: str, name: str, strategy: str) -> None:
    """Within 2% at 1 GiB, where the chunks are small against the buffer; the same bytes on every NIC."""
    cluster = load_cluster(name)
    lost = {} if strategy == "ideal" or name == "uniformx6" else {2: 0.0}
    plan = planned(cluster, op, GIB, strategy, lost)
    flow, chunk = (ran(cluster, plan, lost, backend) for backend in Backend)
    assert flow.elapsed_s == pytest.approx(chunk.elapsed_s, rel=0.02)
    assert flow.bytes.rx_payload.sum() == pytest.approx(chunk.bytes.rx_payload.sum())
    assert min(flow.elapsed_s, chunk.elapsed_s) >= bound_s(cluster, op, GIB, lost) * (1 - 1e-9)


@OTHERS
@pytest.mark.parametrize("size", [1, 1000])
def test_small_sizes_pay_their_steps(op: str, size: int) -> None:
    """T = base + steps; 5 servers, so 4 steps round a ring and 1 to a peer.

    `flow` counts a single chunk as if its window limited it: at most 2 x 5 us / 8 more for a pass.
    """
    cluster = load_cluster("uniformx5")
    plan = planned(cluster, op, size)
    steps = 1 if op in ("all_to_all", "send_recv", "send") else 4
    exact = (10 + 5 * steps) * 1e-6
    assert ran(cluster, plan, None, Backend.CHUNK).elapsed_s == pytest.approx(exact, rel=0.01)
    assert exact <= ran(cluster, plan, None, Backend.FLOW).elapsed_s <= exact * 1.01 + 10e-6 / 8


def test_rings_and_chains_put_their_bytes_on_the_nics() -> None:
    """h100x2, 16 ranks, by 8 NICs a server: AllGather 15/16 D, broadcast D in each server, to the byte."""
    cluster = load_cluster("h100")
    for op, factor in (("all_gather", 15 / 16), ("reduce_scatter", 15 / 16), ("all_to_all", 8 * 0.5), ("send_recv", 8)):
        run = ran(cluster, planned(cluster, op, 64 * MIB), None, Backend.CHUNK)
        assert run.bytes.rx_payload[:8].sum() == pytest.approx(factor * 64 * MIB, abs=1)
        assert run.bytes.tx_payload[8:].sum() == pytest.approx(factor * 64 * MIB, abs=1)


@OTHERS
@pytest.mark.parametrize("strategy", ["r2cc-allreduce", "optcc"])
def test_an_algorithm_for_allreduce_leaves_the_others_to_balance(op: str, strategy: str) -> None:
    """The same plan, with a note that says so."""
    cluster = load_cluster("h100x4")
    mine, other = (planned(cluster, op, MIB, name, {0: 0.0}) for name in (strategy, "balance"))
    assert mine.note == f"{strategy} changes nothing of {op}: it runs as under balance"
    assert mine.binding.core.rows() == other.binding.core.rows()
    assert mine.schedule.hops() == other.schedule.hops()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_bad_requests_are_refused_in_one_line(strategy: str) -> None:
    cluster = load_cluster("uniformx3")
    for request, message in (
        (("scan", (0, 1, 2), 9), "scan is not known .allowed: all_reduce, all_gather"),
        (("broadcast", (0, 1), 9, 2), "the root 2 of broadcast is none of the group's ranks"),
        (("all_gather", (0, 3), 9), "a group names ranks from 0 to 2"),
        (("all_to_all", (0, 1, 1), 9), "a rank stands twice"),
        (("send", (0, 1, 2), 9), "send goes from one rank to another, here are 3"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            parse_strategy(strategy).plan(Request(*request), View.healthy(cluster))
        assert "\n" not in str(caught.value)


@OTHERS
def test_a_server_without_a_nic_has_no_plan(op: str, cluster_of) -> None:
    with pytest.raises(PartitionedError, match="server0"):
        planned(cluster_of(nics=2), op, 100, "balance", {0: 0.0, 1: 0.0})


def test_1024_ranks_are_planned_as_arrays() -> None:
    """A ring of 1,024 ranks on 8 channels is 8 passes."""
    cluster = load_cluster("h100x128")
    for op in ("all_gather", "reduce_scatter", "broadcast", "reduce"):
        assert len(planned(cluster, op, GIB).schedule.passes) == 8
