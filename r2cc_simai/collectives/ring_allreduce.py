"""Ring AllReduce: reduce-scatter and all-gather round a flat ring, one ring per channel.

Each of p ranks sends 2(p-1)/p of a channel's bytes; T0 = 2(p-1)/p * D/B (R2CC paper, arXiv 2512.25059).
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import Int, Lane, lane_rows, ring_route
from r2cc_simai.collectives.schedule import ScheduleBuilder


class Bind(Protocol):
    """What makes the binding rows of a channel's route over a lane."""

    def __call__(self, cluster: Cluster, channel: int, route: Int, lane: Lane, *, cyclic: bool) -> list[Row]: ...


def add_rings(
    builder: ScheduleBuilder,
    cluster: Cluster,
    lanes: Sequence[Lane],
    bounds: Sequence[int],
    rows: list[Row],
    after: Sequence[int] = (),
    members: Collection[int] | None = None,
    bind: Bind = lane_rows,
) -> list[int]:
    """Adds one ring per lane, lane i over the bytes bounds[i]:bounds[i+1]; appends its binding to `rows`.

    `members` restricts the rings to some ranks; `bind` makes the binding rows of a lane. Returns the positions of the
    passes. A lane on a single rank has nothing to move and adds none.
    """
    added = []
    for lane, lo, hi in zip(lanes, bounds[:-1], bounds[1:], strict=True):
        ranks = ring_route(cluster, lane, members)
        if len(ranks) < 2:
            continue
        channel = builder.new_channel()
        added.append(builder.ring(channel, builder.route(ranks), int(lo), int(hi), after=after))
        rows.extend(bind(cluster, channel, ranks, lane, cyclic=True))
    return added
