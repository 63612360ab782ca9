"""A training job through a failure: the iteration before, the one that is hit, the ones after, and what that costs.

Time 0 is the start of an iteration. A failure at time 0 is known from the start, so that there is no iteration that is
hit. Where a strategy aborts, the job reacts as the strategy says: it restarts (lost work, detection, isolation and
loading the checkpoint are the strategy's options), or it goes on without the data-parallel replicas of the ranks that
the failure took, and repeats the iteration.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.detection.clock import Clock
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.timeline import Event, Timeline
from r2cc_simai.strategies.base import Aborted, Continue, Restart, Shrink, Strategy
from r2cc_simai.strategies.ideal import Ideal
from r2cc_simai.training.iteration import Iteration, run_iteration
from r2cc_simai.training.ranks import Ranks

_AT_ONCE_S = 1e-9  # after the start of an iteration, so that nobody knows at its start
MOST_ABORTS = 100  # of one iteration, before the job is called unfinished


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """Ranks on a cluster. `replica` (n,) is the data-parallel replica of each rank; None: nobody knows.

    `tokens` is what one iteration of all replicas processes; 0 where the trace does not say.
    """

    name: str
    cluster: Cluster
    ranks: Ranks
    replica: NDArray[np.int64] | None
    tokens: int

    @cached_property
    def healthy(self) -> Iteration:
        """An iteration in which nothing fails.

        Raises:
            InputError: nothing in the trace takes any time, so that no share of it can be told.
        """
        run = run_iteration(self.cluster, self.ranks, Ideal(), Timeline())
        if run.elapsed_s == 0:
            raise InputError(f"{self.name}: nothing in the trace takes any time: no duration, no bytes")
        return run


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What a strategy made of a failure. Times in seconds.

    `hit` is the iteration in which something failed, None where all failed before it; `hit_s` is its time from its
    start until it was done, restarts included. `after` is an iteration of the job as it goes on; `dropped` ranks are
    not part of it.
    """

    job: TrainingJob
    strategy: Strategy
    timeline: Timeline
    hit: Iteration | None
    hit_s: float | None
    after: Iteration
    dropped: tuple[int, ...]
    stopped_s: float
    notes: tuple[str, ...]

    @property
    def tokens_left(self) -> float:
        """Tokens of one iteration on the replicas that are left."""
        return self.job.tokens * (1 - len(self.dropped) / len(self.job.ranks))

    @property
    def tokens_per_s(self) -> float:
        """Throughput after the failure; 0 where the trace names no tokens."""
        return self.tokens_left / self.after.elapsed_s

    @property
    def work_factor(self) -> float:
        """How many times as many iterations the same tokens take."""
        return len(self.job.ranks) / (len(self.job.ranks) - len(self.dropped))

    @property
    def overhead(self) -> float:
        """Healthy throughput over the throughput after the failure, minus one."""
        return self.work_factor * self.after.elapsed_s / self.job.healthy.elapsed_s - 1

    @property
    def hit_extra_s(self) -> float:
        """Time that the failure costs once, beside what each later iteration costs more."""
        return 0.0 if self.hit_s is None else max(0.0, self.hit_s - self.job.healthy.elapsed_s)


def run_training(
    job: TrainingJob, strategy: Strategy, timeline: Timeline, *, fold: bool = True, record: tuple[int, ...] = ()
) -> TrainingResult:
    """Simulates the iteration that a failure hits, if one does, and one after it. `record`: as in `run_iteration`.

    Raises:
        PartitionedError: the failures leave ranks without a path, or the job cannot go on.
        InputError: the trace does not fit the cluster or the strategy.
    """
    return _TrainingRun(job, strategy, timeline, fold, record).run()


class _TrainingRun:
    def __init__(
        self, job: TrainingJob, strategy: Strategy, timeline: Timeline, fold: bool, record: tuple[int, ...]
    ) -> None:
        self._job, self._strategy = job, strategy
        self._healthy_s = job.healthy.elapsed_s
        self._pattern = timeline.pattern
        self._timeline = timeline
        self._left = timeline.events if strategy.sees_failures else ()
        self._fold, self._record = fold, record
        self._dropped: NDArray[np.bool_] = np.zeros(len(job.ranks), dtype=bool)
        self._stopped_s = 0.0
        self._notes: dict[str, None] = {}

    def run(self) -> TrainingResult:
        self._drop_members(self._view_at(0.0))
        hit, hit_s = None, None
        if any(event.time_s > 0 for event in self._left):
            self._go_to_first()
            hit, hit_s = self._through()
            self._drop_members(self._view_at(0.0))
        after = self._iterate()
        return TrainingResult(
            job=self._job,
            strategy=self._strategy,
            timeline=self._timeline,
            hit=hit,
            hit_s=hit_s,
            after=after,
            dropped=tuple(int(r) for r in self._job.ranks.rank[self._dropped]),
            stopped_s=self._stopped_s,
            notes=tuple(self._notes),
        )

    def _go_to_first(self) -> None:
        """Skips whole iterations, all alike, up to the one in which something changes for the first time."""
        first_s = min(event.time_s for event in self._left if event.time_s > 0)
        known = tuple(event for event in self._left if event.time_s <= 0)
        calm_s = self._run(Timeline(known, self._pattern)).elapsed_s if known else self._healthy_s
        whole = int(first_s // calm_s)
        if whole:
            self._notes[f"iterations are numbered from 1; the failure comes in iteration {whole + 1}"] = None
        self._left = known + tuple(
            replace(event, time_s=event.time_s - whole * calm_s) for event in self._left if event.time_s > 0
        )

    def _through(self) -> tuple[Iteration, float]:
        """The iteration that begins at 0, until it is done; afterwards what is left of the timeline is known."""
        hit = self._iterate()
        if hit.aborted is None and not self._strategy.survives:
            self._unnoticed()
            hit = self._iterate()
        run, now = hit, hit.elapsed_s
        for _ in range(MOST_ABORTS):
            if run.aborted is None:
                break
            now += self._after_abort(run, now)
            self._known_by(now)
            run = self._iterate()
            now += run.elapsed_s
        else:
            raise PartitionedError(f"{self._strategy.spec}: the iteration was aborted {MOST_ABORTS} times")
        late = [event for event in self._left if event.time_s > now]
        if late:
            nic = self._job.cluster.nics[late[0].nic].full_name
            self._notes[f"{nic} changes again after that iteration; 'after' is with all changes known"] = None
        self._known_by(float("inf"))
        return hit, now

    def _unnoticed(self) -> None:
        """Nothing had to pass a NIC after its failure, so that the next iteration is the one that finds it dead."""
        self._left = tuple(replace(e, time_s=min(e.time_s, _AT_ONCE_S)) if e.fraction < 1 else e for e in self._left)

    def _iterate(self) -> Iteration:
        return self._run(Timeline(self._left, self._pattern))

    def _run(self, events: Timeline) -> Iteration:
        ranks = self._job.ranks.without(self._dropped) if self._dropped.any() else self._job.ranks
        row = {int(rank): i for i, rank in enumerate(ranks.rank)}
        record = tuple(row[r] for r in self._record if r in row)
        run = run_iteration(self._job.cluster, ranks, self._strategy, events, fold=self._fold, record=record)
        self._notes.update(dict.fromkeys(run.notes))
        return run

    def _known_by(self, now_s: float) -> None:
        """What has happened by now is known from the start of the next iteration."""
        state: dict[int, Event] = {}
        for event in self._left:
            if event.time_s <= now_s:
                state[event.nic] = replace(event, time_s=0.0)
        gone = tuple(event for event in state.values() if event.fraction < 1)
        self._left = gone + tuple(replace(e, time_s=e.time_s - now_s) for e in self._left if e.time_s > now_s)

    def _after_abort(self, run: Iteration, now_s: float) -> float:
        """Seconds until the job runs again."""
        view = self._view_at(now_s)
        group = tuple(int(r) for r in run.ranks.rank)
        answer = self._strategy.job_react(Aborted(run.aborted or "", run.broken_nic, view, group))
        if isinstance(answer, Continue):
            raise PartitionedError(f"{self._strategy.spec}: {run.aborted}")
        if isinstance(answer, Shrink):
            self._drop(answer.ranks)
        if isinstance(answer, Restart) and answer.repaired:
            self._left = tuple(event for event in self._left if event.time_s > now_s)
        self._stopped_s += answer.cost_s
        return answer.cost_s

    def _view_at(self, now_s: float) -> View:
        return Clock(self._job.cluster, self._left, None, self._strategy.failover_s).view(now_s)

    def _drop_members(self, view: View) -> None:
        """Drops the ranks that the strategy does without in a known state."""
        group = tuple(int(r) for r in self._job.ranks.rank)
        members = set(self._strategy.members(group, view))
        self._drop(tuple(rank for rank in group if rank not in members))

    def _drop(self, gone: tuple[int, ...]) -> None:
        """Drops the replicas of some ranks.

        Raises:
            InputError: nobody knows which ranks are a replica.
            PartitionedError: no replica is left.
        """
        if not gone:
            return
        if self._job.replica is None:
            raise InputError(f"strategy {self._strategy.spec}: the trace does not say which ranks are a replica")
        lost = self._job.replica[np.isin(self._job.ranks.rank, gone)]
        self._dropped |= np.isin(self._job.replica, lost)
        if self._dropped.all():
            raise PartitionedError(f"{self._strategy.spec}: no data-parallel replica is left without rank {gone[0]}")
