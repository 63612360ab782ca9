"""The plan that most strategies share: one flat ring per channel over given lanes."""

from collections.abc import Sequence

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Row, binding_of
from r2cc_simai.collectives.channels import Lane, channel_lanes
from r2cc_simai.collectives.ring_allreduce import add_rings
from r2cc_simai.collectives.schedule import ScheduleBuilder, pieces
from r2cc_simai.errors import InputError
from r2cc_simai.strategies.base import Plan, Request


def require_all_reduce(request: Request, cluster: Cluster, strategy: str) -> None:
    """Refuses what the ring plans do not know.

    Raises:
        InputError: another collective, or a group that is not the whole cluster.
    """
    if request.op != "all_reduce":
        raise InputError(f"strategy {strategy}: {request.op} is not known; only all_reduce is")
    if request.group != tuple(range(cluster.n_ranks)):
        raise InputError(f"strategy {strategy}: the group must be all {cluster.n_ranks} ranks of {cluster.name}")


def builder_for(request: Request, cluster: Cluster) -> ScheduleBuilder:
    """An empty schedule for a request, with the cluster's chunk size and wire protocol."""
    return ScheduleBuilder(
        n_ranks=cluster.n_ranks,
        bytes=request.bytes,
        chunk_bytes=cluster.chunk_bytes,
        wire_factor=cluster.wire_factor(request.bytes),
    )


def healthy_lanes(cluster: Cluster) -> list[Lane]:
    """The channels of a cluster without failures."""
    return channel_lanes(cluster, range(len(cluster.servers)), np.ones(len(cluster.nics), dtype=bool))


def ring_plan(request: Request, view: View, lanes: Sequence[Lane], bounds: Sequence[int]) -> Plan:
    """Flat rings, lane i on the bytes bounds[i]:bounds[i+1]."""
    builder = builder_for(request, view.cluster)
    rows: list[Row] = []
    add_rings(builder, view.cluster, lanes, bounds, rows)
    return Plan(builder.build(), binding_of(rows))


def even(request: Request, lanes: Sequence[Lane]) -> list[int]:
    """Bounds that give every lane the same bytes, as NCCL's channels have them."""
    return [int(b) for b in pieces(0, request.bytes, len(lanes))]


def in_proportion(size: int, shares: Sequence[float]) -> list[int]:
    """Bounds that cut `size` bytes in proportion to `shares`, rounded to whole bytes."""
    total = np.concatenate(([0.0], np.cumsum(shares)))
    return [round(size * float(part) / float(total[-1])) for part in total]
