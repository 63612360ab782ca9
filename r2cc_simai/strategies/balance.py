"""Balance: the buffer is split anew over the NICs that still work.

With a fraction X of the degraded server's NICs lost, T = T0 / (1 - X) (R2CC paper, arXiv 2512.25059).
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import channel_lanes, spread_rows
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.rings import (
    even,
    in_proportion,
    is_whole,
    own_lanes,
    require_all_reduce,
    ring_plan,
    servers_of,
)


@dataclass(frozen=True)
class Balance(Strategy):
    """`split=even`: equal channels, as NCCL has them; `split=weighted`: in proportion to what each can carry."""

    name: ClassVar[str] = "balance"
    split: Literal["even", "weighted"] = "even"

    def plan(self, request: Request, view: View) -> Plan:
        """Flat rings over the NICs that work.

        A group that is a part of the cluster shares its servers' NICs with others. It keeps its rails and spreads each
        hop at a dead NIC over all that are left, as the other groups do: one dead NIC of eight costs all of them 8/7,
        not one of them 2.
        """
        require_all_reduce(request, view.cluster, self.name)
        if not is_whole(request, view.cluster):
            lanes = own_lanes(request, view.cluster)
            return ring_plan(request, view, lanes, even(request, lanes), partial(spread_rows, alive=view.alive))
        lanes = channel_lanes(view.cluster, servers_of(request, view.cluster), view.alive)
        if self.split == "even":
            return ring_plan(request, view, lanes, even(request, lanes))
        slowest = [min(view.payload_rate(nic) for nic in lane.values()) for lane in lanes]
        return ring_plan(request, view, lanes, in_proportion(request.bytes, slowest))
