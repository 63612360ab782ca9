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
from r2cc_simai.engine import _core
from r2cc_simai.engine.run import Backend, NicBytes, React, Run, hit, run_schedule
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.runners.clock import Clock
from r2cc_simai.strategies.base import Abort, Break, Plan, Rebind, Request, Restart, Strategy

MOST_RESTARTS = 100  # of one collective, before the job is called unfinished


@dataclass(frozen=True)
class Job:
    """What runs: `iterations` timed collectives after `warmup` ones, with CUDA graphs or without."""

    bytes: int
    op: str = "all_reduce"
    iterations: int = 20
    warmup: int = 5
    graph: bool = False
    backend: Backend = Backend.FLOW


@dataclass(frozen=True, eq=False)
class Iteration:
    """One timed collective: its time (with the one-off costs named beside), whether a failure hit it, its bytes."""

    start_s: float
    time_s: float
    one_off_s: float
    cut: bool
    bytes: NicBytes
    run: Run
    note: str


@dataclass(frozen=True, eq=False)
class JobResult:
    """The timed iterations of a job. `late` names failures that came after its end."""

    job: Job
    strategy: Strategy
    iterations: tuple[Iteration, ...]
    late: str

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
    def notes(self) -> list[str]:
        """What the user should know, each once."""
        notes = dict.fromkeys(i.note for i in self.iterations if i.note)
        return [*notes, *([self.late] if self.late else [])]


@lru_cache(maxsize=64)
def planned(strategy: Strategy, request: Request, view: View) -> Plan:
    """The strategy's plan; equal requests in equal states share one."""
    return strategy.plan(request, view)


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
        self._clock = Clock(cluster, timeline.events if strategy.sees_failures else ())
        self._request = Request(job.op, tuple(range(cluster.n_ranks)), job.bytes)
        self._now = 0.0
        self._known = self._clock.view(0.0)
        self._plan = planned(strategy, self._request, self._known)
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
        return JobResult(self._job, self._strategy, tuple(iterations), self._clock.late(self._now))

    def _learn(self) -> float:
        """Takes a new plan if more is known than before; returns what the change costs once."""
        view = self._clock.view(self._now)
        if view == self._known:
            return 0.0
        self._known = view
        self._plan = planned(self._strategy, self._request, view)
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
                )
            waited += run.elapsed_s + self._after_abort(run.aborted, begun + waited + run.elapsed_s)
        raise PartitionedError(
            f"{self._strategy.spec}: the collective was aborted {MOST_RESTARTS} times; it never ends"
        )

    def _execute(self, start_s: float) -> Run:
        if self._last is not None and self._clock.calm_until(start_s) > start_s + self._last.elapsed_s:
            return self._last
        events = self._clock.ahead(start_s)
        run = run_schedule(
            self._cluster, self._plan.schedule, self._plan.binding, events, self._job.backend, self._react()
        )
        self._clock.passed(start_s, run.event_time_s, np.maximum(run.bytes.rx, run.bytes.tx))
        met = hit(run) or run.aborted is not None
        self._last = None if met or any(entry.time_s > 0 for entry in run.log) else run
        return run

    def _after_abort(self, reason: str, at_s: float) -> float:
        answer = self._strategy.job_react(reason)
        if not isinstance(answer, Restart):
            raise PartitionedError(f"{self._strategy.spec}: {reason}")
        if answer.repaired:
            self._clock.replace_hardware(at_s)
        self._now = at_s + answer.cost_s
        self._learn()
        return answer.cost_s

    def _react(self) -> React | None:
        """The strategy's answer to a break as the engine asks for it; None where the engine's migration will do."""
        if type(self._strategy).react is Strategy.react:
            return None
        plan, view = self._plan, self._known

        def react(broken: _core.Broken) -> _core.Reaction:
            answer = self._strategy.react(Break(broken.nic, broken.time_s), plan, view)
            if isinstance(answer, Abort):
                return _core.Reaction(abort=answer.reason)
            if isinstance(answer, Rebind):
                return _core.Reaction(rebind=answer.binding.core)
            return _core.Reaction()

        return react
