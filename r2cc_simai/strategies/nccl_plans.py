"""The plan that most strategies share: NCCL's algorithm for each collective over given channels and NICs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.all_to_all import add_all_to_all
from r2cc_simai.collectives.binding import Row, binding_of
from r2cc_simai.collectives.block_rings import add_block_rings
from r2cc_simai.collectives.chains import add_chains
from r2cc_simai.collectives.channels import Lane, lane_rows
from r2cc_simai.collectives.direct import Direct
from r2cc_simai.collectives.double_tree import add_double_trees
from r2cc_simai.collectives.operations import Call
from r2cc_simai.collectives.ring_allreduce import Bind
from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.collectives.send_recv import add_send, add_send_recv
from r2cc_simai.strategies.base import Plan, Request
from r2cc_simai.strategies.rings import builder_for, even, in_proportion, is_whole, ring_plan
from r2cc_simai.strategies.tuning import tree_slices


@dataclass(frozen=True, eq=False)
class Channels:
    """What a plan may use.

    `lanes` are for rings and trees; `shares` divide the bytes among them (None: evenly) and `bind` makes their binding.
    `fraction` is the part of its rate that each NIC has for direct sends, shape (n_nics,), `weighted` by it or not.
    """

    lanes: Sequence[Lane]
    fraction: NDArray[np.float64]
    shares: Sequence[float] | None = None
    bind: Bind = lane_rows
    weighted: bool = False


def healthy_channels(view: View, lanes: Sequence[Lane]) -> Channels:
    """Channels over given lanes of a healthy view."""
    return Channels(lanes, view.fractions)


def nccl_plan(request: Request, view: View, channels: Channels) -> Plan:
    """The plan of a request that `require_known` has let through."""
    if request.op == "all_reduce":
        return _all_reduce(request, view, channels)
    if request.op in _DIRECT:
        return _direct(request, view, channels)
    builder = builder_for(request, view.cluster)
    rows: list[Row] = []
    shares = channels.shares or [1.0] * len(channels.lanes)
    call = Call(request.group, request.bytes, request.root)
    _ON_LANES[request.op](builder, view.cluster, channels.lanes, shares, call, rows, channels.bind)
    return Plan(builder.build(), binding_of(rows))


def _all_reduce(request: Request, view: View, channels: Channels) -> Plan:
    lanes = channels.lanes
    bounds = even(request, lanes) if channels.shares is None else in_proportion(request.bytes, channels.shares)
    members = None if is_whole(request, view.cluster) else frozenset(request.group)
    slices = tree_slices(view, request.bytes, lanes, members)
    if slices == 0:
        return ring_plan(request, view, lanes, bounds, channels.bind)
    builder = builder_for(request, view.cluster)
    rows: list[Row] = []
    add_double_trees(builder, view.cluster, lanes, bounds, rows, slices, members, channels.bind)
    return Plan(builder.build(), binding_of(rows))


def _direct(request: Request, view: View, channels: Channels) -> Plan:
    """Direct sends; where several ranks send, in a virtual buffer in which each has a place of its own."""
    senders = 1 if request.op == "send" else len(request.group)
    builder = replace(builder_for(request, view.cluster), bytes=request.bytes * senders)
    direct = Direct(view.cluster, channels.fraction, channels.weighted)
    rows = _DIRECT[request.op](builder, direct, Call(request.group, request.bytes))
    return Plan(builder.build(), binding_of(rows))


_ON_LANES = {
    "all_gather": partial(add_block_rings, reduce=False),
    "reduce_scatter": partial(add_block_rings, reduce=True),
    "broadcast": partial(add_chains, reduce=False),
    "reduce": partial(add_chains, reduce=True),
}
_DIRECT: dict[str, Callable[[ScheduleBuilder, Direct, Call], NDArray[np.float64]]] = {
    "all_to_all": add_all_to_all,
    "send_recv": add_send_recv,
    "send": add_send,
}
