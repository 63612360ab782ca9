"""Hot repair: a dead NIC's traffic goes on over its backup NIC; the collective stays what it was."""

from dataclasses import dataclass, replace
from typing import ClassVar

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Binding, binding_of
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.errors import PartitionedError
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.nccl_plans import healthy_channels, nccl_plan
from r2cc_simai.strategies.rings import own_lanes, require_known


def migrated(binding: Binding, view: View) -> Binding:
    """The binding after all that is known to be down has moved to its backups, by the engine's own rule.

    Raises:
        PartitionedError: a pair of ranks has no NIC left.
    """
    if view.alive[binding.src_nic].all() and view.alive[binding.dst_nic].all():
        return binding
    down = (~view.alive).tolist()
    try:
        return binding_of(_core.migrate(core_cluster(view.cluster), binding.core, down).rows())
    except RuntimeError as error:
        raise PartitionedError(str(error)) from None


@dataclass(frozen=True)
class HotRepair(Strategy):
    """The schedule of the healthy cluster; only the binding changes."""

    name: ClassVar[str] = "hot-repair"
    replans: ClassVar[bool] = False

    def plan(self, request: Request, view: View) -> Plan:
        """NCCL's algorithm over all NICs, what lies on dead ones on their backups."""
        require_known(request, view.cluster, self.name)
        healthy = View.healthy(view.cluster)
        plan = nccl_plan(request, healthy, healthy_channels(healthy, own_lanes(request, view.cluster)))
        return replace(plan, binding=migrated(plan.binding, view))
