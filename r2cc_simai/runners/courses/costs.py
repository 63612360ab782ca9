"""What a job's states and their changes cost, and what a job must be able to say of them."""

import math
from dataclasses import dataclass
from typing import Protocol

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.symmetry import State, Symmetry
from r2cc_simai.strategies.base import Strategy

Fractions = dict[int, float]
"""The rate fraction of each NIC that has lost some."""
Costs = dict[str, float | bool | None]
"""A cost as JSON has it; None stands for an infinite time."""


@dataclass(frozen=True)
class StateCost:
    """A job in a state that it has known for long: `slow` is the healthy throughput over the one it has, minus one.

    Infinite: the job cannot go on. `work_factor` is how many times as many iterations the same work takes because
    ranks have been dropped.
    """

    slow: float
    work_factor: float = 1.0

    @property
    def drops(self) -> bool:
        """Whether the strategy does without some ranks."""
        return self.work_factor > 1

    def to_json(self) -> Costs:
        """The values by name."""
        return {"slow": self.slow if math.isfinite(self.slow) else None, "work_factor": self.work_factor}

    @classmethod
    def from_json(cls, values: Costs) -> "StateCost":
        """The cost that `to_json` made the values of."""
        slow = values["slow"]
        return cls(math.inf if slow is None else float(slow), float(values["work_factor"] or 1.0))


@dataclass(frozen=True)
class HitCost:
    """What comes of an iteration in whose middle the state changes.

    Where the job goes on: `elapsed_s` from the start of that iteration until what was simulated ended, in which `work`
    iterations of all ranks were done. Where it ends: it stops for `restart_s` and goes back to its last checkpoint;
    `replaced`: on hardware in place of the failed one.
    """

    elapsed_s: float = 0.0
    work: float = 0.0
    restart_s: float | None = None
    replaced: bool = False

    def to_json(self) -> Costs:
        """The values by name."""
        return {
            "elapsed_s": self.elapsed_s,
            "work": self.work,
            "restart_s": self.restart_s,
            "replaced": self.replaced,
        }

    @classmethod
    def from_json(cls, values: Costs) -> "HitCost":
        """The cost that `to_json` made the values of."""
        restart_s = values["restart_s"]
        return cls(
            elapsed_s=float(values["elapsed_s"] or 0.0),
            work=float(values["work"] or 0.0),
            restart_s=None if restart_s is None else float(restart_s),
            replaced=bool(values["replaced"]),
        )


@dataclass(frozen=True)
class Change:
    """What a change of the state costs: `extra_s` once, beside what the states cost (below 0 where the old plan does
    better for a while); or the job ends, see `HitCost`."""

    extra_s: float = 0.0
    restart_s: float | None = None
    replaced: bool = False


class CourseJob(Protocol):
    """A job under one strategy, whose states can be simulated.

    A `State` of `state_cost` holds (rate fraction,) for each NIC that has lost some; one of `hit_cost` holds (fraction
    before, fraction after, part that changes) for each NIC that has lost some before or after.
    """

    @property
    def cluster(self) -> Cluster:
        """Where the job runs."""
        ...

    @property
    def strategy(self) -> Strategy:
        """What the job does about failures."""
        ...

    @property
    def identity(self) -> str:
        """A text that differs for jobs whose costs may."""
        ...

    @property
    def symmetry(self) -> Symmetry:
        """The moves that change the cost of no state.

        What two servers lose at once in the middle of an iteration costs what their distance says, so that blocks only
        turn where it is the cost of a change that may not differ.
        """
        ...

    @property
    def healthy_s(self) -> float:
        """Seconds of an iteration on the healthy cluster."""
        ...

    @property
    def simulates_repairs(self) -> bool:
        """Whether an iteration in whose middle something is repaired is simulated; if not, a repair costs nothing."""
        ...

    @property
    def hits_are_local(self) -> bool:
        """Whether a change is simulated with all servers healthy on which nothing changes."""
        ...

    def essence(self, fractions: Fractions) -> Fractions:
        """A state of the same cost that says no more than matters."""
        ...

    def state_cost(self, state: State) -> StateCost:
        """Simulates an iteration in a known state."""
        ...

    def hit_cost(self, state: State, at_s: float) -> HitCost:
        """Simulates an iteration in which the state changes `at_s` after its start."""
        ...
