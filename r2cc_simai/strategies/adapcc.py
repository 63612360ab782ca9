"""AdapCC (as the R2CC paper, arXiv 2512.25059, compares with it): the ranks that a failure hits are dropped.

The collective that the failure hits is aborted once it is known, and repeated by the ranks that are left. They stay
dropped, also after a repair. A fixed amount of work then takes n / (n - k) times as long on n - k of n ranks, beside
what the collective costs.
"""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import ClassVar

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import server_order, spread_rows
from r2cc_simai.collectives.direct import nics_of_ranks
from r2cc_simai.collectives.operations import OPERATIONS
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.strategies.base import Abort, Aborted, Break, Plan, Request, Shrink, Strategy
from r2cc_simai.strategies.nccl_plans import Channels, nccl_plan
from r2cc_simai.strategies.rings import own_lanes, require_known, servers_of, working_lanes


@dataclass(frozen=True)
class AdapCC(Strategy):
    """`dp_replica` is the number of consecutive ranks of a data-parallel replica: with tensor or pipeline parallelism
    (3D) a replica cannot work without any of its ranks, so all of them are dropped. `rebuild_s` is what the new
    communicator costs once; AdapCC's authors publish none for this case."""

    name: ClassVar[str] = "adapcc"
    dp_replica: int = 1
    rebuild_s: float = 0.0

    def __post_init__(self) -> None:
        if self.dp_replica < 1:
            raise InputError(f"strategy {self.name}: dp_replica={self.dp_replica}: a replica has at least 1 rank")

    def plan(self, request: Request, view: View) -> Plan:
        """NCCL's algorithm on the ranks that are left, over the NICs that work.

        Raises:
            PartitionedError: too few ranks are left, or the root of the collective is none of them.
        """
        require_known(request, view.cluster, self.name)
        own = replace(request, group=self.members(request.group, view))
        if OPERATIONS[own.op].rooted and own.root not in own.group:
            raise PartitionedError(f"{self.spec}: rank {own.root} is dropped, and it is the root of {own.op}")
        return nccl_plan(own, view, self._channels(own, view))

    def _channels(self, request: Request, view: View) -> Channels:
        """All NICs that work for a group with most ranks of its servers, which has them to itself whoever was dropped.

        A group with fewer has its own NICs; none of them is dead, since their ranks have been dropped, unless its
        channels are not those of its ranks.
        """
        server = view.cluster.servers
        on_servers = sum(len(server[s].ranks) for s in servers_of(request, view.cluster))
        if 2 * len(request.group) > on_servers:
            return Channels(working_lanes(request, view), view.fractions)
        lanes = own_lanes(request, view.cluster)
        if all(view.fraction[nic] > 0 for lane in lanes for nic in lane.values()):
            return Channels(lanes, view.fractions)
        return Channels(lanes, view.fractions, bind=partial(spread_rows, view=view))

    @property
    def survives(self) -> bool:
        """The ranks that are left need a new communicator."""
        return False

    def react(self, event: Break, running: Plan, view: View) -> Abort:  # noqa: ARG002
        """The running collective cannot do without the ranks that it began with."""
        return Abort(f"{view.cluster.nics[event.nic].full_name} went down")

    def job_react(self, event: Aborted) -> Shrink:
        """Drops the ranks of the broken NIC, and of all others that are known to be down."""
        fraction = tuple(0.0 if n == event.nic else f for n, f in enumerate(event.view.fraction))
        left = set(self.members(event.group, View(event.view.cluster, fraction)))
        return Shrink(tuple(rank for rank in event.group if rank not in left), self.rebuild_s)

    def members(self, group: tuple[int, ...], view: View) -> tuple[int, ...]:
        """The ranks whose replica has no rank next to a dead NIC.

        Raises:
            PartitionedError: fewer than two ranks are left.
            InputError: the cluster's ranks do not make whole replicas.
        """
        ranks = view.cluster.n_ranks
        if ranks % self.dp_replica:
            raise InputError(
                f"strategy {self.name}: dp_replica={self.dp_replica} does not divide the {ranks} ranks of "
                f"{view.cluster.name}"
            )
        affected = affected_ranks(view)
        if not affected:
            return group
        hit = {rank // self.dp_replica for rank in affected}
        left = tuple(rank for rank in group if rank // self.dp_replica not in hit)
        if len(left) < min(2, len(group)):
            names = ", ".join(view.cluster.nics[n].full_name for n, f in enumerate(view.fraction) if f == 0)
            some = f"only rank {left[0]}" if left else "no rank"
            raise PartitionedError(f"{self.spec}: {some} is left without {names}; nobody to reduce with")
        return left


@lru_cache(maxsize=64)
def affected_ranks(view: View) -> frozenset[int]:
    """The ranks that send over a dead NIC: the GPUs next to it, and all of a server without a NIC."""
    cluster, near = view.cluster, nics_of_ranks(view.cluster)
    hit: set[int] = set()
    for server in (cluster.servers[s] for s in view.dead_servers):
        dead = {nic for nic in server.nics if view.fraction[nic] == 0}
        if len(dead) == len(server.nics):
            hit.update(server.ranks)
        hit.update(rank for rank in server.ranks if not dead.isdisjoint(near[rank]))
        hit.update(server_order(cluster, nic)[0] for nic in dead)
    return frozenset(hit)
