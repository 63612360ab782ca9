"""One iteration of a job: the traces of all ranks on a cluster, under failures and a strategy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.detection.clock import Clock
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.engine.run import NicBytes, nic_bytes, nic_events
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.strategies.base import Strategy
from r2cc_simai.training.classes import Classes, each_for_itself, equal_ranks
from r2cc_simai.training.fold import no_fold, port_fold
from r2cc_simai.training.plan_loads import plan_loads
from r2cc_simai.training.plans import Planner
from r2cc_simai.training.ranks import NONE, Ranks

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Iteration:
    """One iteration that ran, or that was aborted. Seconds from its start.

    Columns have one entry per class of equal ranks (`classes.of_rank` says which is whose): `end_s` is when its last
    node ended; until then it computed, or moved bytes with nothing to compute (`exposed_s`), or waited for others.
    `communication_s` is the time in which bytes of its own moved, hidden or not. `by_role_s` (classes, roles) sums the
    times of its transfers, over group roles and then peer roles. `spans` (n, 4) holds class, node, start and end of
    what the recorded classes did.
    """

    elapsed_s: float
    aborted: str | None
    broken_nic: int
    ranks: Ranks
    classes: Classes
    end_s: Floats
    compute_s: Floats
    exposed_s: Floats
    waiting_s: Floats
    communication_s: Floats
    by_role_s: Floats
    bytes: NicBytes
    spans: Floats
    log: tuple[_core.LogEntry, ...]
    event_time_s: Floats
    notes: tuple[str, ...]
    nodes: int
    transfers: int
    steps: int

    @property
    def weights(self) -> Floats:
        """The share of the ranks that each class has."""
        share: Floats = self.classes.rank_count / self.classes.rank_count.sum()
        return share

    @property
    def exposed_share(self) -> float:
        """Part of the iteration in which the average rank moved bytes and computed nothing."""
        return float(self.weights @ self.exposed_s) / self.elapsed_s if self.elapsed_s else 0.0


def run_iteration(
    cluster: Cluster,
    ranks: Ranks,
    strategy: Strategy,
    timeline: Timeline,
    *,
    fold: bool = True,
    record: tuple[int, ...] = (),
) -> Iteration:
    """Runs one iteration. What failed at time 0 is known from its start; `record` are rows whose spans are kept.

    With `fold` equal ranks are simulated once.

    Raises:
        PartitionedError: failures leave ranks without a path, or ranks wait for ever (the message says for whom).
        InputError: the trace does not fit the cluster, or nodes of a group do not match.
    """
    _check(cluster, ranks, timeline)
    events = timeline.events if strategy.sees_failures else ()
    recovers = type(strategy).recover is not Strategy.recover
    clock = Clock(cluster, events, strategy.recover if recovers else None, strategy.failover_s)
    delay_s = clock.delay_s(0.0)
    slowed = cluster if delay_s in (None, cluster.resume_delay_s) else cluster.resuming_after(delay_s or 0.0)
    known_s = clock.known_s if strategy.survives else []  # communicators that stay what they are until they break
    views = [clock.view(0.0), *(clock.view(t) for t in known_s)]
    planner = Planner(strategy, views)
    if fold:
        classes = equal_ranks(ranks, cluster, events, plan_loads(ranks, planner, bool(cluster.leaves)))
    else:
        classes = each_for_itself(ranks, cluster)
    planner.groups = _groups(ranks, classes)
    try:
        out = _core.run_job(
            core_cluster(slowed),
            ranks=_rank_classes(ranks, classes, record),
            groups=_group_classes(ranks, classes),
            **port_fold(classes) if fold else no_fold(),
            known_s=known_s,
            events=nic_events(clock.ahead(0.0)),
            planner=planner.plan,
            react=planner.react if type(strategy).react is not Strategy.react else None,
            roofline=_roofline(ranks),
        )
    except ValueError as error:
        raise InputError(f"trace: {error}") from None
    if out.network.status in (_core.Status.PARTITIONED, _core.Status.UNFINISHED):
        raise PartitionedError(f"{out.network.reason} ({out.network.elapsed_s:.6g} s into the iteration)")
    return _iteration(out, ranks, classes, planner)


def _check(cluster: Cluster, ranks: Ranks, timeline: Timeline) -> None:
    if len(ranks) and int(ranks.rank.max()) >= cluster.n_ranks:
        raise InputError(
            f"the trace has ranks up to {int(ranks.rank.max())}, {cluster.name} has {cluster.n_ranks} GPUs "
            f"(a cluster of {_servers_for(cluster, int(ranks.rank.max()) + 1)} such servers would do)"
        )
    if any(event.at_bytes is not None for event in timeline.events):
        raise InputError(
            f"--fail {timeline.pattern}: a failure by byte count is not known here; give a time in seconds"
        )


def _roofline(ranks: Ranks) -> _core.Roofline | None:
    """Matrix products' share of the peak and the memory's: what a node is made of is not known."""
    gpu = ranks.gpu
    if gpu is None:
        return None
    rates = gpu.peak_flops * gpu.efficiency.gemm, gpu.memory_rate * gpu.efficiency.memory
    return _core.Roofline(flops_per_s=rates[0], bytes_per_s=rates[1], floor_s=gpu.kernel_floor)


def _servers_for(cluster: Cluster, n_ranks: int) -> int:
    return -(-n_ranks // len(cluster.servers[0].ranks))


def _groups(ranks: Ranks, classes: Classes) -> list[tuple[int, ...]]:
    return [tuple(int(r) for r in np.sort(ranks.rank[ranks.members[g]])) for g in classes.first_group]


def _rank_classes(ranks: Ranks, classes: Classes, record: tuple[int, ...]) -> list[_core.RankClass]:
    recorded = {int(classes.of_rank[row]) for row in record}
    out = []
    for number, row in enumerate(classes.first_rank):
        groups, peers = ranks.groups[row], ranks.peers[row]
        out.append(
            _core.RankClass(
                trace=ranks.traces[ranks.trace_of[row]],
                rank=int(ranks.rank[row]),
                count=float(classes.rank_count[number]),
                groups=np.where(groups == NONE, NONE, classes.of_group[groups]),
                peers=np.where(peers == NONE, NONE, classes.of_rank[peers]),
                peer_ranks=np.where(peers == NONE, NONE, ranks.rank[peers]),
                recorded=number in recorded,
            )
        )
    return out


def _group_classes(ranks: Ranks, classes: Classes) -> list[_core.GroupClass]:
    return [
        _core.GroupClass(name=ranks.names[g], size=len(ranks.members[g]), copies=float(count))
        for g, count in zip(classes.first_group, classes.group_count, strict=True)
    ]


def _iteration(out: _core.JobOutcome, ranks: Ranks, classes: Classes, planner: Planner) -> Iteration:
    times = out.classes
    roles = ranks.groups.shape[1] + ranks.peers.shape[1]
    return Iteration(
        elapsed_s=out.network.elapsed_s,
        aborted=out.network.reason if out.network.status is _core.Status.ABORTED else None,
        broken_nic=planner.aborted_by,
        ranks=ranks,
        classes=classes,
        end_s=np.array([t.end_s for t in times]),
        compute_s=np.array([t.compute_s for t in times]),
        exposed_s=np.array([t.exposed_s for t in times]),
        waiting_s=np.array([t.waiting_s for t in times]),
        communication_s=np.array([t.communication_s for t in times]),
        by_role_s=np.array([t.by_role_s for t in times]).reshape(len(times), roles),
        bytes=nic_bytes(out.network),
        spans=out.spans(),
        log=tuple(out.network.log),
        event_time_s=np.array(out.network.event_time_s),
        notes=tuple(planner.notes),
        nodes=out.nodes,
        transfers=out.collectives,
        steps=out.network.steps,
    )
