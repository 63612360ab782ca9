"""A job of equal collectives, one after another, while NICs fail: what nccl-tests would measure, simulated.

Time 0 is the start of the first timed iteration; warm-up iterations ran before, on the cluster as it is at time 0. A
failure at time 0 is known from the start. One that comes later is known after detection, notice and migration, and a
new plan takes effect with the next collective; the running one finishes on its old plan over other NICs.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.operations import default_group
from r2cc_simai.detection.clock import Clock
from r2cc_simai.detection.outage import Recovery
from r2cc_simai.engine import _core
from r2cc_simai.engine.run import Backend, NicBytes, React, Run, hit, run_schedule
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.strategies.base import Abort, Aborted, Break, Continue, Plan, Rebind, Request, Shrink, Strategy

MOST_RESTARTS = 100  # of one collective, before the job is called unfinished


@dataclass(frozen=True)
class Job:
    """What runs: `iterations` timed collectives after `warmup` ones, with CUDA graphs or without.

    `root` is the rank where a broadcast starts and a reduce ends.
    """

    bytes: int
    op: str = "all_reduce"
    iterations: int = 20
    warmup: int = 5
    graph: bool = False
    backend: Backend = Backend.FLOW
    root: int = 0

    def group(self, cluster: Cluster) -> tuple[int, ...]:
        """All ranks in the order in which the job numbers them."""
        return default_group(self.op, cluster)


@dataclass(frozen=True, eq=False)
class Iteration:
    """One timed collective: its time (with the one-off costs named beside), whether a failure hit it, its bytes.

    `group` are the ranks that took part.
    """

    start_s: float
    time_s: float
    one_off_s: float
    cut: bool
    bytes: NicBytes
    run: Run
    note: str
    group: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class JobResult:
    """The timed iterations of a job. `late` names failures that came after its end.

    `recoveries` says of each NIC that came back what the strategy's recovery protocol made of it; `n_ranks` is how many
    ranks the job began with.
    """

    job: Job
    strategy: Strategy
    iterations: tuple[Iteration, ...]
    late: str
    n_ranks: int
    recoveries: tuple[Recovery, ...] = ()

    @property
    def steady(self) -> Iteration | None:
        """The last iteration that no failure hit and that had no one-off cost."""
        calm = [i for i in self.iterations if not i.cut and i.one_off_s == 0]
        return calm[-1] if calm else None

    @property
    def first(self) -> Iteration | None:
        """The last iteration that carried one-off costs."""
        costly = [i for i in self.iterations if i.one_off_s > 0 and not i.cut]
        return costly[-1] if costly else None

    @property
    def cut(self) -> Iteration | None:
        """The first iteration that a failure or repair hit."""
        return next((i for i in self.iterations if i.cut), None)

    @property
    def work_factor(self) -> float:
        """How much longer a fixed amount of work takes on the ranks that are left, n / (n - k)."""
        return self.n_ranks / len(self.iterations[-1].group)

    @property
    def notes(self) -> list[str]:
        """What the user should know, each once."""
        notes = list(dict.fromkeys(i.note for i in self.iterations if i.note))
        notes += [recovery.note for recovery in self.recoveries]
        lost = self.n_ranks - len(self.iterations[-1].group)
        if lost:
            notes.append(
                f"{self.strategy.spec}: {lost} of {self.n_ranks} ranks dropped; a fixed amount of work takes "
                f"{self.work_factor:.4g} times as many iterations"
            )
        return [*notes, *([self.late] if self.late else [])]


@lru_cache(maxsize=8)
def planned(strategy: Strategy, request: Request, view: View) -> Plan:
    """The strategy's plan; equal requests in equal states share one. A few are kept: a plan may take megabytes."""
    return strategy.plan(request, view)


@lru_cache(maxsize=64)
def _slower(cluster: Cluster, delay_s: float) -> Cluster:
    return cluster.resuming_after(delay_s)


def run_job(cluster: Cluster, strategy: Strategy, timeline: Timeline, job: Job) -> JobResult:
    """Simulates a job.

    Raises:
        PartitionedError: the failures leave a pair of ranks without a path, or the job never gets through.
        InputError: the strategy does not know such a request.
    """
    return _JobRun(cluster, strategy, timeline, job).run()


class _JobRun:
    def __init__(self, cluster: Cluster, strategy: Strategy, timeline: Timeline, job: Job) -> None:
        self._cluster = cluster
        self._strategy = strategy
        self._job = job
        recovers = type(strategy).recover is not Strategy.recover
        events = timeline.events if strategy.sees_failures else ()
        self._clock = Clock(cluster, events, strategy.recover if recovers else None, strategy.failover_s)
        self._now = 0.0
        self._known = self._clock.view(0.0)
        self._request = self._asked(job.group(cluster))
        self._plan = planned(strategy, self._request, self._known)
        self._broke = -1  # the NIC at whose failure the strategy aborted a collective
        self._last: Run | None = None  # the last run of this plan that met nothing

    def run(self) -> JobResult:
        costs = self._cluster.spec.costs
        one_off = costs.first_collective_s if self._job.warmup == 0 else 0.0
        iterations: list[Iteration] = []
        while len(iterations) < self._job.iterations:
            one_off += self._learn()
            iterations.append(self._iterate(one_off))
            self._now = iterations[-1].start_s + iterations[-1].time_s
            one_off = 0.0
        recoveries = tuple(r for r in self._clock.recoveries if r.outage.up_s <= self._now)
        late, ranks = self._clock.late(self._now), self._cluster.n_ranks
        return JobResult(self._job, self._strategy, tuple(iterations), late, ranks, recoveries)

    def _asked(self, group: tuple[int, ...]) -> Request:
        """The collective of the ranks that take part in what is known."""
        job, members = self._job, self._strategy.members(group, self._known)
        root = job.root if job.root in members or not members else members[0]
        return Request(job.op, members, job.bytes, root)

    def _learn(self) -> float:
        """Takes a new plan if more is known than before; returns what the change costs once."""
        view = self._clock.view(self._now)
        if view == self._known:
            return 0.0
        self._known = view
        self._request = self._asked(self._request.group)
        return self._replan()

    def _replan(self) -> float:
        self._plan = planned(self._strategy, self._request, self._known)
        self._last = None
        captured = self._job.graph and self._strategy.replans
        return self._plan.one_off_s + captured * self._cluster.spec.costs.graph_capture_s

    def _iterate(self, one_off_s: float) -> Iteration:
        begun, cut, waited = self._now, False, 0.0
        for _ in range(MOST_RESTARTS):
            run = self._execute(begun + waited)
            cut = cut or hit(run)
            if run.aborted is None:
                return Iteration(
                    start_s=begun,
                    time_s=one_off_s + waited + run.elapsed_s,
                    one_off_s=one_off_s,
                    cut=cut,
                    bytes=run.bytes,
                    run=run,
                    note=self._plan.note,
                    group=self._request.group,
                )
            waited += run.elapsed_s + self._after_abort(run.aborted, begun + waited + run.elapsed_s)
        raise PartitionedError(
            f"{self._strategy.spec}: the collective was aborted {MOST_RESTARTS} times; it never ends"
        )

    def _execute(self, start_s: float) -> Run:
        if self._last is not None and self._clock.calm_until(start_s) > start_s + self._last.elapsed_s:
            return self._last
        run = self._run(start_s, self._clock.delay_s(start_s))
        longest = self._clock.delay_met_s(start_s, run.event_time_s)
        if longest > (self._clock.delay_s(start_s) or 0.0):  # failures of several kinds within one collective
            run = self._run(start_s, longest)
        self._clock.passed(start_s, run.event_time_s, np.maximum(run.bytes.rx, run.bytes.tx))
        met = hit(run) or run.aborted is not None
        self._last = None if met or any(entry.time_s > 0 for entry in run.log) else run
        return run

    def _run(self, start_s: float, delay_s: float | None) -> Run:
        """A run in which every failure that is still to be found takes the same delay."""
        cluster = self._cluster
        if delay_s is not None and delay_s != cluster.resume_delay_s:
            cluster = _slower(cluster, delay_s)
        events, react = self._clock.ahead(start_s), self._react()
        return run_schedule(cluster, self._plan.schedule, self._plan.binding, events, self._job.backend, react)

    def _after_abort(self, reason: str, at_s: float) -> float:
        answer = self._strategy.job_react(Aborted(reason, self._broke, self._known, self._request.group))
        if isinstance(answer, Continue):
            raise PartitionedError(f"{self._strategy.spec}: {reason}")
        self._now = at_s + answer.cost_s
        if isinstance(answer, Shrink):
            return answer.cost_s + self._shrink(answer.ranks)
        if answer.repaired:
            self._clock.replace_hardware(at_s)
        self._learn()
        return answer.cost_s

    def _shrink(self, dropped: tuple[int, ...]) -> float:
        """The group without some ranks; returns what its plan costs once."""
        self._known = self._clock.view(self._now)
        left = tuple(rank for rank in self._request.group if rank not in set(dropped))
        self._request = self._asked(left)
        return self._replan()

    def _react(self) -> React | None:
        """The strategy's answer to a break as the engine asks for it; None where the engine's migration will do."""
        if type(self._strategy).react is Strategy.react:
            return None
        plan, view = self._plan, self._known

        def react(broken: _core.Broken) -> _core.Reaction:
            answer = self._strategy.react(Break(broken.nic, broken.time_s), plan, view)
            if isinstance(answer, Abort):
                self._broke = broken.nic
                return _core.Reaction(abort=answer.reason)
            if isinstance(answer, Rebind):
                return _core.Reaction(rebind=answer.binding.core)
            return _core.Reaction()

        return react
