"""Plans that are kept from run to run: a job in many states of the cluster asks for most of its plans again and again.

The plan of a group depends on the servers on which the group has ranks, and on no others. Of a thousand servers ten may
have lost something; the groups and pairs on the other ones have the plans that they have on the healthy cluster.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import server_of_rank
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.strategies.adapcc import AdapCC
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.hot_repair import HotRepair
from r2cc_simai.strategies.ideal import Ideal
from r2cc_simai.strategies.nccl import Nccl
from r2cc_simai.strategies.nccl_failover import NcclFailover
from r2cc_simai.strategies.optcc import OptCC
from r2cc_simai.strategies.r2cc_allreduce import R2ccAllReduce
from r2cc_simai.training.mixing import gathered, mixed

Int = NDArray[np.int64]
State = tuple[tuple[int, tuple[float, ...]], ...]  # servers that have lost something, and what their NICs have left

PER_BYTE = 1_000_000  # loads that agree to one part in so many are equal: blocks may differ by a byte
MOST_BYTES = 256 << 20
"""About how much memory the plans may take that a process keeps; those that were not asked for longest go first."""
_PLAN_BYTES = 8_000  # of the objects of a plan, beside what its arrays hold
_LOCAL = (Ideal, HotRepair, NcclFailover, Nccl, Balance, R2ccAllReduce, OptCC)


def is_local(strategy: Strategy) -> bool:
    """Whether a plan depends on the state of the group's own servers alone.

    AdapCC drops a whole replica, which may have ranks on other servers; Auto runs the groups beside the one asked for.
    Of a strategy that is not this package's own nothing is known.
    """
    return type(strategy) in _LOCAL or (type(strategy) is AdapCC and strategy.dp_replica == 1)


@dataclass(frozen=True, eq=False)
class MadePlan:
    """A plan on a cluster; `size` are the bytes that a rank puts in."""

    plan: Plan
    cluster: Cluster
    size: int

    @cached_property
    def loads(self) -> tuple[Int, Int]:
        """The units of two ports that the plan loads, ascending, and a number for each: which passes load it how much
        and in which direction."""
        schedule, binding = self.plan.schedule.core, self.plan.binding.core
        pass_, port, load = _core.port_loads(core_cluster(self.cluster), schedule, binding)
        share = np.rint(load * (PER_BYTE / self.size)).astype(np.int64)
        units, place = np.unique(port // 2, return_inverse=True)
        return units, gathered(len(units), place, mixed([pass_, port % 2, share]))

    @cached_property
    def bytes(self) -> int:
        """About what the plan takes in memory, with the engine's copy."""
        schedule = self.plan.schedule
        numbers = sum(len(route) for route in schedule.routes) + 6 * len(self.plan.binding.src)
        return _PLAN_BYTES + 16 * (numbers + 3 * sum(len(one.lo) for one in schedule.passes))


Messages = dict[tuple[int, int, int], MadePlan]  # by sender, receiver and bytes


class PlanStore:
    """Plans of local strategies by all that they depend on, in at most about `most_bytes` of memory.

    `made` counts the plans that had to be made, `bytes` what those that are kept take.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[tuple[Strategy, Cluster, Request, State], MadePlan] = {}
        self._messages: dict[tuple[Strategy, Cluster], Messages] = {}
        self.bytes = 0
        self.made = 0

    def plan(self, strategy: Strategy, request: Request, size: int, view: View) -> MadePlan:
        """A plan that the strategy makes for the request in the state of the view.

        Raises:
            PartitionedError: what is known leaves ranks without a path.
            InputError: the strategy does not apply to such a request.
        """
        key = strategy, view.cluster, request, _state(request, view)
        found = self._kept.pop(key, None)
        if found is None:
            found = MadePlan(strategy.plan(request, view), view.cluster, size)
            self.made += 1
            self.bytes += found.bytes
        self._kept[key] = found  # the last of them
        if request.op == "send" and not key[3]:
            self.messages(strategy, view.cluster)[request.group[0], request.group[1], size] = found
        while self.bytes > self._most_bytes and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
        return found

    def messages(self, strategy: Strategy, cluster: Cluster) -> Messages:
        """The plans that are kept of messages between servers that have lost nothing; they do not become young again
        when they are used from here."""
        return self._messages.setdefault((strategy, cluster), {})

    def _drop(self, key: tuple[Strategy, Cluster, Request, State]) -> None:
        strategy, cluster, request, state = key
        gone = self._kept.pop(key)
        self.bytes -= gone.bytes
        if request.op == "send" and not state:
            self.messages(strategy, cluster).pop((request.group[0], request.group[1], gone.size), None)


def _state(request: Request, view: View) -> State:
    """What the servers of a request have lost."""
    hurt = view.hurt_servers
    if not hurt:
        return ()
    server = server_of_rank(view.cluster)
    own = sorted({int(server[rank]) for rank in request.group} & hurt)
    return tuple((s, tuple(view.fraction[nic] for nic in view.cluster.servers[s].nics)) for s in own)


STORE = PlanStore()
"""The plans that this process keeps."""
