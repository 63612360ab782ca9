"""R2CC-AllReduce as a strategy: when it applies, and how the buffer is divided."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Row, binding_of
from r2cc_simai.collectives.channels import Lane, channel_lanes
from r2cc_simai.collectives.r2cc_allreduce import Division, add_r2cc_allreduce, one_level, optimal_y
from r2cc_simai.errors import InputError
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.r2cc_levels import best_division
from r2cc_simai.strategies.rings import builder_for, in_proportion, require_all_reduce, require_whole_cluster

SMALLEST = 16 * 2**20  # bytes: below, R2CC's authors fall back to Balance


@dataclass(frozen=True)
class R2ccAllReduce(Strategy):
    """`k` pipelined chunks in stage 2; `y=x` puts the lost fraction aside for the healthy servers, `y=opt` Y*."""

    name: ClassVar[str] = "r2cc-allreduce"
    k: int = 4
    y: Literal["x", "opt"] = "x"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"strategy r2cc-allreduce: k={self.k}: at least 1 chunk is wanted")

    def plan(self, request: Request, view: View) -> Plan:
        """Both stages; Balance where nothing is lost or the buffer is small.

        With several degraded servers the healthier ones form smaller rings, level by level, as long as the formulas
        say that a level saves more than its stage 2 costs. Where none does, for example when all servers have lost the
        same, it is plain rings over what works, and a note says so.

        Raises:
            PartitionedError: the servers are not joined by what works.
            InputError: another request than an AllReduce of all ranks, or more chunks than bytes.
        """
        require_all_reduce(request, view.cluster, self.name)
        require_whole_cluster(request, view.cluster, self.name)
        if not view.degraded():
            return Balance().plan(request, view)
        if request.bytes < SMALLEST:
            return replace(Balance().plan(request, view), note="r2cc-allreduce falls back to balance below 16 MiB")
        several = len(view.degraded()) > 1
        division = best_division(view, request.bytes, self.k, self.y)[0] if several else self._divide(request, view)
        self._check_chunks(division)
        builder = builder_for(request, view.cluster)
        rows: list[Row] = []
        add_r2cc_allreduce(builder, view.cluster, division, self.k, rows)
        split = 2 * view.cluster.spec.costs.communicator_split_s  # the healthy ring and the chain
        if division.levels:
            return Plan(builder.build(), binding_of(rows), one_off_s=split)
        note = f"r2cc-allreduce: plain rings; with {len(view.degraded())} degraded servers no smaller ring saves time"
        return Plan(builder.build(), binding_of(rows), note=note)

    def _check_chunks(self, division: Division) -> None:
        for level in division.levels:
            size = level.bounds[-1] - level.bounds[0]
            if self.k * len(level.parts) > size:
                raise InputError(f"strategy {self.spec}: more chunks than the {size} bytes of stage 2")

    def _divide(self, request: Request, view: View) -> Division:
        cluster = view.cluster
        lanes = channel_lanes(cluster, range(len(cluster.servers)), view.alive)  # refuses a server without a NIC
        server = view.degraded()[0]
        lost = view.lost(server)
        ranks = len(cluster.servers[server].ranks)
        y = lost if self.y == "x" else optimal_y(lost, cluster.n_ranks, ranks)
        cut = request.bytes - round(y * request.bytes)
        share = [min(view.fraction[nic] for nic in lane.values()) for lane in lanes]  # even but for slowed NICs
        partial, lost_rates = _partial_lanes(view, server)
        return one_level(
            degraded=server,
            lanes=lanes,
            bounds=in_proportion(cut, share),
            partial_lanes=partial,
            partial_bounds=[cut + b for b in in_proportion(request.bytes - cut, lost_rates)],
            stage2_bounds=[cut + b for b in in_proportion(request.bytes - cut, share)],
        )


def _partial_lanes(view: View, degraded: int) -> tuple[list[Lane], list[float]]:
    """Lanes of the healthy servers over the rails on which the degraded one has lost bandwidth, and how much it lost.

    Those NICs of the healthy servers have that much to spare while the global ring runs.
    """
    cluster = view.cluster
    lost = {
        cluster.nics[n].rail: cluster.nics[n].payload_rate * (1 - view.fraction[n])
        for n in cluster.servers[degraded].nics
        if view.fraction[n] < 1
    }
    healthy = [s.index for s in cluster.servers if s.index != degraded]
    lanes = channel_lanes(cluster, healthy, np.ones(len(cluster.nics), dtype=bool))
    on_lost = [lane for lane in lanes if cluster.nics[next(iter(lane.values()))].rail in lost]
    if not on_lost:
        return lanes, [1.0] * len(lanes)
    return on_lost, [lost[cluster.nics[next(iter(lane.values()))].rail] for lane in on_lost]
