"""One iteration of a job: the traces of all ranks on a cluster, under failures and a strategy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.engine import _core
from r2cc_simai.engine.run import NicBytes, nic_bytes
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.strategies.base import Strategy
from r2cc_simai.training.classes import Classes
from r2cc_simai.training.execute import Execution
from r2cc_simai.training.ranks import Ranks
from r2cc_simai.training.resumption import Resumption, resumption_of
from r2cc_simai.training.situation import situation_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Iteration:
    """One iteration that ran, or that was aborted. Seconds from its start.

    Columns have one entry per class of equal ranks (`classes.of_rank` says which is whose): `end_s` is when its last
    node ended; until then it computed, or moved bytes with nothing to compute (`exposed_s`), or waited for others.
    `communication_s` is the time in which bytes of its own moved, hidden or not. `by_role_s` (classes, roles) sums the
    times of its transfers, over group roles and then peer roles. `spans` (n, 4) holds class, node, start and end of
    what the recorded classes did. `log`, `event_time_s`, `transfers` and `steps` are of what was simulated now; where
    that was the end of an iteration whose start was known, of the end.
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

    With `fold` equal ranks are simulated once, and, where no spans are kept, what cells do for themselves is not
    simulated again.

    Raises:
        PartitionedError: failures leave ranks without a path, or ranks wait for ever (the message says for whom).
        InputError: the trace does not fit the cluster, or nodes of a group do not match.
    """
    _check(cluster, ranks, timeline)
    execution = Execution.of(situation_of(cluster, strategy, timeline), ranks, fold=fold)
    resumption = resumption_of(execution) if fold and not record else None
    out = execution.run(record=record, start=resumption.start if resumption else None)
    if out.network.status in (_core.Status.PARTITIONED, _core.Status.UNFINISHED):
        raise PartitionedError(f"{out.network.reason} ({out.network.elapsed_s:.6g} s into the iteration)")
    return _iteration(out, execution, resumption)


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


def _servers_for(cluster: Cluster, n_ranks: int) -> int:
    return -(-n_ranks // len(cluster.servers[0].ranks))


def _iteration(out: _core.JobOutcome, execution: Execution, resumption: Resumption | None) -> Iteration:
    ranks, planner = execution.ranks, execution.planner
    times = out.classes()
    moved = nic_bytes(out.network)
    notes = dict.fromkeys(planner.notes)
    if resumption is not None:
        ended = np.maximum(times[:, 0], resumption.classes[:, 0])
        times = times + resumption.classes
        times[:, 0] = ended
        tx, rx, tx_payload, rx_payload = resumption.nics.T
        moved = NicBytes(moved.rx + rx, moved.tx + tx, moved.rx_payload + rx_payload, moved.tx_payload + tx_payload)
        notes = dict.fromkeys((*resumption.notes, *notes))
    return Iteration(
        elapsed_s=out.network.elapsed_s,
        aborted=out.network.reason if out.network.status is _core.Status.ABORTED else None,
        broken_nic=planner.aborted_by,
        ranks=ranks,
        classes=execution.classes,
        end_s=times[:, 0],
        compute_s=times[:, 1],
        exposed_s=times[:, 2],
        waiting_s=times[:, 3],
        communication_s=times[:, 4],
        by_role_s=times[:, 5:],
        bytes=moved,
        spans=out.spans(),
        log=tuple(out.network.log),
        event_time_s=np.array(out.network.event_time_s),
        notes=tuple(notes),
        nodes=out.nodes,
        transfers=out.collectives,
        steps=out.network.steps,
    )
