"""The plan that most strategies share: one flat ring per channel over given lanes."""

from collections.abc import Sequence

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Row, binding_of
from r2cc_simai.collectives.channels import Lane, channel_lanes, lane_rows, server_of_rank
from r2cc_simai.collectives.direct import nics_of_ranks
from r2cc_simai.collectives.operations import OPERATIONS
from r2cc_simai.collectives.ring_allreduce import Bind, add_rings
from r2cc_simai.collectives.schedule import ScheduleBuilder, pieces
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.strategies.base import Plan, Request

PIPELINED = 4  # chunks of a section: the first of them matter little then


def require_all_reduce(request: Request, cluster: Cluster, strategy: str) -> None:
    """Refuses what the ring plans do not know.

    Raises:
        InputError: another collective, or a group with ranks that the cluster does not have.
    """
    if request.op != "all_reduce":
        raise InputError(f"strategy {strategy}: {request.op} is not known; only all_reduce is")
    _require_group(request, cluster, strategy)


def require_known(request: Request, cluster: Cluster, strategy: str) -> None:
    """Refuses a collective that NCCL does not have, and a group that makes no sense.

    Raises:
        InputError: an unknown collective, ranks that the cluster does not have, or a root outside the group.
    """
    if request.op not in OPERATIONS:
        raise InputError(f"strategy {strategy}: {request.op} is not known (allowed: {', '.join(OPERATIONS)})")
    _require_group(request, cluster, strategy)
    if OPERATIONS[request.op].rooted and request.root not in request.group:
        raise InputError(f"strategy {strategy}: the root {request.root} of {request.op} is none of the group's ranks")
    if request.op == "send" and len(request.group) > 2:
        raise InputError(f"strategy {strategy}: send goes from one rank to another, here are {len(request.group)}")


def balance_note(strategy: str, op: str) -> str:
    """What a plan of a strategy says that leaves a collective to Balance."""
    return f"{strategy} changes nothing of {op}: it runs as under balance"


def _require_group(request: Request, cluster: Cluster, strategy: str) -> None:
    if not request.group or min(request.group) < 0 or max(request.group) >= cluster.n_ranks:
        raise InputError(f"strategy {strategy}: a group names ranks from 0 to {cluster.n_ranks - 1} of {cluster.name}")
    if len(set(request.group)) < len(request.group):
        raise InputError(f"strategy {strategy}: a rank stands twice in the group")


def require_whole_cluster(request: Request, cluster: Cluster, strategy: str) -> None:
    """Refuses a group that is not all ranks.

    Raises:
        InputError: ranks are missing.
    """
    if len(request.group) != cluster.n_ranks:
        raise InputError(f"strategy {strategy}: the group must be all {cluster.n_ranks} ranks of {cluster.name}")


def is_whole(request: Request, cluster: Cluster) -> bool:
    """Whether the group is every rank of the cluster."""
    return len(request.group) == cluster.n_ranks


def builder_for(request: Request, cluster: Cluster) -> ScheduleBuilder:
    """An empty schedule for a request, with the cluster's chunk size and wire protocol."""
    return ScheduleBuilder(
        n_ranks=cluster.n_ranks,
        bytes=request.bytes,
        chunk_bytes=cluster.chunk_bytes,
        wire_factor=cluster.wire_factor(request.bytes),
    )


def servers_of(request: Request, cluster: Cluster) -> list[int]:
    """Numbers of the servers on which the group has ranks."""
    return sorted(set(server_of_rank(cluster)[list(request.group)].tolist()))


def own_lanes(request: Request, cluster: Cluster) -> list[Lane]:
    """The channels of a group on the healthy cluster: those of the NICs that are nearest to its GPUs.

    A communicator over all GPUs has all rails; with tensor parallelism inside the servers, each of the data-parallel
    groups across them has the rail of its GPUs. A group whose NICs share no rail on a fabric that does not join them
    uses all. Inside one server a channel is no more than an order of the GPUs, whatever its NIC does; where its
    chunks make a long pipeline one of them is as fast as several.
    """
    servers = servers_of(request, cluster)
    every = np.ones(len(cluster.nics), dtype=bool)
    if len(servers) == 1 and request.bytes >= PIPELINED * len(request.group) * cluster.chunk_bytes:
        return channel_lanes(cluster, servers, every)[:1]
    if is_whole(request, cluster):
        return channel_lanes(cluster, servers, every)
    near = nics_of_ranks(cluster)
    own = np.zeros(len(cluster.nics), dtype=bool)
    own[[nic for rank in request.group for nic in near[rank]]] = True
    try:
        return channel_lanes(cluster, servers, own)
    except PartitionedError:
        return channel_lanes(cluster, servers, every)


def working_lanes(request: Request, view: View) -> list[Lane]:
    """Channels over all NICs that work on the servers of a group, which has them to itself.

    Raises:
        PartitionedError: two servers are not joined by what works.
    """
    servers = servers_of(request, view.cluster)
    if len(servers) == 1:
        return own_lanes(request, view.cluster)
    return channel_lanes(view.cluster, servers, view.alive)


def ring_plan(
    request: Request, view: View, lanes: Sequence[Lane], bounds: Sequence[int], bind: Bind = lane_rows
) -> Plan:
    """Flat rings over the group, lane i on the bytes bounds[i]:bounds[i+1]; `bind` makes their binding rows."""
    builder = builder_for(request, view.cluster)
    rows: list[Row] = []
    members = None if is_whole(request, view.cluster) else frozenset(request.group)
    add_rings(builder, view.cluster, lanes, bounds, rows, members=members, bind=bind)
    return Plan(builder.build(), binding_of(rows))


def even(request: Request, lanes: Sequence[Lane]) -> list[int]:
    """Bounds that give every lane the same bytes, as NCCL's channels have them."""
    return [int(b) for b in pieces(0, request.bytes, len(lanes))]


def in_proportion(size: int, shares: Sequence[float]) -> list[int]:
    """Bounds that cut `size` bytes in proportion to `shares`, rounded to whole bytes."""
    total = np.concatenate(([0.0], np.cumsum(shares)))
    return [round(size * float(part) / float(total[-1])) for part in total]
