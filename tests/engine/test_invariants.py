"""What must hold for any cluster, schedule and failure, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.collectives.bound import all_reduce_bound
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Event, sorted_timeline

MIB = 2**20
BOTH = pytest.mark.parametrize("backend", list(Backend))
STRATEGIES = [
    "ideal",
    "hot-repair",
    "balance",
    "balance:split=weighted",
    "r2cc-allreduce:k=3",
    "r2cc-allreduce:k=7,y=opt",
]


def small_cluster(cluster_of, servers, rates_gbps, scale=1.0, detection_s=0.0, burst_kb=0.0):
    """Servers with one GPU and a NIC per rate, small chunks, no latency; all rates times `scale`."""
    nics = [
        {
            "name": f"nic{i}",
            "rate_gbps": rate * scale,
            "line_rate_gbps": 2 * rate * scale,
            "burst_kb": burst_kb,
            "rail": i,
        }
        for i, rate in enumerate(rates_gbps)
    ]
    return cluster_of(
        servers=servers,
        server={"nics": nics, "intra_server": {"rate_gbps": 1000 * scale}, "host_bridge_gbps": 3000 * scale},
        transport={"chunk_kib": 256, "window_chunks": 4},
        failover={"detection_ms": detection_s * 1e3 / scale},
    )


rates = st.lists(st.sampled_from([25.0, 40.0, 100.0]), min_size=2, max_size=3)
nic_events = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1.5)), max_size=4
)


def events_of(drawn, healthy_s, n_nics):
    """Events at fractions of the healthy time, moved off round fractions, at which rounding decides what came first."""
    return sorted_timeline(
        [Event(nic % n_nics, f, time_s=(1e-5 + 0.99931 * t) * healthy_s) for nic, f, t in drawn], "drawn"
    )


@BOTH
@settings(max_examples=25)
@given(
    rates=rates,
    servers=st.integers(2, 4),
    drawn=nic_events,
    strategy=st.sampled_from(STRATEGIES),
    c=st.sampled_from([0.1, 0.5, 3.0, 16.0]),
    detection=st.floats(0, 1),
)
def test_all_rates_times_c_divide_every_time_by_c(
    rates, servers, drawn, strategy, c, detection, backend, cluster_of, simulate
):
    """Without latency the engine has no time of its own: t(c * rates, events / c) = t / c, with equal bytes."""
    size = 20 * MIB
    one = small_cluster(cluster_of, servers, rates)
    healthy = simulate(one, "ideal", size).elapsed_s
    timeline = events_of(drawn, healthy, len(one.nics))

    def end(scale):
        cluster = small_cluster(cluster_of, servers, rates, scale, detection * healthy)
        events = tuple(Event(e.nic, e.fraction, time_s=e.time_s / scale) for e in timeline.events)
        try:
            run = simulate(cluster, strategy, size, events=events, backend=backend)
        except PartitionedError:
            return None
        return run.elapsed_s * scale, run.bytes.rx.sum()

    assert end(c) == (None if end(1.0) is None else pytest.approx(end(1.0), rel=1e-5))


@BOTH
@settings(max_examples=40)
@given(
    servers=st.integers(2, 5),
    rates=rates,
    known=st.dictionaries(st.integers(0, 8), st.sampled_from([0.0, 0.3, 0.5, 0.875]), max_size=2),
    drawn=nic_events,
    strategy=st.sampled_from(STRATEGIES),
    burst_kb=st.sampled_from([0.0, 2000.0]),
    detection=st.floats(0, 0.5),
)
def test_nothing_beats_the_lower_bound(
    servers, rates, known, drawn, strategy, burst_kb, detection, backend, cluster_of, simulate
):
    """T >= all_reduce_bound(timeline) for every strategy, state, cut, repair and burst, at zero latency."""
    size = 20 * MIB
    cluster = small_cluster(cluster_of, servers, rates, burst_kb=burst_kb)
    healthy = simulate(cluster, "ideal", size).elapsed_s
    cluster = small_cluster(cluster_of, servers, rates, detection_s=detection * healthy, burst_kb=burst_kb)
    lost = {nic % len(cluster.nics): f for nic, f in known.items()}
    timeline = events_of(drawn, healthy, len(cluster.nics))
    start = [Event(nic, f) for nic, f in lost.items()]
    try:
        run = simulate(cluster, strategy, size, lost=lost, events=timeline.events, backend=backend)
    except PartitionedError:
        return
    bound = all_reduce_bound(cluster, size, sorted_timeline([*start, *timeline.events], "drawn"))
    assert run.elapsed_s >= bound * (1 - 1e-6)


@BOTH
@given(
    servers=st.integers(2, 5),
    rates=rates,
    size=st.integers(1, 40 * MIB),
    drawn=nic_events,
    strategy=st.sampled_from(["ideal", "hot-repair", "balance", "balance:split=weighted"]),
)
@settings(max_examples=25)
def test_what_is_sent_arrives_and_is_what_the_schedule_moves(
    servers, rates, size, drawn, strategy, backend, cluster_of, simulate
):
    """Sum of payload received = sum of payload sent = 2(n-1) D for rings, + whole repeated windows after a cut."""
    cluster = small_cluster(cluster_of, servers, rates)
    healthy = simulate(cluster, strategy, size, backend=backend)
    moved = 2 * (servers - 1) * size
    assert healthy.bytes.tx_payload.sum() == pytest.approx(moved, rel=1e-9)
    assert healthy.bytes.rx_payload.sum() == pytest.approx(moved, rel=1e-9)
    timeline = events_of(drawn, healthy.elapsed_s, len(cluster.nics))
    try:
        run = simulate(cluster, strategy, size, events=timeline.events, backend=backend)
    except PartitionedError:
        return
    sent, received = run.bytes.tx_payload.sum(), run.bytes.rx_payload.sum()
    window = 4 * 256 * 1024
    channels, failures = len(rates), sum(e.fraction == 0 for e in timeline.events)
    assert received == pytest.approx(sent, rel=1e-9)
    assert moved * (1 - 1e-9) <= sent <= moved + failures * channels * 2 * window + 1


@BOTH
@settings(max_examples=25)
@given(
    rates=st.lists(st.sampled_from([10.0, 25.0, 40.0]), min_size=2, max_size=6),
    faster=st.integers(0, 5),
    factor=st.sampled_from([1.01, 1.5, 4.0]),
    size=st.integers(1, 8 * MIB),
    latency_us=st.sampled_from([0.0, 5.0]),
)
def test_more_bandwidth_never_hurts_a_single_ring(
    rates, faster, factor, size, latency_us, backend, cluster_of, simulate
):
    """One GPU and one NIC a server, NICs of unequal rates: raising any one of them never makes the ring slower."""

    def time(values):
        one = {"gpus": {"count": 1}, "intra_server": {"rate_gbps": 1000}}
        overrides = {f"server{i}": {**one, "nics": [{"rate_gbps": r}]} for i, r in enumerate(values)}
        cluster = cluster_of(
            servers=len(values),
            overrides=overrides,
            transport={"step_latency_us": latency_us, "chunk_kib": 64},
        )
        return simulate(cluster, "ideal", size, backend=backend).elapsed_s

    better = list(rates)
    better[faster % len(rates)] *= factor
    assert time(better) <= time(rates) * (1 + 1e-9) + 1e-12


@given(
    cut=st.floats(0, 1),
    detection=st.floats(0, 1),
    strategy=st.sampled_from(["ideal", "hot-repair", "balance", "r2cc-allreduce:k=2"]),
)
@settings(max_examples=25)
def test_the_two_backends_agree_on_a_cut(cut, detection, strategy, cluster_of, simulate):
    """Same equations, two fidelities: without latency they differ by chunks of the pipeline and a repeated window."""
    cluster = cluster_of(servers=3, nics=2, transport={"chunk_kib": 16, "window_chunks": 4})
    size = 32 * MIB
    lost = {1: 0.5} if strategy.startswith("r2cc") else {}
    healthy = simulate(cluster, strategy, size, lost=lost).elapsed_s
    cluster = cluster_of(
        servers=3,
        nics=2,
        transport={"chunk_kib": 16, "window_chunks": 4},
        failover={"detection_ms": detection * healthy * 1e3},
    )
    event = Event(0, 0.0, time_s=cut * healthy)
    flow, chunk = (
        simulate(cluster, strategy, size, lost=lost, events=(event,), backend=backend).elapsed_s for backend in Backend
    )
    assert flow == pytest.approx(chunk, rel=0.02)


@BOTH
def test_no_port_carries_more_than_its_capacity(backend, simulate):
    """A cut in mid-run on 16 ranks: bytes of every port <= rate * time that it worked."""
    cluster = load_cluster("h100x2").zero_latency()
    healthy = simulate(cluster, "hot-repair", 256 * MIB, backend=backend).elapsed_s
    cut = Event(3, 0.0, time_s=0.4 * healthy)
    run = simulate(cluster, "hot-repair", 256 * MIB, events=(cut,), backend=backend)
    worked = np.full(len(cluster.nics), run.elapsed_s)
    worked[3] = 0.4 * healthy
    capacity = np.array([nic.rate for nic in cluster.nics]) * worked
    assert (run.bytes.rx <= capacity * (1 + 1e-9)).all()
    assert (run.bytes.tx <= capacity * (1 + 1e-9)).all()


@BOTH
@settings(max_examples=20)
@given(size=st.integers(0, 64 * MIB), cut=st.floats(0, 1))
def test_a_rerun_is_identical_to_the_bit(size, cut, backend, cluster_of, plan_for):
    """Same plan, same events, same numbers."""
    cluster = small_cluster(cluster_of, 3, [25.0, 40.0])
    plan = plan_for(cluster, "hot-repair", size)
    events = (Event(0, 0.0, time_s=cut * size / 5e9),)
    a, b = (run_schedule(cluster, plan.schedule, plan.binding, events, backend) for _ in range(2))
    assert a.elapsed_s == b.elapsed_s
    assert a.bytes.rx.tobytes() == b.bytes.rx.tobytes()
    assert a.pass_end_s.tobytes() == b.pass_end_s.tobytes()
