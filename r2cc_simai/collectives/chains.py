"""Broadcast and Reduce as NCCL's rings run them: a pipelined chain of all ranks from, or to, the root.

Each channel follows its ring round from the root, so every rank but the last receives and sends a channel's bytes once:
T0 = D/B, and the chunks that fill the pipeline.
"""

from collections.abc import Sequence

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.block_rings import lane_cuts
from r2cc_simai.collectives.channels import Lane, ring_route
from r2cc_simai.collectives.operations import Call
from r2cc_simai.collectives.ring_allreduce import Bind
from r2cc_simai.collectives.schedule import ScheduleBuilder


def add_chains(
    builder: ScheduleBuilder,
    cluster: Cluster,
    lanes: Sequence[Lane],
    shares: Sequence[float],
    call: Call,
    rows: list[Row],
    bind: Bind,
    *,
    reduce: bool,
) -> None:
    """Adds one chain per lane; lane i carries `shares[i]` of the bytes.

    Broadcast: it starts at the root. Reduce (`reduce`): it ends at the root and adds on its way.
    """
    hops = len(call.group) - 1
    if hops < 1:
        return
    bounds = lane_cuts(np.array([call.bytes]), shares)[:, 0]
    members = frozenset(call.group)
    for i, lane in enumerate(lanes):
        ring = ring_route(cluster, lane, members)
        at = int(np.nonzero(ring == call.root)[0][0])
        ranks = np.roll(ring, -at - reduce)  # the root first, or last
        channel = builder.new_channel()
        lo, hi = int(bounds[i]), int(bounds[i + 1])
        builder.chain(channel, builder.route(ranks), lo, hi, hops * reduce, hops * (not reduce))
        rows.extend(bind(cluster, channel, ranks, lane, cyclic=False))
