"""The best of all strategies for each size, group and state of the cluster."""

from dataclasses import dataclass, replace
from typing import ClassVar

from r2cc_simai.cluster.view import View
from r2cc_simai.errors import PartitionedError
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.hot_repair import HotRepair
from r2cc_simai.strategies.optcc import OptCC
from r2cc_simai.strategies.r2cc_allreduce import R2ccAllReduce
from r2cc_simai.strategies.ranking import rank
from r2cc_simai.strategies.rings import require_known, servers_of

CANDIDATES: tuple[Strategy, ...] = (
    Balance(),
    Balance(split="weighted"),
    HotRepair(),
    R2ccAllReduce(),
    R2ccAllReduce(k=16),
    R2ccAllReduce(k=16, y="opt"),
    OptCC(),
    OptCC(mix="off"),
    OptCC(k=16, mix="off"),
)


@dataclass(frozen=True)
class Auto(Strategy):
    """Ranks the candidates by the cost model and takes the fastest; a break in mid-collective is hot-repaired."""

    name: ClassVar[str] = "auto"

    def plan(self, request: Request, view: View) -> Plan:
        """The fastest candidate's plan, with a note that names it.

        Raises:
            PartitionedError: no candidate has a plan; the message is the first one's reason.
        """
        require_known(request, view.cluster, self.name)
        servers = servers_of(request, view.cluster)
        if len(servers) < 2 or not view.degraded(servers):
            return Balance().plan(request, view)
        able = [one for one in CANDIDATES if one.own_plans is None or request.op in one.own_plans]
        ranked = rank(able, request, view)
        best = ranked[0]
        if best.time_s is None:
            raise PartitionedError(best.why)
        return replace(best.candidate.plan(request, view), note=f"auto takes {best.strategy} for {request.bytes} bytes")
