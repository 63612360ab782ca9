"""A job whose costs are given: nothing is simulated, so that the walk can be checked by hand."""

import math
from collections.abc import Callable

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.symmetry import State, alone
from r2cc_simai.runners.courses.costs import Fractions, HitCost, StateCost
from r2cc_simai.strategies.base import Strategy
from r2cc_simai.strategies.hot_repair import HotRepair

SERVERS, NICS = 2, 8


class FakeJob:
    """Two servers of eight NICs; an iteration takes 2 s. `slow` is per NIC that is down; all NICs of a server: inf."""

    simulates_repairs = False
    hits_are_local = False
    healthy_s = 2.0
    identity = "fake"

    def __init__(
        self,
        slow: float = 0.1,
        extra_s: float = 10.0,
        drops: bool = False,
        hit: HitCost | None = None,
        strategy: Strategy | None = None,
        count: Callable[[State], None] | None = None,
    ) -> None:
        self.cluster = load_cluster("h100")
        self.symmetry = alone(self.cluster)
        self.strategy = strategy or HotRepair()
        self._slow, self._extra_s, self._drops, self._hit = slow, extra_s, drops, hit
        self._count = count or (lambda _: None)

    def essence(self, fractions: Fractions) -> Fractions:
        """The state as it is."""
        return fractions

    def state_cost(self, state: State) -> StateCost:
        """`slow` for every NIC that is down, in proportion for one that is slower."""
        self._count(state)
        lost = [1 - float(label[0]) for _, label in state]
        for first in range(0, SERVERS * NICS, NICS):
            if sum(nic in range(first, first + NICS) and label[0] == 0 for nic, label in state) == NICS:
                return StateCost(math.inf)
        return StateCost(self._slow * sum(lost), 2.0 if self._drops and 1.0 in lost else 1.0)

    def hit_cost(self, state: State, at_s: float) -> HitCost:
        """Half of the iteration before, `extra_s`, half of the iteration after."""
        if self._hit is not None:
            return self._hit
        after = self.state_cost(tuple((nic, label[1:2]) for nic, label in state if label[1] != 1.0))
        work = 1 / after.work_factor
        before = self.state_cost(tuple((nic, label[:1]) for nic, label in state if label[0] != 1.0))
        rest = work - 0.5 / before.work_factor
        return HitCost(at_s + self._extra_s + rest * self.healthy_s * (1 + after.slow), work)
