"""Balance: the buffer is split anew over the NICs that still work.

With a fraction X of the degraded server's NICs lost, T = T0 / (1 - X) (R2CC paper, arXiv 2512.25059).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import channel_lanes
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.rings import even, in_proportion, require_all_reduce, ring_plan


@dataclass(frozen=True)
class Balance(Strategy):
    """`split=even`: equal channels, as NCCL has them; `split=weighted`: in proportion to what each can carry."""

    name: ClassVar[str] = "balance"
    split: Literal["even", "weighted"] = "even"

    def plan(self, request: Request, view: View) -> Plan:
        """Flat rings over the NICs that work."""
        require_all_reduce(request, view.cluster, self.name)
        lanes = channel_lanes(view.cluster, range(len(view.cluster.servers)), view.alive)
        if self.split == "even":
            return ring_plan(request, view, lanes, even(request, lanes))
        slowest = [min(view.payload_rate(nic) for nic in lane.values()) for lane in lanes]
        return ring_plan(request, view, lanes, in_proportion(request.bytes, slowest))
