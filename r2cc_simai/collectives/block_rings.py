"""Ring AllGather and ReduceScatter: the block of every rank goes once round the ring, one ring per channel.

Each of p ranks sends and receives (p-1)/p of a channel's bytes; T0 = (p-1)/p * D/B, D being the buffer of all blocks.
"""

from collections.abc import Sequence

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import Lane, ring_route
from r2cc_simai.collectives.operations import Call
from r2cc_simai.collectives.ring_allreduce import Bind
from r2cc_simai.collectives.schedule import Int, ScheduleBuilder


def lane_cuts(lengths: Int, shares: Sequence[float]) -> Int:
    """How blocks are divided among channels in proportion to `shares`: offsets, shape (channels + 1, blocks)."""
    total = np.concatenate(([0.0], np.cumsum(shares)))
    return np.rint(np.outer(total / total[-1], lengths)).astype(np.int64)


def add_block_rings(
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
    """Adds one ring per lane; lane i carries `shares[i]` of every block.

    AllGather: a block starts at its owner. ReduceScatter (`reduce`): it starts behind its owner and ends on it as the
    sum.
    """
    p = len(call.group)
    if p < 2:
        return
    blocks = call.blocks
    cuts = lane_cuts(np.diff(blocks), shares)
    index = {rank: k for k, rank in enumerate(call.group)}
    for i, lane in enumerate(lanes):
        ranks = ring_route(cluster, lane, index)
        owned = np.array([index[int(rank)] for rank in ranks], dtype=np.int64)  # block of each position
        lo, hi = blocks[owned] + cuts[i][owned], blocks[owned] + cuts[i + 1][owned]
        start = (np.arange(p, dtype=np.int64) + reduce) % p
        channel = builder.new_channel()
        hops = (p - 1, 0) if reduce else (0, p - 1)
        builder.spans(channel, builder.route(ranks), lo, hi, start, *hops, cyclic=True)
        rows.extend(bind(cluster, channel, ranks, lane, cyclic=True))
