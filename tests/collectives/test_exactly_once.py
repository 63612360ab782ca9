"""Every plan leaves every contribution exactly once on every rank: two independent executions on paper.

The first is written here with integers, the second is the project's checker. What the chunk backend executes is judged
by its provenance.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.collectives.checker import check_schedule, check_trace
from r2cc_simai.collectives.schedule import Pass, Schedule, ScheduleBuilder, pieces
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.errors import PartitionedError

MIB = 2**20
PLANS = [
    ("ideal", {}),
    ("balance", {0: 0.0}),
    ("balance:split=weighted", {0: 0.25}),
    ("hot-repair", {1: 0.0}),
    ("r2cc-allreduce:k=3", {0: 0.5}),
    ("r2cc-allreduce:k=5,y=opt", {2: 0.0}),
]


def contributions(schedule):
    """What each rank holds at the end, per byte range: how often it holds the data of each rank."""
    cuts = np.unique(
        np.concatenate([[0, schedule.bytes], *([p.lo for p in schedule.passes] + [p.hi for p in schedule.passes])])
    )
    held = [[Counter({rank: 1}) for _ in cuts[:-1]] for rank in range(schedule.n_ranks)]
    for one in schedule.passes:
        route = schedule.routes[one.route]
        for lo, hi, start in zip(one.lo, one.hi, one.start, strict=True):
            for i in range(*np.searchsorted(cuts, [lo, hi])):
                for hop in range(one.reduce_hops + one.copy_hops):
                    src, dst = (route[(start + hop + k) % len(route)] for k in (0, 1))
                    arriving = held[src][i]
                    held[dst][i] = held[dst][i] + arriving if hop < one.reduce_hops else Counter(arriving)
    return held


@pytest.mark.parametrize("size", [16 * MIB, 16 * MIB + 5, 17_000_003])
@pytest.mark.parametrize("name", ["r7525", "h100x2", "uniformx5"])
@pytest.mark.parametrize(("strategy", "lost"), PLANS)
def test_every_plan_is_an_all_reduce(strategy, lost, name, size, plan_for):
    """Each rank ends with {0: 1, 1: 1, ..., p-1: 1} on every byte."""
    cluster = load_cluster(name)
    lost = {nic: f or (0.5 if name == "uniformx5" else 0.0) for nic, f in lost.items()}
    schedule = plan_for(cluster, strategy, size, lost).schedule
    everything = Counter(range(cluster.n_ranks))
    assert all(cell == everything for rank in contributions(schedule) for cell in rank)
    assert check_schedule(schedule) is None


@given(size=st.integers(1, 2_000_000), servers=st.integers(2, 6), nics=st.integers(1, 3), gpus=st.integers(1, 2))
def test_rings_cover_every_byte_of_any_size(size, servers, nics, gpus, cluster_of, plan_for):
    """For example 3 ranks and 1,000,003 bytes."""
    cluster = cluster_of(servers=servers, nics=nics, gpus=gpus)
    held = contributions(plan_for(cluster, "ideal", size).schedule)
    everything = Counter(range(cluster.n_ranks))
    assert all(cell == everything for rank in held for cell in rank)


def test_three_ranks_and_1000003_bytes(cluster_of, plan_for):
    """The sections of the ring are 333,334 or 333,335 bytes, from 0 to 1,000,003 without a gap."""
    ring = plan_for(cluster_of(servers=3), "ideal", 1_000_003).schedule.passes[0]
    assert ring.lo.tolist() == [0, *ring.hi[:-1].tolist()]
    assert ring.hi[-1] == 1_000_003
    assert set((ring.hi - ring.lo).tolist()) == {333_334, 333_335}


@given(lo=st.integers(0, 10**12), length=st.integers(0, 10**9), n=st.integers(1, 50))
def test_pieces_differ_by_at_most_a_byte(lo, length, n):
    """n + 1 bounds from lo to hi."""
    bounds = pieces(lo, lo + length, n)
    sizes = np.diff(bounds)
    assert (bounds[0], bounds[-1], len(bounds)) == (lo, lo + length, n + 1)
    assert sizes.max() - sizes.min() <= 1


def with_pass(schedule, index, **changes):
    """The schedule with one pass changed."""
    old = schedule.passes[index]
    values = {f: getattr(old, f) for f in Pass.__dataclass_fields__}
    passes = list(schedule.passes)
    passes[index] = Pass(**{**values, **changes})
    return Schedule(schedule.n_ranks, schedule.bytes, schedule.routes, tuple(passes))


@pytest.fixture(scope="session")
def ring(cluster_of, plan_for):
    """Return a ring over 4 ranks, 4 bytes each."""
    return plan_for(cluster_of(servers=4), "ideal", 16).schedule


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"reduce_hops": 2}, "missing"),
        ({"reduce_hops": 4}, "more than once"),
        ({"copy_hops": 2}, "missing"),
        ({"hi": np.array([4, 8, 12, 15])}, "missing"),
    ],
)
def test_the_checker_finds_a_ring_that_is_wrong(ring, changes, what):
    """A hop too few or too many, the last byte forgotten."""
    assert check_schedule(ring) is None
    violation = check_schedule(with_pass(ring, 0, **changes))
    assert violation is not None
    assert what in str(violation)


def test_the_checker_finds_a_race():
    """Two passes add to the same bytes of the same ranks, and neither waits for the other."""
    builder = ScheduleBuilder(n_ranks=2, bytes=8, chunk_bytes=8)
    for ends in ([0, 1], [1, 0]):
        builder.chain(builder.new_channel(), builder.route(ends), 0, 8, 1, 0)
    violation = check_schedule(builder.build())
    assert violation is not None
    assert "neither waits for the other" in str(violation)


@settings(max_examples=30)
@given(
    cut=st.floats(0, 1.1),
    detection=st.floats(0, 0.5),
    latency_us=st.sampled_from([0, 50]),
    plan=st.sampled_from([p for p in PLANS if p[0] != "ideal"]),
    second=st.one_of(st.none(), st.floats(0, 1.1)),
)
def test_what_was_executed_is_an_all_reduce_whenever_the_cut_comes(
    cut, detection, latency_us, plan, second, cluster_of, plan_for
):
    """NIC 4 (server 1) is cut during the run, and perhaps NIC 3 too: exactly once, by the chunks' own bit masks."""
    strategy, lost = plan
    lost = {nic: f or 0.5 for nic, f in lost.items()}
    size = 16 * MIB
    unit = size / 1e10
    cluster = cluster_of(
        servers=3,
        nics=3,
        transport={"chunk_kib": 128, "window_chunks": 3, "step_latency_us": latency_us},
        failover={"detection_ms": detection * unit * 1e3},
    )
    made = plan_for(cluster, strategy, size, lost)
    schedule = made.schedule
    events = [_core.NicEvent(nic=nic, fraction=f) for nic, f in lost.items()]
    events.append(_core.NicEvent(nic=4, fraction=0.0, time_s=cut * unit))
    if second is not None:
        events.append(_core.NicEvent(nic=3, fraction=0.0, time_s=second * unit))
    provenance = _core.Provenance(schedule.core)
    out = _core.run_chunk(core_cluster(cluster), schedule.core, made.binding.core, events, None, provenance=provenance)
    assert out.status == _core.Status.DONE
    assert check_trace(schedule, provenance) is None


def test_duplicates_that_are_not_dropped_are_found(cluster_of, plan_for):
    """The negative control: a receiver that adds a repeated chunk again holds contributions more than once."""
    size = 16 * MIB
    cluster = cluster_of(
        servers=3,
        nics=2,
        transport={"chunk_kib": 64, "window_chunks": 16, "step_latency_us": 50},
        failover={"detection_ms": 0.1},
    )
    made = plan_for(cluster, "hot-repair", size)
    provenance = _core.Provenance(made.schedule.core)
    out = _core.run_chunk(
        core_cluster(cluster),
        made.schedule.core,
        made.binding.core,
        [_core.NicEvent(nic=0, fraction=0.0, time_s=0.4 * size / 1e10)],
        None,
        provenance=provenance,
        drop_duplicates=False,
    )
    assert out.status == _core.Status.DONE
    violation = check_trace(made.schedule, provenance)
    assert violation is not None
    assert "more than once" in str(violation)


def test_a_server_without_a_nic_has_no_plan(cluster_of, plan_for):
    """Both NICs of server 0 are known to be down."""
    with pytest.raises(PartitionedError, match="server0: no NIC left"):
        plan_for(cluster_of(nics=2), "balance", 100, {0: 0.0, 1: 0.0})
