"""Ring AllReduce: reduce-scatter and all-gather round a flat ring, one ring per channel.

Each of p ranks sends 2(p-1)/p of a channel's bytes; T0 = 2(p-1)/p * D/B (R2CC paper, arXiv 2512.25059).
"""

from collections.abc import Sequence

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import Lane, lane_rows, ring_route
from r2cc_simai.collectives.schedule import ScheduleBuilder


def add_rings(
    builder: ScheduleBuilder,
    cluster: Cluster,
    lanes: Sequence[Lane],
    bounds: Sequence[int],
    rows: list[Row],
    after: Sequence[int] = (),
) -> list[int]:
    """Adds one ring per lane, lane i over the bytes bounds[i]:bounds[i+1]; appends its binding to `rows`.

    Returns the positions of the passes. A lane on a single rank has nothing to move and adds none.
    """
    added = []
    for lane, lo, hi in zip(lanes, bounds[:-1], bounds[1:], strict=True):
        ranks = ring_route(cluster, lane)
        if len(ranks) < 2:
            continue
        channel = builder.new_channel()
        added.append(builder.ring(channel, builder.route(ranks), int(lo), int(hi), after=after))
        rows.extend(lane_rows(cluster, channel, ranks, lane, cyclic=True))
    return added
