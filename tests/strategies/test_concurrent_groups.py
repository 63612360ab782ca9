"""Planning per server over all concurrent communicators: 16 servers, tensor parallelism 8, so eight data-parallel
groups of 16 ranks that own one rail each.

One dead NIC of eight is X = 1/8 for all of them under Balance (8/7), but 2 for the groups whose rails share a NIC under
hot repair (design: planning is per server, not per group).
"""

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Event
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.concurrent import plan_concurrent
from r2cc_simai.strategies.registry import parse_strategy

SERVERS, GPUS, SIZE = 16, 8, 2**28
BACKENDS = pytest.mark.parametrize("backend", list(Backend))


def times(strategy: str, dead: int | None, backend: Backend) -> np.ndarray:
    """When each of the eight groups has ended, in units of the healthy time."""
    cluster = load_cluster(f"h100x{SERVERS}").zero_latency()
    groups = [tuple(range(rail, SERVERS * GPUS, GPUS)) for rail in range(GPUS)]
    view = View(cluster, tuple(0.0 if nic.index == dead else 1.0 for nic in cluster.nics))
    plan, spans = plan_concurrent(parse_strategy(strategy), [Request("all_reduce", g, SIZE) for g in groups], view)
    events = () if dead is None else (Event(dead, 0.0),)
    run = run_schedule(cluster, plan.schedule, plan.binding, events, backend)
    nic = cluster.nics[0]
    healthy = 2 * (SERVERS - 1) / SERVERS * SIZE / nic.payload_rate
    return np.array([run.pass_end_s[span].max() for span in spans]) / healthy


@BACKENDS
def test_healthy_groups_have_a_rail_each(backend: Backend) -> None:
    """T = 2(n-1)/n D/B for each, B the rate of one NIC."""
    assert times("ideal", None, backend) == pytest.approx(np.ones(GPUS), rel=1e-3)


@BACKENDS
def test_hot_repair_slows_two_groups_by_two(backend: Backend) -> None:
    """The dead NIC's group and the one whose NIC is the backup share it; the other six go on as before."""
    assert sorted(times("hot-repair", 3, backend)) == pytest.approx([1.0] * 6 + [2.0] * 2, rel=1e-3)


@BACKENDS
def test_balance_slows_all_eight_by_eight_sevenths(backend: Backend) -> None:
    """X = 1/8 for all: 1/(1-X) = 8/7."""
    assert times("balance", 3, backend) == pytest.approx(np.full(GPUS, 8 / 7), rel=0.01)


def test_groups_that_overlap_are_refused() -> None:
    cluster = load_cluster("h100x2")
    requests = [Request("all_reduce", (0, 8), 1), Request("all_reduce", (8, 9), 1)]
    with pytest.raises(InputError, match="rank 8 is in two groups"):
        plan_concurrent(parse_strategy("balance"), requests, View.healthy(cluster))
