"""What is to be exported: the plan of a strategy for a collective on a cluster with known failures."""

from dataclasses import dataclass

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.checker import Wanted
from r2cc_simai.collectives.operations import default_group, wanted_after
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.strategies.base import Plan, Request, Strategy


@dataclass(frozen=True)
class Wish:
    """A collective by name, over the ranks that the strategy keeps, in a state of the cluster."""

    strategy: Strategy
    view: View
    op: str
    root: int = 0

    @property
    def group(self) -> tuple[int, ...]:
        """The ranks that take part."""
        return self.strategy.members(default_group(self.op, self.view.cluster), self.view)

    def plan(self, size: int) -> Plan:
        """The strategy's plan for `size` bytes.

        Raises:
            PartitionedError: the failures leave ranks without a path.
            InputError: the strategy does not apply.
        """
        return self.strategy.plan(Request(self.op, self.group, size, self.root), self.view)

    def wanted(self, size: int) -> Wanted:
        """What it must leave on the ranks."""
        return wanted_after(self.op, self.group, size, self.root)


def known_state(cluster: Cluster, timeline: Timeline, strategy: Strategy) -> View:
    """The state that a plan is made for: all failures of the timeline, which must be there from the start.

    Raises:
        InputError: a failure comes later.
    """
    if any(event.at_bytes is not None or event.time_s > 0 for event in timeline.events):
        raise InputError(f"--fail {timeline.pattern}: a file holds the plan for one known state; write @0")
    if not strategy.sees_failures:
        return View.healthy(cluster)
    fractions = timeline.fractions(len(cluster.nics), 0.0)
    return View(cluster, tuple(float(f) for f in fractions))
