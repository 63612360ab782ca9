"""R2CC-AllReduce: an AllReduce in which the degraded server carries less (R2CC paper, arXiv 2512.25059).

Stage 1: a global ring on (1-Y)D and beside it a ring of the healthy servers on YD. Stage 2, per chunk of YD: the
degraded server's own part meets the healthy sum at one root, and the whole sum goes down a chain to all others.
Consecutive chunks use both directions at once, hence the factor 1 + 1/K of T3. With D bytes, bandwidth B and a lost
fraction X of the degraded server's::

    T1 = 2(n-1)/n * (1-Y)D / ((1-X)B)      T2 = 2(n-2)/(n-1) * YD / (XB)      T3 = (1+1/K) * YD / ((1-X)B)
    T = max(T1, T2) + T3                    Y* = X(n-1)^2 / (X(n-1)^2 + (1-X)n(n-2))
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import Lane, lane_rows, ring_route, server_order
from r2cc_simai.collectives.ring_allreduce import add_rings
from r2cc_simai.collectives.schedule import ScheduleBuilder, pieces


@dataclass(frozen=True)
class Division:
    """What goes where: stage 1's global rings act on bytes[0:cut], the rings of the healthy servers on [cut:D]."""

    degraded: int
    cut: int
    global_lanes: Sequence[Lane]
    global_bounds: Sequence[int]
    partial_lanes: Sequence[Lane]
    partial_bounds: Sequence[int]
    stage2_bounds: Sequence[int]


def optimal_y(lost: float, ranks: int, degraded_ranks: int) -> float:
    """Y*, where T1 = T2: the optimum of T(Y).

    With p ranks of which g are on the degraded server, T1 = 2(p-1)/p (1-Y)D/((1-X)B) and
    T2 = 2(p-g-1)/(p-g) YD/(XB); one GPU a server gives the formula of the paper.
    """
    healthy = ranks - degraded_ranks
    slope1 = (ranks - 1) / ranks / (1 - lost)
    slope2 = (healthy - 1) / healthy / lost
    return slope1 / (slope1 + slope2)


def add_r2cc_allreduce(builder: ScheduleBuilder, cluster: Cluster, division: Division, k: int, rows: list[Row]) -> None:
    """Adds both stages to a schedule and their NICs to `rows`; `k` is the number of pipelined chunks of stage 2."""
    stage1 = add_rings(builder, cluster, division.global_lanes, division.global_bounds, rows)
    stage1 += add_rings(builder, cluster, division.partial_lanes, division.partial_bounds, rows)
    for lane, lo, hi in zip(
        division.global_lanes, division.stage2_bounds[:-1], division.stage2_bounds[1:], strict=True
    ):
        _add_stage2(builder, cluster, division.degraded, lane, (lo, hi), k, stage1, rows)


def _add_stage2(
    builder: ScheduleBuilder,
    cluster: Cluster,
    degraded: int,
    lane: Lane,
    span: tuple[int, int],
    k: int,
    stage1: Sequence[int],
    rows: list[Row],
) -> None:
    # The degraded server's ranks in turn, the one nearest to the NIC last; then down from the root through all others.
    order = server_order(cluster, lane[degraded])
    servers = list(lane)
    at = servers.index(degraded)
    around = {server: lane[server] for server in [*servers[at + 1 :], *servers[: at + 1]]}
    chain = ring_route(cluster, around)
    up = np.array([*order[1:], order[0], chain[0]], dtype=np.int64)
    reducing, spreading = builder.new_channel(), builder.new_channel()
    up_route, down_route = builder.route(up), builder.route(chain)
    rows.extend(lane_rows(cluster, reducing, up, lane, cyclic=False))
    rows.extend(lane_rows(cluster, spreading, chain, lane, cyclic=False))
    bounds = pieces(span[0], span[1], k)
    for lo, hi in pairwise(bounds):
        summed = builder.chain(reducing, up_route, int(lo), int(hi), len(up) - 1, 0, after=stage1)
        builder.chain(spreading, down_route, int(lo), int(hi), 0, len(chain) - 1, after=[summed])
