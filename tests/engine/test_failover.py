"""A NIC fails while a collective runs, on both backends.

Two servers, one GPU each, N NICs of B a server, one channel a NIC, hot repair: each NIC has D/N to carry, T = D/(N B).
A rollback repeats at most the window of W chunks, so a time lies between its equation and W * chunk / B above it.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Event

B = 1e10
KIB = 1024
MIB = 2**20
SHARE = 32 * MIB  # bytes of each NIC
T = SHARE / B
CHUNK, WINDOW = 16 * KIB, 4
LOST = WINDOW * CHUNK / B  # seconds that a rollback repeats at most
BOTH = pytest.mark.parametrize("backend", list(Backend))


@pytest.fixture(scope="session")
def hot_repair(cluster_of, simulate):
    """Return a function: the run of hot repair with `nics` NICs a server and a detection delay, under events."""

    def run(nics, detection_s, events, backend, **failover):
        cluster = cluster_of(
            nics=nics,
            transport={"chunk_kib": CHUNK / KIB, "window_chunks": WINDOW},
            failover={"detection_ms": detection_s * 1e3, **failover},
        )
        return simulate(cluster, "hot-repair", nics * SHARE, events=tuple(events), backend=backend)

    return run


def down(nic, time_s):
    return Event(nic, 0.0, time_s=time_s)


def up(nic, time_s):
    return Event(nic, 1.0, time_s=time_s)


def whats(run):
    return [entry.what for entry in run.log]


@BOTH
@given(cut=st.floats(0.001, 0.999), detection=st.floats(0, 2))
def test_a_dead_nics_traffic_goes_on_over_its_backup(cut, detection, backend, hot_repair):
    """t = max(2T - cut, T + detection): hidden while the backup still has work of its own, exposed after that."""
    run = hot_repair(2, detection * T, [down(0, cut * T)], backend)
    expected = max((2 - cut) * T, T + detection * T)
    assert expected * (1 - 1e-6) <= run.elapsed_s <= expected + LOST * (1 + 1e-6)
    assert whats(run) == ["down", "detected", "migrated"]
    assert run.log[1].time_s == pytest.approx((cut + detection) * T)


@given(cut=st.floats(0.01, 0.99), detection=st.floats(0, 2))
def test_without_latency_the_flow_backend_repeats_the_broken_chunk(cut, detection, hot_repair):
    """Only the chunk under way is without acknowledgement: max(2T - cut, T + d) + (cut * share mod chunk) / B."""
    broken = cut * SHARE % CHUNK
    assume(1 < broken < CHUNK - 1)
    run = hot_repair(2, detection * T, [down(0, cut * T)], Backend.FLOW)
    expected = max(2 - cut, 1 + detection) * T + broken / B
    assert run.elapsed_s == pytest.approx(expected, rel=1e-7)


@BOTH
@pytest.mark.parametrize(("latency_us", "chunks_lost"), [(2, 2.44), (4, 4.88), (40, 16)])
def test_a_rollback_repeats_a_round_trip_but_at_most_the_window(latency_us, chunks_lost, backend, simulate, cluster_of):
    """2 * latency * B = 40 kB a 2 us, in chunks of 16 KiB, rounded up to whole chunks; W = 16 chunks.

    Repeated bytes show on the counters: total - what a run without a failure moves. The chunk backend counts a chunk
    when it has arrived, so there only those count twice that had arrived but were not acknowledged.
    """
    cluster = cluster_of(
        nics=2,
        transport={"chunk_kib": CHUNK / KIB, "window_chunks": 16, "step_latency_us": latency_us},
        failover={"detection_ms": 1},
    )
    run = simulate(cluster, "hot-repair", 2 * SHARE, events=(down(0, 0.4 * T),), backend=backend)
    repeated = run.bytes.tx_payload[:2].sum() - 2 * SHARE
    least = chunks_lost - 1.01 if backend is Backend.FLOW else 0
    assert least * CHUNK <= repeated <= min(16, chunks_lost + 1.01) * CHUNK


@BOTH
@given(cut=st.floats(0, 1), detection=st.floats(0, 2))
def test_no_byte_is_lost_and_what_the_dead_nic_did_not_carry_has_moved(cut, detection, backend, hot_repair):
    """Per direction of server 0: dead NIC cut * share, backup the rest; together 2 shares + at most one window."""
    run = hot_repair(2, detection * T, [down(0, cut * T)], backend)
    window = WINDOW * CHUNK
    for counter in (run.bytes.tx_payload, run.bytes.rx_payload):
        dead, backup = counter[:2]
        assert dead == pytest.approx(cut * SHARE, abs=window)
        assert 2 * SHARE * (1 - 1e-9) <= dead + backup <= 2 * SHARE + window * (1 + 1e-6)
    assert run.bytes.rx_payload.sum() == pytest.approx(run.bytes.tx_payload.sum())


@BOTH
def test_a_failure_of_before_the_start_that_is_not_known_costs_its_detection(backend, hot_repair):
    """Down at 0, known at d: max(2T, T + d). Nothing was in flight, so nothing is repeated."""
    for detection in (0.3, 1.7):
        run = hot_repair(2, detection * T, [down(0, 0.0)], backend)
        assert run.elapsed_s == pytest.approx(max(2, 1 + detection) * T)
        assert run.bytes.tx_payload[:2] == pytest.approx([0, 2 * SHARE])


@BOTH
def test_detection_counts_from_the_failure_not_from_the_start(backend, hot_repair):
    """Down 0.5 T before the start with a detection of 1.2 T: known at 0.7 T, so max(2T, T + 0.7T) = 2T."""
    early = hot_repair(2, 1.2 * T, [down(0, -0.5 * T)], backend)
    assert [e.time_s for e in early.log if e.what == "detected"] == pytest.approx([0.7 * T])
    assert early.elapsed_s == pytest.approx(2 * T)


@BOTH
def test_a_failure_at_the_very_end_waits_for_the_acknowledgement(backend, hot_repair):
    """At the instant at which the last byte arrives, its acknowledgement is still to come: T + d + at most W."""
    run = hot_repair(2, 0.5 * T, [down(0, T)], backend)
    assert 1.5 * T * (1 - 1e-6) <= run.elapsed_s <= 1.5 * T + LOST * (1 + 1e-6)


@BOTH
def test_a_failure_after_the_end_is_not_met(backend, hot_repair):
    """The event's time is NaN and nothing is logged."""
    run = hot_repair(2, 0.5 * T, [down(0, 1.001 * T)], backend)
    assert run.elapsed_s == pytest.approx(T)
    assert np.isnan(run.event_time_s).all()
    assert run.log == ()


@BOTH
def test_both_ends_of_a_channel_fail(backend, hot_repair):
    """NIC 0 of either server down at 0.4 T: one pair of backups carries all, as if one had failed: 2T - cut."""
    run = hot_repair(2, 0.1 * T, [down(0, 0.4 * T), down(2, 0.4 * T)], backend)
    assert 1.6 * T * (1 - 1e-6) <= run.elapsed_s <= 1.6 * T + 2 * LOST
    assert run.bytes.tx_payload[[0, 2]] == pytest.approx([0.4 * SHARE] * 2, abs=WINDOW * CHUNK)


@BOTH
def test_two_failures_one_after_the_other(backend, hot_repair):
    """Three NICs, no delay. NIC 0 down at 0.2 T: its rest goes to NIC 1; NIC 1 down at 0.5 T: all goes to NIC 2.

    Carried by 0.5 T: 3 * 0.2 + 2 * 0.3 = 1.2 of 3 shares; NIC 2 carries the other 1.8 alone: 0.5 + 1.8 = 2.3 T.
    """
    run = hot_repair(3, 0.0, [down(0, 0.2 * T), down(1, 0.5 * T)], backend)
    assert 2.3 * T * (1 - 1e-6) <= run.elapsed_s <= 2.3 * T + 3 * LOST
    assert whats(run) == ["down", "detected", "migrated"] * 2


@BOTH
def test_the_backup_dies_before_the_first_failure_is_known(backend, hot_repair):
    """d = 0.4 T. NIC 0 down at 0.5 T, its backup NIC 1 at 0.7 T; NIC 0's traffic moves to the dead NIC 1 at 0.9 T,
    stands until NIC 1 is known at 1.1 T, and goes on over NIC 2, which has ended its own: rest 0.5 + 0.3 -> 1.9 T.
    """
    run = hot_repair(3, 0.4 * T, [down(0, 0.5 * T), down(1, 0.7 * T)], backend)
    assert 1.9 * T * (1 - 1e-6) <= run.elapsed_s <= 1.9 * T + 3 * LOST


@BOTH
def test_a_backup_that_is_known_to_be_down_is_passed_over(backend, hot_repair):
    """NIC 1 down at 0.1 T, NIC 0 at 0.6 T, no delay: NIC 2 takes NIC 1's rest (its first backup), then NIC 0's too.

    NIC 0's first backup would be NIC 1. By 0.6 T: 3 * 0.1 + 2 * 0.5 = 1.3 of 3 shares; 0.6 + 1.7 = 2.3 T.
    """
    run = hot_repair(3, 0.0, [down(1, 0.1 * T), down(0, 0.6 * T)], backend)
    assert 2.3 * T * (1 - 1e-6) <= run.elapsed_s <= 2.3 * T + 3 * LOST
    assert run.bytes.tx_payload[1] == pytest.approx(0.1 * SHARE, abs=2 * WINDOW * CHUNK)


@BOTH
@pytest.mark.parametrize("backups", [1, 2])
def test_traffic_spreads_over_backups_per_nic(backups, backend, hot_repair):
    """NIC 0 of 3 dead and known after 0: `backups_per_nic` others carry its share: (1 + 1/backups) T."""
    run = hot_repair(3, 0.0, [down(0, 0.0)], backend, backups_per_nic=backups)
    assert run.elapsed_s == pytest.approx((1 + 1 / backups) * T, rel=2e-3)


@BOTH
@given(cut=st.floats(0.01, 0.9), gap=st.floats(0.001, 0.49))
def test_a_flap_shorter_than_the_detection_only_costs_its_length(cut, gap, backend, hot_repair):
    """Down at cut, up again after gap < detection: the connection resumes where it was, t = T + gap, no migration."""
    run = hot_repair(2, 0.5 * T, [down(0, cut * T), up(0, (cut + gap) * T)], backend)
    assert (1 + gap) * T * (1 - 1e-6) <= run.elapsed_s <= (1 + gap) * T + LOST * (1 + 1e-6)
    assert whats(run) == ["down", "up"]


@BOTH
def test_two_flaps_each_cost_their_length(backend, hot_repair):
    """One NIC down and up, then the other (Mooncake 2960); t = T + the longer outage where they are on two channels."""
    events = [down(0, 0.1 * T), up(0, 0.2 * T), down(1, 0.5 * T), up(1, 0.7 * T)]
    run = hot_repair(2, 0.5 * T, events, backend)
    assert 1.2 * T * (1 - 1e-6) <= run.elapsed_s <= 1.2 * T + 2 * LOST


@BOTH
def test_a_repair_after_the_migration_does_not_move_connections_back(backend, hot_repair):
    """Degraded after repair (nccl issue 2157): the running collective ends on the backup, as without the repair."""
    failure = down(0, 0.2 * T)
    without = hot_repair(2, 0.1 * T, [failure], backend)
    repaired = hot_repair(2, 0.1 * T, [failure, up(0, 0.6 * T)], backend)
    assert repaired.elapsed_s == without.elapsed_s
    assert whats(repaired) == ["down", "detected", "migrated", "up"]


@BOTH
def test_a_repaired_nic_can_take_over_as_a_backup(backend, hot_repair):
    """Two NICs: 0 down, back, then 1 down: all goes to NIC 0, the only one that works.

    0.2 T: 0 -> 1 (no delay); 0.6 T: 0 is back and idle; 1.0 T: 1 fails. Carried: 2 * 0.2 + 0.8 = 1.2 of 2; 1.8 T.
    """
    run = hot_repair(2, 0.0, [down(0, 0.2 * T), up(0, 0.6 * T), down(1, 1.0 * T)], backend)
    assert 1.8 * T * (1 - 1e-6) <= run.elapsed_s <= 1.8 * T + 3 * LOST


@BOTH
@given(cut=st.floats(0, 0.99), left=st.floats(0.05, 1))
def test_a_slower_nic_carries_the_rest_at_what_is_left_of_its_rate(cut, left, backend, hot_repair):
    """NIC 0 at a fraction f of its rate from the cut on: t = cut + (T - cut)/f, no failover."""
    run = hot_repair(2, 0.1 * T, [Event(0, left, time_s=cut * T)], backend)
    assert run.elapsed_s == pytest.approx((cut + (1 - cut) / left) * T, abs=3 * CHUNK / B / left)
    assert "detected" not in whats(run)


@BOTH
def test_a_slow_nic_that_recovers(backend, hot_repair):
    """Half rate between 0.2 T and 0.6 T: 0.2 T of work is late, t = 1.2 T."""
    run = hot_repair(2, 0.1 * T, [Event(0, 0.5, time_s=0.2 * T), up(0, 0.6 * T)], backend)
    assert run.elapsed_s == pytest.approx(1.2 * T, abs=3 * CHUNK / B)


@BOTH
@pytest.mark.parametrize("passed", [1, 5 * MIB, 31 * MIB])
def test_a_failure_by_bytes_comes_when_the_counter_says_so(passed, backend, hot_repair):
    """At N bytes on the NIC: at N / B, and the counter stands at N from then on."""
    run = hot_repair(2, 0.5 * T, [Event(0, 0.0, at_bytes=float(passed))], backend)
    assert run.event_time_s == pytest.approx([passed / B], abs=2 * CHUNK / B)
    assert max(run.bytes.rx[0], run.bytes.tx[0]) == pytest.approx(passed, abs=2 * CHUNK)


@BOTH
def test_counters_that_a_failure_waits_for_include_headers(backend, simulate, cluster_of):
    """1 MiB on the wire with 25% of headers: 0.8 MiB of payload have passed."""
    nics = [{"count": 2, "rate_gbps": 80, "header_bytes": 256, "mtu_bytes": 1024}]
    cluster = cluster_of(server={"nics": nics}, transport={"chunk_kib": 16}, failover={"detection_ms": 1})
    run = simulate(cluster, "ideal", 8 * MIB, events=(Event(0, 0.0, at_bytes=float(MIB)),), backend=backend)
    assert run.bytes.rx_payload[0] == pytest.approx(0.8 * MIB, abs=2 * CHUNK)


@BOTH
def test_a_count_that_is_never_reached_never_comes(backend, hot_repair):
    """A NIC's share is 32 MiB."""
    run = hot_repair(2, 0.1 * T, [Event(0, 0.0, at_bytes=33.0 * MIB)], backend)
    assert run.elapsed_s == pytest.approx(T)
    assert math.isnan(run.event_time_s[0])


@BOTH
def test_all_nics_of_a_server_down_is_a_partition(backend, hot_repair):
    """What if node 0 fails (SimAI issue 59): an answer that names the ranks and the NIC, no hang."""
    events = [down(0, 0.2 * T), down(1, 0.4 * T)]
    with pytest.raises(
        PartitionedError,
        match=r"no NIC is left between server\d \(rank \d\) and server\d \(rank \d\) after server0.nic1 went down",
    ):
        hot_repair(2, 0.1 * T, events, backend)


@BOTH
def test_separate_rails_fail_over_together(backend, cluster_of, simulate):
    """One switch per rail: when NIC 0 of server 0 dies both ends of the channel move to rail 1; 2T - cut."""
    cluster = cluster_of(nics=2, fabric={"kind": "switch-per-rail"}, transport={"chunk_kib": 16, "window_chunks": 4})
    run = simulate(cluster, "hot-repair", 2 * SHARE, events=(down(0, 0.4 * T),), backend=backend)
    assert 1.6 * T * (1 - 1e-6) <= run.elapsed_s <= 1.6 * T + LOST * (1 + 1e-6)
    # Server 1's NIC 0 works but nothing reaches it any more.
    assert run.bytes.rx_payload[2] == pytest.approx(0.4 * SHARE, abs=WINDOW * CHUNK)


@BOTH
def test_rails_that_no_switch_joins_partition_crosswise_failures(backend, cluster_of, simulate):
    """Rail 0 dead on server 0, rail 1 dead on server 1: no pair of NICs is left (nccl issues 2097, 2345)."""
    cluster = cluster_of(nics=2, fabric={"kind": "switch-per-rail"})
    with pytest.raises(PartitionedError, match="no NIC is left between server"):
        simulate(cluster, "hot-repair", 2 * SHARE, events=(down(0, 0.2 * T), down(3, 0.4 * T)), backend=backend)


@BOTH
def test_a_nic_that_nobody_uses_changes_nothing(backend, cluster_of, plan_for):
    """The plan avoids NIC 1; its failure and repair in mid-run leave every time and byte as it was."""
    from r2cc_simai.engine.run import run_schedule

    cluster = cluster_of(nics=2, failover={"detection_ms": 1})
    plan = plan_for(cluster, "balance", 2 * SHARE, lost={1: 0.0})
    calm = run_schedule(cluster, plan.schedule, plan.binding, (), backend)
    hit = run_schedule(cluster, plan.schedule, plan.binding, (down(1, 0.5 * T), up(1, T)), backend)
    assert hit.elapsed_s == calm.elapsed_s
    assert hit.bytes.rx.tolist() == calm.bytes.rx.tolist()
    assert "migrated" not in whats(hit)


@BOTH
def test_three_passes_of_a_channel_survive_a_cut_in_the_second(backend, cluster_of):
    """Passes of one channel run in order; the third starts on the backup that the second has moved to."""
    from r2cc_simai.collectives.binding import binding_of
    from r2cc_simai.collectives.schedule import ScheduleBuilder
    from r2cc_simai.engine.run import run_schedule

    cluster = cluster_of(nics=2, transport={"chunk_kib": 16, "window_chunks": 4})
    builder = ScheduleBuilder(n_ranks=2, bytes=3 * SHARE, chunk_bytes=CHUNK)
    channel, route = builder.new_channel(), builder.route([0, 1])
    for k in range(3):
        builder.chain(channel, route, k * SHARE, (k + 1) * SHARE, 0, 1)
    binding = binding_of([(channel, 0, 1, 0, 2, 1.0)])
    run = run_schedule(cluster, builder.build(), binding, (down(0, 1.5 * T),), backend)
    assert run.pass_end_s[0] == pytest.approx(T, rel=1e-6)
    assert 3 * T * (1 - 1e-6) <= run.elapsed_s <= 3 * T + LOST * (1 + 1e-6)
    assert run.bytes.tx_payload[:2] == pytest.approx([1.5 * SHARE, 1.5 * SHARE], abs=WINDOW * CHUNK)


@BOTH
@pytest.mark.parametrize(
    ("passed_bytes", "measured_s"),
    [(630194176, 3.539), (888143872, 3.32), (706740224, 3.47), (1642070016, 2.974)],
)
def test_the_iteration_that_a_cut_hit_on_the_r7525(passed_bytes, measured_s, backend, simulate):
    """mlx5_2 of one server cut after 601, 847, 674 and 1566 MiB of 2312 (R2CC logs 01, 08, 02): time within 2%."""
    from r2cc_simai.cluster.load import load_cluster

    cluster = load_cluster("r7525")
    cut = Event(cluster.nic_by_name["server0.mlx5_2"], 0.0, at_bytes=float(passed_bytes))
    run = simulate(cluster, "hot-repair", 4 * 2**30, events=(cut,), backend=backend)
    assert run.elapsed_s == pytest.approx(measured_s, rel=0.02)


@BOTH
def test_the_bytes_of_the_iteration_that_a_cut_hit(backend, simulate):
    """Log 01: mlx5_2 stopped at 601 MiB, mlx5_0, its backup, counted 4188 MiB, mlx5_3 its own 2312; within 1%."""
    from r2cc_simai.cluster.load import load_cluster

    cluster = load_cluster("r7525")
    cut = Event(cluster.nic_by_name["server0.mlx5_2"], 0.0, at_bytes=630194176.0)
    run = simulate(cluster, "hot-repair", 4 * 2**30, events=(cut,), backend=backend)
    assert run.bytes.rx[:3] / MIB == pytest.approx([4188, 601, 2312], rel=0.01)
