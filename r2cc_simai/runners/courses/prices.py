"""The costs of a job's states and of their changes: each simulated once for all states that cannot be told apart."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace

from r2cc_simai.cluster.symmetry import Label, State
from r2cc_simai.failures.timeline import Component
from r2cc_simai.runners.courses.cache import CostCache
from r2cc_simai.runners.courses.costs import Change, CourseJob, Fractions, HitCost, StateCost

Sorted = tuple[tuple[int, float], ...]


class Prices:
    """Asks a job's simulation, or what is known of an equal state. What is simulated is the canonical state.

    One of them is for one course: what the course has met before it does not look up again.
    """

    def __init__(self, job: CourseJob, cache: CostCache) -> None:
        self._job, self._cache = job, cache
        self._states: dict[Sorted, StateCost] = {}
        self._changes: dict[tuple[Sorted, Sorted, tuple[tuple[int, Component], ...]], Change] = {}
        self._turning = replace(job.symmetry, free=False)

    def state(self, fractions: Fractions) -> StateCost:
        """The cost of a state."""
        raw = _sorted(fractions)
        if raw not in self._states:
            self._states[raw] = self._state(fractions)
        return self._states[raw]

    def _state(self, fractions: Fractions) -> StateCost:
        essence = self._job.essence(fractions)
        state = self._job.symmetry.canonical({nic: (fraction,) for nic, fraction in essence.items()})
        key = self._key("state", state)
        known = self._cache.get(key)
        if known is None:
            known = self._job.state_cost(state).to_json()
            self._cache.put(key, known)
        return StateCost.from_json(known)

    def change(self, before: Fractions, after: Fractions, parts: Mapping[int, Component]) -> Change:
        """What a change of the state costs; `parts` names the NICs on which something changes, and what part of each.

        Half of the iteration that is hit goes by in the state before it; the rest of the work that gets done until
        `elapsed_s` takes (work - 1/2 of an iteration of its ranks) healthy_s (1 + slow) in the state after it.
        """
        if not parts or not (self._job.simulates_repairs or any(after.get(n, 1.0) < before.get(n, 1.0) for n in parts)):
            return Change()
        if self._job.hits_are_local:
            before, after = (self._near(fractions, parts) for fractions in (before, after))
        raw = _sorted(before), _sorted(after), tuple(sorted(parts.items()))
        if raw not in self._changes:
            self._changes[raw] = self._change(before, after, parts)
        return self._changes[raw]

    def _change(self, before: Fractions, after: Fractions, parts: Mapping[int, Component]) -> Change:
        old = self.state(before)
        hit = self._hit(before, after, parts, old)
        if hit.restart_s is not None:
            return Change(restart_s=hit.restart_s, replaced=hit.replaced)
        new = self.state(after)
        if math.isinf(old.slow) or math.isinf(new.slow):
            return Change()
        rest = hit.work - 0.5 / old.work_factor
        extra_s = hit.elapsed_s - self._iteration_s(old) / 2 - rest * self._job.healthy_s * (1 + new.slow)
        return Change(extra_s)

    def _hit(self, before: Fractions, after: Fractions, parts: Mapping[int, Component], old: StateCost) -> HitCost:
        labels: dict[int, Label] = {
            nic: (before.get(nic, 1.0), after.get(nic, 1.0), str(parts.get(nic, "")))
            for nic in before.keys() | after.keys()
        }
        state = self._turning.canonical(labels)
        key = self._key("hit", state)
        known = self._cache.get(key)
        if known is None:
            known = self._job.hit_cost(state, self._iteration_s(old) / 2).to_json()
            self._cache.put(key, known)
        return HitCost.from_json(known)

    def _near(self, fractions: Fractions, parts: Mapping[int, Component]) -> Fractions:
        """What is said of the NICs of the servers on which something changes."""
        nics = self._job.cluster.nics
        servers = {nics[nic].server for nic in parts}
        return {nic: fraction for nic, fraction in fractions.items() if nics[nic].server in servers}

    def _iteration_s(self, cost: StateCost) -> float:
        """Seconds of an iteration of the ranks that are left: slow = work_factor * iteration / healthy - 1."""
        return (1 + cost.slow) * self._job.healthy_s / cost.work_factor

    def _key(self, kind: str, state: State) -> str:
        return json.dumps([self._job.identity, repr(self._job.strategy), kind, state])


def _sorted(fractions: Fractions) -> Sorted:
    return tuple(sorted(fractions.items()))
