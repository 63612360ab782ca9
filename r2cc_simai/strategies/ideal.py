"""NCCL's choice on the healthy cluster: what every overhead is measured against."""

from dataclasses import dataclass
from typing import ClassVar

from r2cc_simai.cluster.view import View
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.nccl_plans import healthy_channels, nccl_plan
from r2cc_simai.strategies.rings import own_lanes, require_known


@dataclass(frozen=True)
class Ideal(Strategy):
    """No failure ever happens."""

    name: ClassVar[str] = "ideal"
    sees_failures: ClassVar[bool] = False

    def plan(self, request: Request, view: View) -> Plan:
        """NCCL's algorithm over all NICs."""
        require_known(request, view.cluster, self.name)
        healthy = View.healthy(view.cluster)
        return nccl_plan(request, healthy, healthy_channels(healthy, own_lanes(request, view.cluster)))
