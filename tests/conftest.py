"""What many tests need: small clusters written as data, and one plan run under a state and events."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import settings

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import ClusterSpec
from r2cc_simai.cluster.view import View
from r2cc_simai.engine.run import Backend, Run, run_schedule
from r2cc_simai.failures.timeline import Event
from r2cc_simai.strategies.base import Plan, Request
from r2cc_simai.strategies.registry import parse_strategy

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("repeatable")

ClusterOf = Callable[..., Cluster]
PlanFor = Callable[..., Plan]
Simulate = Callable[..., Run]


def _cluster_of(servers: int = 2, nics: int = 1, gpus: int = 1, gbps: float = 80.0, **keys: Any) -> Cluster:
    server = {
        "gpus": {"count": gpus},
        "nics": [{"count": nics, "rate_gbps": gbps, "header_bytes": 0}],
        "intra_server": {"rate_gbps": 100_000},
        **keys.pop("server", {}),
    }
    data = {
        "servers": servers,
        "server": server,
        "fabric": {"kind": "one-switch"},
        "failover": {"detection_ms": 0},
        **keys,
    }
    return Cluster("test", ClusterSpec.model_validate(data))


def _plan_for(cluster: Cluster, strategy: str, size: int, lost: Mapping[int, float] | None = None) -> Plan:
    fraction = tuple((lost or {}).get(n, 1.0) for n in range(len(cluster.nics)))
    request = Request("all_reduce", tuple(range(cluster.n_ranks)), size)
    return parse_strategy(strategy).plan(request, View(cluster, fraction))


def _simulate(
    cluster: Cluster,
    strategy: str,
    size: int,
    *,
    lost: Mapping[int, float] | None = None,
    events: tuple[Event, ...] = (),
    backend: Backend = Backend.FLOW,
) -> Run:
    plan = _plan_for(cluster, strategy, size, lost)
    known = tuple(Event(nic, fraction) for nic, fraction in (lost or {}).items())
    return run_schedule(cluster, plan.schedule, plan.binding, (*known, *events), backend)


@pytest.fixture(scope="session")
def cluster_of() -> ClusterOf:
    """Return a function that makes a cluster: 2 servers with a GPU and a NIC of 80 Gb/s (1e10 B/s) without headers."""
    return _cluster_of


@pytest.fixture(scope="session")
def plan_for() -> PlanFor:
    """Return a function: the plan of a strategy for an AllReduce where NICs are known to be at a `lost` fraction."""
    return _plan_for


@pytest.fixture(scope="session")
def simulate() -> Simulate:
    """Return a function: the run of that plan, with the NICs in that state from the start, and more events."""
    return _simulate
