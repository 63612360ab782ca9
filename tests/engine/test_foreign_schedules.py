"""Schedules that the project does not know, made here, run on both backends: the engine knows no algorithm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.collectives.binding import binding_of
from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Event

MIB = 2**20
B = 1e10
BOTH = pytest.mark.parametrize("backend", list(Backend))


def one_nic_rows(hops, nics_per_server=1):
    """Each hop between single-GPU servers over NIC 0 of both."""
    return binding_of([(c, a, b, a * nics_per_server, b * nics_per_server, 1.0) for c, a, b in sorted(hops)])


def tree(n, size, nics_per_server=1, chunk_bytes=64 * 1024):
    """AllReduce on a binary tree: rank r adds up its children 2r+1 and 2r+2, the root's sum goes back down.

    One channel per edge and direction; a hop up waits for the hops below it, a hop down for the one above it.
    """
    builder = ScheduleBuilder(n_ranks=n, bytes=size, chunk_bytes=chunk_bytes)
    up = {}
    for child in range(n - 1, 0, -1):
        below = [up[c] for c in (2 * child + 1, 2 * child + 2) if c < n]
        route = builder.route([child, (child - 1) // 2])
        up[child] = builder.chain(builder.new_channel(), route, 0, size, 1, 0, after=below)
    down = {}
    for child in range(1, n):
        parent = (child - 1) // 2
        before = [down[parent]] if parent else [up[c] for c in (1, 2) if c < n]
        route = builder.route([parent, child])
        down[child] = builder.chain(builder.new_channel(), route, 0, size, 0, 1, after=before)
    schedule = builder.build()
    return schedule, one_nic_rows(schedule.hops(), nics_per_server)


@BOTH
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_binary_tree(levels, backend, cluster_of):
    """Two children share their parent's port: 2 D/B a level, up and down: T = 4 * levels * D/B."""
    n, size = 2 ** (levels + 1) - 1, 8 * MIB
    run = run_schedule(cluster_of(servers=n), *tree(n, size), backend=backend)
    assert run.elapsed_s == pytest.approx(4 * levels * size / B, rel=1e-3)
    # The root receives from two children and sends to two; a leaf sends once and receives once.
    assert run.bytes.rx_payload[[0, n - 1]] == pytest.approx([2 * size, size])
    assert run.bytes.tx_payload[[0, n - 1]] == pytest.approx([2 * size, size])


@BOTH
def test_a_tree_moves_to_backups_when_the_root_loses_a_nic(backend, cluster_of):
    """The root's NIC 0 down at 1.5 D/B, known after 0.4 D/B: the transfers stand for that long, then go on over NIC 1.

    Nothing else is on the backup, so T = 4 D/B + detection.
    """
    size = 8 * MIB
    cluster = cluster_of(
        servers=3,
        nics=2,
        transport={"chunk_kib": 64, "window_chunks": 2},
        failover={"detection_ms": 0.4 * size / B * 1e3},
    )
    cut = Event(0, 0.0, time_s=1.5 * size / B)
    run = run_schedule(cluster, *tree(3, size, nics_per_server=2), (cut,), backend)
    window_s = 2 * 2 * 64 * 1024 / B  # of two channels
    assert 4.4 * size / B * (1 - 1e-6) <= run.elapsed_s <= 4.4 * size / B + window_s
    assert run.bytes.rx_payload[:2].sum() == pytest.approx(2 * size, abs=4 * 64 * 1024)


@BOTH
@settings(max_examples=20)
@given(order=st.permutations(range(6)))
def test_a_ring_in_any_order_of_the_ranks(order, backend, cluster_of):
    """With one GPU a server and one switch no order is better: T0 = 2(n-1)/n D/B."""
    builder = ScheduleBuilder(n_ranks=6, bytes=6 * MIB, chunk_bytes=64 * 1024)
    builder.ring(builder.new_channel(), builder.route(order), 0, 6 * MIB)
    schedule = builder.build()
    run = run_schedule(cluster_of(servers=6), schedule, one_nic_rows(schedule.hops()), backend=backend)
    assert run.elapsed_s == pytest.approx(2 * 5 / 6 * 6 * MIB / B, rel=1e-3)


@BOTH
@settings(max_examples=40)
@given(data=st.data())
def test_random_schedules_end_and_move_their_bytes(data, backend, cluster_of):
    """Random routes, sections, orders and a cut: every pass ends after those it waits for, all bytes are moved."""
    n, size, chunk = 4, 4 * MIB, 64 * 1024
    builder = ScheduleBuilder(n_ranks=n, bytes=size, chunk_bytes=chunk)
    channels = [builder.new_channel() for _ in range(3)]
    moved = 0
    for i in range(data.draw(st.integers(1, 6))):
        ranks = data.draw(st.permutations(range(n)))[: data.draw(st.integers(2, n))]
        channel = data.draw(st.sampled_from(channels))
        lo = data.draw(st.integers(0, size))
        hi = data.draw(st.integers(lo, size))
        after = sorted(data.draw(st.sets(st.integers(0, i - 1), max_size=2))) if i else []
        route = builder.route(ranks)
        if data.draw(st.booleans()):
            builder.ring(channel, route, lo, hi, after=after)
            moved += 2 * (len(ranks) - 1) * (hi - lo)
        else:
            reduce = data.draw(st.integers(0, len(ranks) - 1))
            builder.chain(channel, route, lo, hi, reduce, len(ranks) - 1 - reduce, after=after)
            moved += (len(ranks) - 1) * (hi - lo)
    schedule = builder.build()
    cluster = cluster_of(servers=n, nics=2, transport={"chunk_kib": 64, "window_chunks": 2})
    binding = one_nic_rows(schedule.hops(), nics_per_server=2)
    cut = Event(data.draw(st.integers(0, 7)), 0.0, time_s=data.draw(st.floats(0, 2e-3)))
    run = run_schedule(cluster, schedule, binding, (cut,), backend)
    for i, one in enumerate(schedule.passes):
        assert run.pass_start_s[i] <= run.pass_end_s[i] <= run.elapsed_s
        for before in one.after:
            assert run.pass_end_s[before] <= run.pass_start_s[i]
    window = 2 * chunk
    assert moved * (1 - 1e-9) <= run.bytes.tx_payload.sum() <= moved + window * len(schedule.hops()) + 1


@BOTH
def test_what_waits_for_ever_is_named(backend, cluster_of):
    """A connection that is down and never found out ends the run, not the patience: the pass is named."""
    cluster = cluster_of(failover={"detection_ms": 2e9})
    builder = ScheduleBuilder(n_ranks=2, bytes=MIB, chunk_bytes=MIB)
    first = builder.chain(builder.new_channel(), builder.route([0, 1]), 0, MIB, 0, 1)
    builder.chain(builder.new_channel(), builder.route([1, 0]), 0, MIB, 0, 1, after=[first])
    schedule = builder.build()
    with pytest.raises(PartitionedError, match=r"waits for ever: pass 0 .*pass 1"):
        run_schedule(cluster, schedule, one_nic_rows(schedule.hops()), (Event(0, 0.0, time_s=1e-5),), backend)


@BOTH
def test_passes_that_move_nothing_release_their_followers(backend, cluster_of):
    """A zero-byte pass in the middle (astra-sim PR 102) and a route of one rank: the last pass still runs."""
    builder = ScheduleBuilder(n_ranks=2, bytes=MIB, chunk_bytes=MIB)
    route = builder.route([0, 1])
    first = builder.chain(builder.new_channel(), route, 0, MIB, 0, 1)
    empty = builder.chain(builder.new_channel(), route, 5, 5, 0, 1, after=[first])
    alone = builder.chain(builder.new_channel(), builder.route([1]), 0, MIB, 0, 0, after=[empty])
    builder.chain(builder.new_channel(), route, 0, MIB, 0, 1, after=[alone])
    schedule = builder.build()
    run = run_schedule(cluster_of(), schedule, one_nic_rows(schedule.hops()), backend=backend)
    assert run.pass_end_s == pytest.approx([MIB / B, MIB / B, MIB / B, 2 * MIB / B])
    assert not np.isnan(run.pass_start_s).any()
