"""A change that is really made: one parameter of a strategy or of a cluster, simulated again."""

from collections.abc import Callable, Sequence

import pytest

from r2cc_simai.baseline.verdict import family
from r2cc_simai.baseline.wording import moved_groups
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.engine.run import Backend
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.results import Row
from r2cc_simai.runners.collective import Job
from r2cc_simai.runners.rows import job_rows, simulate
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.r2cc_allreduce import R2ccAllReduce
from r2cc_simai.strategies.registry import parse_strategy

STRATEGIES = tuple(map(parse_strategy, ("hot-repair", "balance", "r2cc-allreduce:k=128", "optcc:k=128")))


class FewerChunks(R2ccAllReduce):
    """R2CC-AllReduce with a mistake: it says K = 128 and pipelines 20 chunks."""

    def plan(self, request: Request, view: View) -> Plan:
        return R2ccAllReduce(k=20).plan(request, view)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Return 4 servers of one GPU and one NIC each."""
    return load_cluster("uniformx4").zero_latency()


Sweep = Callable[..., list[Row]]


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    """Return a function: a small sweep on a cluster, with a NIC at half its rate."""

    def run(cluster: Cluster, strategies: Sequence[Strategy] = STRATEGIES) -> list[Row]:
        job = Job(1 << 30, "all_reduce", iterations=1, warmup=0, backend=Backend.FLOW)
        timeline = parse_failures(["server0.nic0=0.5@0"], cluster)
        results = [simulate(cluster, strategy, timeline, job) for strategy in strategies]
        return [row for result in results for row in job_rows(result, "small", nic_bytes=False)]

    return run


def test_fewer_chunks_of_r2cc_allreduce_are_caught_and_named(cluster, sweep, compare):
    """T = T0 (1 + X (1 + 1/K) n/(n-1)) at n = 4, X = 1/2: K from 128 to 20 costs 2/3 (1/20 - 1/128) T0, 1.7% of T."""
    changed = [FewerChunks(k=128) if isinstance(s, R2ccAllReduce) else s for s in STRATEGIES]
    verdict = compare(sweep(cluster), sweep(cluster, changed))
    (group,) = moved_groups(verdict)
    assert (group.strategy, len(verdict.findings)) == ("r2cc-allreduce", len(group.findings))
    assert group.findings[0].change_pct == pytest.approx(100 * (2 / 3 * (1 / 20 - 1 / 128)) / (5 / 3), rel=0.05)


def test_a_slower_cluster_moves_every_strategy(cluster, sweep, compare):
    """2% less of the NICs' rate is 2% more time for all, and no other overhead."""
    spec = cluster.spec
    nics = [nic.model_copy(update={"rate_gbps": nic.rate_gbps / 1.02}) for nic in spec.server.nics]
    slower = Cluster(cluster.name, spec.model_copy(update={"server": spec.server.model_copy(update={"nics": nics})}))
    verdict = compare(sweep(cluster), sweep(slower))
    assert {group.strategy for group in moved_groups(verdict)} == {family(s.spec) for s in STRATEGIES}
    assert all(f.change_pct == pytest.approx(2.0) for f in verdict.findings)
    assert all(f.overhead_points == pytest.approx(0.0, abs=1e-6) for f in verdict.findings)


def test_the_same_sweep_again_is_clean(cluster, sweep, compare):
    assert compare(sweep(cluster), sweep(cluster)).findings == ()
