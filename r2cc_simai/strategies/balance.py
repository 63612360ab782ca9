"""Balance: the buffer is split anew over the NICs that still work.

With a fraction X of the degraded server's NICs lost, T = T0 / (1 - X) (R2CC paper, arXiv 2512.25059).
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import spread_rows
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.carried_rates import lane_rates
from r2cc_simai.strategies.nccl_plans import Channels, nccl_plan
from r2cc_simai.strategies.rings import is_whole, own_lanes, require_known, working_lanes


@dataclass(frozen=True)
class Balance(Strategy):
    """`split=even`: equal channels, as NCCL has them; `split=weighted`: in proportion to what each can carry."""

    name: ClassVar[str] = "balance"
    split: Literal["even", "weighted"] = "even"

    def plan(self, request: Request, view: View) -> Plan:
        """NCCL's algorithm over the NICs that work.

        A group that is a part of the cluster shares its servers' NICs with others. It keeps its rails and spreads each
        hop at a dead NIC over all that are left, as the other groups do: one dead NIC of eight costs all of them 8/7,
        not one of them 2.
        """
        require_known(request, view.cluster, self.name)
        return nccl_plan(request, view, self._channels(request, view))

    def _channels(self, request: Request, view: View) -> Channels:
        weighted = self.split == "weighted"
        if not is_whole(request, view.cluster):
            lanes = own_lanes(request, view.cluster)
            spread = partial(spread_rows, view=view, weighted=weighted)
            return Channels(lanes, view.fractions, bind=spread, weighted=weighted)
        lanes = working_lanes(request, view)
        return Channels(lanes, view.fractions, lane_rates(view, lanes) if weighted else None, weighted=weighted)
