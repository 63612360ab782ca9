"""NCCL's choice on the healthy cluster: what every overhead is measured against."""

from dataclasses import dataclass
from typing import ClassVar

from r2cc_simai.cluster.view import View
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.rings import even, own_lanes, require_all_reduce, ring_plan


@dataclass(frozen=True)
class Ideal(Strategy):
    """No failure ever happens."""

    name: ClassVar[str] = "ideal"
    sees_failures: ClassVar[bool] = False

    def plan(self, request: Request, view: View) -> Plan:
        """Flat rings over all NICs."""
        require_all_reduce(request, view.cluster, self.name)
        lanes = own_lanes(request, view.cluster)
        return ring_plan(request, view, lanes, even(request, lanes))
