"""What the executor asks for while it runs, asked of the strategy: a plan for each collective of each kind of group."""

from dataclasses import dataclass, field
from functools import cached_property

from r2cc_simai.chakra.schema import CommType
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import server_of_rank
from r2cc_simai.engine import _core
from r2cc_simai.strategies.base import Abort, Break, Plan, Rebind, Request, Strategy
from r2cc_simai.training.plan_store import STORE, MadePlan, Messages, is_local

_OPS = {
    CommType.ALL_REDUCE: "all_reduce",
    CommType.ALL_GATHER: "all_gather",
    CommType.BROADCAST: "broadcast",
    CommType.ALL_TO_ALL: "all_to_all",
    CommType.REDUCE_SCATTER: "reduce_scatter",
}
"""What the reader of traces lets through."""


def request_of(comm_type: int, group: tuple[int, ...], comm_size: int) -> Request:
    """The request of a COMM_COLL node. `comm_size` is a rank's input: of an AllGather its shard, of others the buffer.

    A broadcast starts at the group's first rank, since Chakra's nodes name no root.
    """
    kind = CommType(comm_type)
    size = comm_size * (len(group) if kind is CommType.ALL_GATHER else 1)
    return Request(_OPS[kind], group, size, group[0])


@dataclass(eq=False)
class Planner:
    """Answers the executor. `groups` are the members of one group of each class, as GPUs; `views` what is known after
    0, 1, .. changes."""

    strategy: Strategy
    views: list[View]
    groups: list[tuple[int, ...]] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    aborted_by: int = -1
    _plans: list[tuple[Plan, View]] = field(default_factory=list)
    _known: dict[tuple[Request, int], MadePlan] = field(default_factory=dict)

    @cached_property
    def _local(self) -> bool:
        return is_local(self.strategy)

    @cached_property
    def _well(self) -> Messages | None:
        """The plans of messages between servers that have lost nothing, by far the most; None: they are not kept."""
        return STORE.messages(self.strategy, self.views[0].cluster) if self._local else None

    @cached_property
    def _server(self) -> list[int]:
        return list(map(int, server_of_rank(self.views[0].cluster)))

    def planned(self, comm_type: int | None, members: tuple[int, ...], comm_size: int, epoch: int) -> MadePlan:
        """The plan for a collective, or (no type) for a message from the first member to the second.

        Raises:
            PartitionedError: what is known leaves ranks without a path.
        """
        if comm_type is None:
            request = Request("send", members, comm_size)
        else:
            request = request_of(comm_type, members, comm_size)
        key = request, epoch
        if key not in self._known:
            self._known[key] = self._made(request, comm_size, self.views[epoch])
        return self._known[key]

    def _made(self, request: Request, size: int, view: View) -> MadePlan:
        if self._local:
            return STORE.plan(self.strategy, request, size, view)
        return MadePlan(self.strategy.plan(request, view), view.cluster, size)

    def plan(self, asked: _core.PlanRequest) -> tuple[_core.Schedule, _core.Binding, float, int]:
        """The strategy's plan for what is known now, in the engine's form.

        Raises:
            PartitionedError: what is known leaves ranks without a path.
        """
        if asked.group < 0:
            plan = self._message(asked.src, asked.dst, asked.bytes, asked.epoch).plan
        else:
            plan = self.planned(asked.comm_type, self.groups[asked.group], asked.bytes, asked.epoch).plan
        if plan.note:
            self.notes[plan.note] = None
        self._plans.append((plan, self.views[asked.epoch]))
        return plan.schedule.core, plan.binding.core, plan.one_off_s, len(self._plans) - 1

    def _message(self, src: int, dst: int, size: int, epoch: int) -> MadePlan:
        hurt = self.views[epoch].hurt_servers
        if self._well is None or self._server[src] in hurt or self._server[dst] in hurt:
            return self.planned(None, (src, dst), size, epoch)
        found = self._well.get((src, dst, size))
        return self.planned(None, (src, dst), size, epoch) if found is None else found

    def react(self, broken: _core.Broken, tag: int) -> _core.Reaction:
        """The strategy's answer when connections of plan `tag` have broken."""
        plan, view = self._plans[tag]
        answer = self.strategy.react(Break(broken.nic, broken.time_s), plan, view)
        if isinstance(answer, Abort):
            self.aborted_by = broken.nic
            return _core.Reaction(abort=answer.reason)
        if isinstance(answer, Rebind):
            return _core.Reaction(rebind=answer.binding.core)
        return _core.Reaction()
