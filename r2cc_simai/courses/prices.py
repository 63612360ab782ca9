"""The costs of a job's states and of their changes: each simulated once for all states that cannot be told apart."""

import json
from collections.abc import Mapping

from r2cc_simai.cluster.symmetry import Label, State
from r2cc_simai.courses.cache import CostCache
from r2cc_simai.courses.condition import Fractions
from r2cc_simai.courses.costs import CourseJob, HitCost, StateCost
from r2cc_simai.failures.timeline import Component


class Prices:
    """Asks a job's simulation, or what is known of an equal state. What is simulated is the canonical state."""

    def __init__(self, job: CourseJob, cache: CostCache) -> None:
        self._job, self._cache = job, cache

    def state(self, fractions: Mapping[int, float]) -> StateCost:
        """The cost of a state."""
        state = self._job.symmetry.canonical({nic: (fraction,) for nic, fraction in fractions.items()})
        key = self._key("state", state)
        known = self._cache.get(key)
        if known is None:
            known = self._job.state_cost(state).to_json()
            self._cache.put(key, known)
        return StateCost.from_json(known)

    def hit(self, before: Fractions, after: Fractions, parts: Mapping[int, Component]) -> HitCost:
        """What comes of an iteration in whose middle the state changes; `parts` says which part of a NIC does."""
        labels: dict[int, Label] = {
            nic: (before.get(nic, 1.0), after.get(nic, 1.0), str(parts.get(nic, "")))
            for nic in before.keys() | after.keys()
        }
        state = self._job.symmetry.canonical(labels)
        key = self._key("hit", state)
        known = self._cache.get(key)
        if known is None:
            known = self._job.hit_cost(state, self.iteration_s(self.state(before)) / 2).to_json()
            self._cache.put(key, known)
        return HitCost.from_json(known)

    def iteration_s(self, cost: StateCost) -> float:
        """Seconds of an iteration of the ranks that are left: slow = work_factor * iteration / healthy - 1."""
        return (1 + cost.slow) * self._job.healthy_s / cost.work_factor

    def extra_s(self, hit: HitCost, before: StateCost, after: StateCost) -> float:
        """Seconds that a change costs beside what the states cost: below 0 where the old plan did better for a while.

        Half of the iteration went by in the state before it, and the rest of the work would take
        (work - 1/2 of what its ranks do) (1 + slow) in the one after it.
        """
        rest = hit.work - 0.5 / before.work_factor
        return hit.elapsed_s - self.iteration_s(before) / 2 - rest * self._job.healthy_s * (1 + after.slow)

    def _key(self, kind: str, state: State) -> str:
        return json.dumps([self._job.identity, repr(self._job.strategy), kind, state])
