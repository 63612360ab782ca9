"""The static checker: right schedules pass, and a schedule that is broken in each way is caught and named."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.checker import check_schedule
from r2cc_simai.collectives.schedule import Pass, Schedule, ScheduleBuilder
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.registry import parse_strategy


def ring(n: int, size: int) -> Schedule:
    builder = ScheduleBuilder(n_ranks=n, bytes=size, chunk_bytes=64)
    builder.ring(builder.new_channel(), builder.route(range(n)), 0, size)
    return builder.build()


def two_stages(n: int, size: int) -> Schedule:
    """Reduce down a chain to the last rank, then spread the sum along the way back."""
    builder = ScheduleBuilder(n_ranks=n, bytes=size, chunk_bytes=64)
    down, back = builder.route(range(n)), builder.route(range(n - 1, -1, -1))
    summed = builder.chain(builder.new_channel(), down, 0, size, n - 1, 0)
    builder.chain(builder.new_channel(), back, 0, size, 0, n - 1, after=[summed])
    return builder.build()


@pytest.mark.parametrize("n", range(2, 18))
@pytest.mark.parametrize("size", [0, 1, 13, 1_000_003])
def test_rings_and_chains_reduce_everything_once(n: int, size: int) -> None:
    assert check_schedule(ring(n, size)) is None
    assert check_schedule(two_stages(n, size)) is None


@pytest.mark.parametrize("n", range(3, 18))
@pytest.mark.parametrize("k", [1, 4, 7])
@pytest.mark.parametrize("y", ["x", "opt"])
def test_r2cc_allreduce_reduces_everything_once(n: int, k: int, y: str) -> None:
    """For n members with one NIC each, an odd size and any K, whoever is degraded."""
    cluster = load_cluster(f"uniformx{n}")
    degraded = (5 * k) % n
    view = View(cluster, tuple(0.6 if nic.server == degraded else 1.0 for nic in cluster.nics))
    request = Request("all_reduce", tuple(range(n)), 17 * 2**20 + 1)
    plan = parse_strategy(f"r2cc-allreduce:k={k},y={y}").plan(request, view)
    assert plan.note == ""
    assert check_schedule(plan.schedule) is None


def changed(schedule: Schedule, index: int, change: Callable[[Pass], Pass]) -> Schedule:
    passes = list(schedule.passes)
    passes[index] = change(passes[index])
    return replace(schedule, passes=tuple(passes))


BROKEN = {
    "a hop too few leaves a rank without the sum": (
        changed(ring(4, 100), 0, lambda p: replace(p, copy_hops=p.copy_hops - 1)),
        "are missing",
    ),
    "a reduce hop too many adds a contribution twice": (
        changed(ring(4, 100), 0, lambda p: replace(p, reduce_hops=p.reduce_hops + 1)),
        "more than once",
    ),
    "copying where it should add loses contributions": (
        changed(ring(4, 100), 0, lambda p: replace(p, reduce_hops=2, copy_hops=4)),
        "are missing",
    ),
    "a section that is left out": (
        changed(ring(4, 100), 0, lambda p: replace(p, hi=np.concatenate([p.hi[:-1], p.lo[-1:]]))),
        "are missing",
    ),
    "a stage that does not wait for the one before": (
        changed(two_stages(4, 100), 1, lambda p: replace(p, after=())),
        "neither waits",
    ),
}


@pytest.mark.parametrize(("schedule", "what"), BROKEN.values(), ids=BROKEN)
def test_a_broken_schedule_is_caught(schedule: Schedule, what: str) -> None:
    violation = check_schedule(schedule)
    assert violation is not None
    assert what in str(violation)
    assert "rank" in str(violation)


def test_two_passes_over_the_same_bytes_need_an_order() -> None:
    """Two rings over the same bytes at once: the result would depend on timing."""
    builder = ScheduleBuilder(n_ranks=3, bytes=90, chunk_bytes=64)
    route = builder.route(range(3))
    builder.ring(builder.new_channel(), route, 0, 60)
    builder.ring(builder.new_channel(), route, 50, 90)
    assert "passes 0 and 1" in str(check_schedule(builder.build()))
