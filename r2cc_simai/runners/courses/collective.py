"""One collective after another as a course needs it: its time in a known state, and what a change of the state costs.

The jobs that are simulated are those of `runners.collective`: the collective that a change hits in the middle, and
those after it until they take what they take in the new state.
"""

import json
import math
from dataclasses import asdict, replace
from functools import cached_property, lru_cache

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.symmetry import State, Symmetry
from r2cc_simai.cluster.view import View
from r2cc_simai.engine import _core
from r2cc_simai.engine.run import run_schedule
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Event, Timeline
from r2cc_simai.runners.collective import Job, JobResult, planned, run_job
from r2cc_simai.runners.courses.costs import Fractions, HitCost, StateCost
from r2cc_simai.runners.courses.equivalence import collective_symmetry
from r2cc_simai.runners.courses.stops import CRASHED, events_of, known_events, without_lost_work
from r2cc_simai.strategies.base import Abort, Aborted, Break, Request, Restart, Strategy
from r2cc_simai.strategies.ideal import Ideal
from r2cc_simai.strategies.registry import parse_strategy

FEWEST, MOST = 4, 256
"""Collectives that are simulated after a change; more while the strategy has not found its plan for the new state."""


class CollectiveCourse:
    """An endless row of one collective on a cluster, under a strategy."""

    hits_are_local = False

    def __init__(self, cluster: Cluster, job: Job, strategy: Strategy, identity: str) -> None:
        self.cluster = cluster
        self.strategy = without_lost_work(strategy)
        self.identity = identity
        self._job = replace(job, warmup=1)

    @property
    def simulates_repairs(self) -> bool:
        """Not where the strategy has a recovery protocol: the course knows when that has taken a NIC again."""
        return type(self.strategy).recover is Strategy.recover

    @cached_property
    def healthy_s(self) -> float:
        """Seconds of a collective on the healthy cluster."""
        return _last_s(run_job(self.cluster, Ideal(), Timeline(), replace(self._job, iterations=1)))

    @cached_property
    def symmetry(self) -> Symmetry:
        """The moves that change no cost."""
        return collective_symmetry(self.cluster, self._job, self.strategy)

    def essence(self, fractions: Fractions) -> Fractions:
        """The state as it is."""
        return fractions

    def state_cost(self, state: State) -> StateCost:
        """Simulates a collective in a known state."""
        try:
            result = self._run(known_events(state), 1)
        except PartitionedError:
            return StateCost(math.inf)
        return StateCost(result.work_factor * _last_s(result) / self.healthy_s - 1, result.work_factor)

    def hit_cost(self, state: State, at_s: float) -> HitCost:
        """Simulates the collective in which the state changes `at_s` after its start, and those after it."""
        events = events_of(state, at_s)
        try:
            restart = self._restart(events)
            if restart is not None:
                return HitCost(restart_s=restart.cost_s, replaced=restart.repaired)
            after = known_events(tuple((nic, label[1:2]) for nic, label in state if float(label[1]) < 1))
            steady_s = _last_s(self._run(after, 1))
            count = FEWEST
            result = self._run(events, count)
            while count < MOST and not math.isclose(_last_s(result), steady_s, rel_tol=1e-9):
                count *= 2
                result = self._run(events, count)
        except PartitionedError:
            return CRASHED
        last = result.iterations[-1]
        work = sum(len(one.group) for one in result.iterations) / result.n_ranks
        return HitCost(last.start_s + last.time_s, work)

    def _run(self, events: tuple[Event, ...], iterations: int) -> JobResult:
        return run_job(self.cluster, self.strategy, Timeline(events), replace(self._job, iterations=iterations))

    def _restart(self, events: tuple[Event, ...]) -> Restart | None:
        """The strategy's answer if the change aborts the collective, or the next one, and it restarts the job."""
        if self.strategy.survives:
            return None
        for first_s in (None, 1e-9):
            new = tuple(e if e.time_s == 0 or first_s is None else replace(e, time_s=first_s) for e in events)
            broken = self._broken(new)
            if broken is not None:
                answer = self.strategy.job_react(broken)
                return answer if isinstance(answer, Restart) else None
        return None

    def _broken(self, events: tuple[Event, ...]) -> Aborted | None:
        """How a collective under these events ends, if the strategy aborts it."""
        known = Timeline(tuple(e for e in events if e.time_s == 0)).fractions(len(self.cluster.nics), 0.0)
        view = View(self.cluster, tuple(float(fraction) for fraction in known))
        group = self.strategy.members(self._job.group(self.cluster), view)
        root = self._job.root if self._job.root in group or not group else group[0]
        plan = planned(self.strategy, Request(self._job.op, group, self._job.bytes, root), view)
        found: list[Aborted] = []

        def react(broken: _core.Broken) -> _core.Reaction:
            answer = self.strategy.react(Break(broken.nic, broken.time_s), plan, view)
            if not isinstance(answer, Abort):
                return _core.Reaction()
            found.append(Aborted(answer.reason, broken.nic, view, group))
            return _core.Reaction(abort=answer.reason)

        run_schedule(self.cluster, plan.schedule, plan.binding, events, self._job.backend, react)
        return found[0] if found else None


def _last_s(result: JobResult) -> float:
    """Seconds of the last collective without what a change of plan costs."""
    last = result.iterations[-1]
    return last.time_s - last.one_off_s


@lru_cache(maxsize=64)
def collective_job(cluster_name: str, job: Job, strategy: str) -> CollectiveCourse:
    """The collectives on a cluster under a strategy; the last ones are kept.

    Raises:
        InputError: no such cluster or strategy.
    """
    cluster = load_cluster(cluster_name)
    settings = asdict(job) | {"backend": job.backend.value}
    identity = json.dumps(["collective", cluster_name, settings, cluster.spec.model_dump(mode="json")])
    return CollectiveCourse(cluster, job, parse_strategy(strategy), identity)
