"""R2CC-AllReduce as a strategy: when it applies, and how the buffer is divided."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Row, binding_of
from r2cc_simai.collectives.channels import Lane, channel_lanes
from r2cc_simai.collectives.r2cc_allreduce import Division, add_r2cc_allreduce, one_level, optimal_y
from r2cc_simai.errors import InputError
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.r2cc_groups import placed, shared_division, shared_hops
from r2cc_simai.strategies.r2cc_levels import best_division
from r2cc_simai.strategies.rings import (
    balance_note,
    builder_for,
    in_proportion,
    is_whole,
    require_known,
    servers_of,
)
from r2cc_simai.strategies.shared_servers import PairsOf, rebound

SMALLEST_MIB = 16.0  # below, R2CC's authors fall back to Balance


@dataclass(frozen=True)
class R2ccAllReduce(Strategy):
    """`k` pipelined chunks in stage 2; `y=x` puts the lost fraction aside for the healthy servers, `y=opt` Y*.

    A buffer below `smallest_mib` falls back to Balance.
    """

    name: ClassVar[str] = "r2cc-allreduce"
    own_plans: ClassVar[frozenset[str] | None] = frozenset({"all_reduce"})
    k: int = 4
    y: Literal["x", "opt"] = "x"
    smallest_mib: float = SMALLEST_MIB

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"strategy r2cc-allreduce: k={self.k}: at least 1 chunk is wanted")
        if not self.smallest_mib >= 0:
            raise InputError(f"strategy r2cc-allreduce: smallest_mib={self.smallest_mib}: write 0 or more")

    def plan(self, request: Request, view: View) -> Plan:
        """Both stages; Balance where nothing is lost, for other collectives, and where the buffer is small.

        With several degraded servers the healthier ones form smaller rings, level by level, as long as the formulas
        say that a level saves more than its stage 2 costs. Where none does, for example when all servers have lost the
        same, it is plain rings over what works, and a note says so. A group that is a part of the cluster shares its
        servers with others (`r2cc_groups`); servers on which it has no rank do not matter to it.

        Raises:
            PartitionedError: the servers are not joined by what works.
            InputError: a request that makes no sense, or more chunks than bytes.
        """
        require_known(request, view.cluster, self.name)
        servers = servers_of(request, view.cluster)
        balanced = partial(Balance().plan, request, view)
        if request.op not in (self.own_plans or ()):
            return replace(balanced(), note=balance_note(self.name, request.op))
        if len(servers) < 2 or not view.degraded(servers):
            return balanced()
        if request.bytes < self.smallest_mib * 2**20:
            note = f"r2cc-allreduce falls back to balance below {self.smallest_mib:g} MiB"
            return replace(balanced(), note=note)
        return self._whole(request, view) if is_whole(request, view.cluster) else self._shared(request, view)

    def _shared(self, request: Request, view: View) -> Plan:
        """The plan of a group that is a part of the cluster."""
        hurt = view.degraded(servers_of(request, view.cluster))
        if len(hurt) > 1 and not view.cluster.rails_connected:
            note = f"r2cc-allreduce falls back to balance: {len(hurt)} degraded servers of a group, and rails apart"
            return replace(Balance().plan(request, view), note=note)
        channel_lanes(view.cluster, hurt, view.alive)  # refuses a server without a NIC
        division = shared_division(request, view, self.k, self.y)
        if len(division.rings) == 1:
            note = f"r2cc-allreduce falls back to balance: with {len(hurt)} degraded servers no smaller ring saves time"
            return replace(Balance().plan(request, view), note=note)
        return self._built(request, view, placed(request, view, division), shared_hops(view, division))

    def _whole(self, request: Request, view: View) -> Plan:
        """The plan of all ranks of the cluster."""
        several = len(view.degraded()) > 1
        division = best_division(view, request.bytes, self.k, self.y)[0] if several else self._divide(request, view)
        plan = self._built(request, view, division)
        if division.levels:
            return plan
        note = f"r2cc-allreduce: plain rings; with {len(view.degraded())} degraded servers no smaller ring saves time"
        return replace(plan, one_off_s=0.0, note=note)

    def _built(self, request: Request, view: View, division: Division, hops: PairsOf | None = None) -> Plan:
        """The plan of a division; `hops` says how hops of a group are spread that shares its servers with others."""
        self._check_chunks(division)
        builder = builder_for(request, view.cluster)
        rows: list[Row] = []
        add_r2cc_allreduce(builder, view.cluster, division, self.k, rows)
        bound = rows if hops is None else rebound(rows, view, hops)
        split = 2 * view.cluster.spec.costs.communicator_split_s  # the healthy ring and the chain
        return Plan(builder.build(), binding_of(bound), one_off_s=split)

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
        healthy_lanes, lost_rates = _partial_lanes(view, server)
        return one_level(
            degraded=server,
            lanes=lanes,
            bounds=in_proportion(cut, share),
            partial_lanes=healthy_lanes,
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
