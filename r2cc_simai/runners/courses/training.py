"""A training job as a course needs it: iterations in a known state, and iterations in which the state changes.

Simulated are an iteration in a known state, and one that a failure hits in the middle, with the state that the servers
on which it happens have then and all others healthy (`training.job`). What others have lost adds to what the iterations
cost, and hardly changes what the failure costs once. A repair costs nothing: what works again carries traffic from the
next collective on.
"""

import json
import math
from dataclasses import asdict
from functools import cached_property, lru_cache

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.symmetry import State, Symmetry
from r2cc_simai.cluster.view import View
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.runners.courses.costs import Fractions, HitCost, StateCost
from r2cc_simai.runners.courses.equivalence import replicas_of_blocks, training_symmetry
from r2cc_simai.runners.courses.stops import CRASHED, events_of, known_events, without_lost_work
from r2cc_simai.runners.training_workload import JobSpec
from r2cc_simai.strategies.adapcc import AdapCC
from r2cc_simai.strategies.base import Aborted, Restart, Strategy
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training.iteration import Iteration, run_iteration
from r2cc_simai.training.job import TrainingJob, run_training


class TrainingCourse:
    """A training job under a strategy. `identity` names the job by value."""

    simulates_repairs = False
    hits_are_local = True

    def __init__(self, job: TrainingJob, strategy: Strategy, identity: str) -> None:
        self.job = job
        self.strategy = without_lost_work(strategy)
        self.identity = identity

    @property
    def cluster(self) -> Cluster:
        """Where the job runs."""
        return self.job.cluster

    @property
    def healthy_s(self) -> float:
        """Seconds of an iteration on the healthy cluster."""
        return self.job.healthy.elapsed_s

    @cached_property
    def symmetry(self) -> Symmetry:
        """The moves that change no cost."""
        return training_symmetry(self.job, self.strategy)

    def essence(self, fractions: Fractions) -> Fractions:
        """A replica that is dropped does not care which of its NICs are down: the first one of its servers says it."""
        if not isinstance(self.strategy, AdapCC) or 0.0 not in fractions.values():
            return fractions
        state = [1.0] * len(self.cluster.nics)
        for nic, fraction in fractions.items():
            state[nic] = fraction
        group = self._group
        try:
            left = self.strategy.members(group, View(self.cluster, tuple(state)))
        except PartitionedError:
            return fractions
        found = dict(fractions)
        for servers in self._dropped(frozenset(group) - frozenset(left)):
            for server in servers:
                for own in self.cluster.servers[server].nics:
                    found.pop(own, None)
            found[self.cluster.servers[servers[0]].nics[0]] = 0.0
        return found

    @cached_property
    def _group(self) -> tuple[int, ...]:
        return tuple(int(rank) for rank in self.job.ranks.rank)

    def _dropped(self, gone: frozenset[int]) -> list[tuple[int, ...]]:
        """The servers of replicas that have lost a rank, as far as they are no other replica's."""
        if self.job.replica is None or not gone:
            return []
        lost = set(self.job.replica[np.isin(self.job.ranks.rank, list(gone))].tolist())
        return [
            block for block, replicas in self._replicas_of_blocks.items() if len(replicas) == 1 and replicas <= lost
        ]

    @cached_property
    def _replicas_of_blocks(self) -> dict[tuple[int, ...], frozenset[int]]:
        return replicas_of_blocks(self.job)

    def state_cost(self, state: State) -> StateCost:
        """Simulates an iteration in a known state."""
        try:
            result = run_training(self.job, self.strategy, Timeline(known_events(state)))
        except PartitionedError:
            return StateCost(math.inf)
        return StateCost(result.overhead, result.work_factor)

    def hit_cost(self, state: State, at_s: float) -> HitCost:
        """Simulates an iteration in which the state changes `at_s` after its start, and restarts where there are."""
        timeline = Timeline(events_of(state, at_s))
        try:
            if self.strategy.survives:
                run = run_iteration(self.cluster, self.job.ranks, self.strategy, timeline)
                if run.aborted is None:
                    return HitCost(run.elapsed_s, 1.0)
            result = run_training(self.job, self.strategy, timeline)
        except PartitionedError:
            return CRASHED
        if result.hit is None or result.hit_s is None:
            return HitCost(self.healthy_s, 1.0)
        restart = self._restart(result.hit)
        if restart is not None:
            return HitCost(restart_s=restart.cost_s, replaced=restart.repaired)
        return HitCost(result.hit_s, 1 / result.work_factor)

    def _restart(self, hit: Iteration) -> Restart | None:
        """The strategy's answer to an iteration that was aborted, if it restarts the job."""
        if hit.aborted is None:
            return None
        group = tuple(int(rank) for rank in hit.ranks.rank)
        answer = self.strategy.job_react(Aborted(hit.aborted, hit.broken_nic, View.healthy(self.cluster), group))
        return answer if isinstance(answer, Restart) else None


@lru_cache(maxsize=4)
def training_job(spec: JobSpec, strategy: str) -> TrainingCourse:
    """The job of a scenario file under a strategy; the last ones are kept.

    Raises:
        InputError: options that do not fit together, or no such strategy.
    """
    job = spec.job()
    identity = json.dumps(["training", asdict(spec), job.cluster.spec.model_dump(mode="json")])
    return TrainingCourse(job, parse_strategy(strategy), identity)
