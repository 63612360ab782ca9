"""OptCC: an AllReduce near the lower bound while some servers have lost bandwidth (OptCC paper, arXiv 2606.01680).

The buffer is cut in K segments of M sections, one per rank of the healthy servers. S is a degraded server. Per segment

1. reduce-scatter on the ring of the healthy ranks,
2. the owner of each section sends its partial sum to S,
3. S adds its own part and returns the sum to the owner,
4. all-gather on the healthy ring.

Segments alternate between this order and the order 3-1-4-2, in which S first sends its raw section, which the ring's
first rank adds, and gets the whole sum last. Staggered over groups of four segments this keeps both directions of S's
NICs busy. Segments overlap by data flow, without barriers. With l = 1/(1-X), m healthy servers of n and B the bandwidth
of a server the bottlenecks are S, l D/B, and a healthy server, (2(m-1) + 1)/m D/B.

The three-stage form runs 2 and 3 of a segment as one stream through S. With several degraded servers each sends its raw
sections first and gets the sums last: a healthy server then carries (2(m-1) + d)/m D/B for d of them.

Servers of several GPUs take part with one GPU per rail: its segment is first reduced inside each server onto that GPU,
and spread from there at the end, over the links between the GPUs.

The reduce-scatter and the all-gather of all segments take turns in one channel: side by side, an all-gather that nobody
waits for yet would take bandwidth from the reduce-scatter that S waits for. For the same reason the raw sections of a
segment wait for the reduce-scatter d + 3 segments before: nothing else holds them back, and at ports that serve first
come, first served they would delay the ring's sections, for which the other direction of those ports then stands idle.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import Int, Lane, lane_rows, server_order
from r2cc_simai.collectives.schedule import ScheduleBuilder, pieces
from r2cc_simai.errors import InputError

# Segments beyond one for each degraded server (which send in turn) by which raw sections are ahead of the healthy ring.
RAW_AHEAD = 3

Form = Literal["four", "three"]
# (channel, route, lane) -> binding rows of the hops to and from degraded servers
LegRows = Callable[[int, Int, Lane], list[Row]]


@dataclass(frozen=True)
class Lap:
    """One channel's part: its lane over the healthy servers, a NIC of each degraded server, and its bytes [lo:hi].

    On every server the GPU nearest to the NIC takes part. Without degraded servers a lap is a hierarchical ring.
    """

    lane: Lane
    entry: Lane
    lo: int
    hi: int


def add_optcc(
    builder: ScheduleBuilder,
    cluster: Cluster,
    laps: Sequence[Lap],
    k: int,
    form: Form,
    rows: list[Row],
    legs: LegRows,
    members: Collection[int] | None = None,
) -> None:
    """Adds the scheme over all laps with `k` segments each; appends the binding to `rows`.

    `legs` binds the hops between healthy and degraded servers. The three-stage form takes one degraded server.
    `members` restricts it to some ranks, as many on every server.
    """
    for lap in laps:
        if lap.hi > lap.lo:
            _LapBuilder(builder, cluster, lap, rows, legs, members).add(k, form)


class _LapBuilder:
    """The channels and routes of one lap, and per segment the pass that its next step waits for.

    Section i of a segment starts its reduce-scatter at position i of the healthy ring and ends it one position before.
    """

    def __init__(
        self,
        builder: ScheduleBuilder,
        cluster: Cluster,
        lap: Lap,
        rows: list[Row],
        legs: LegRows,
        members: Collection[int] | None,
    ) -> None:
        self._builder = builder
        self._lap = lap
        orders = {
            server: tuple(rank for rank in server_order(cluster, nic) if members is None or rank in members)
            for server, nic in (lap.lane | lap.entry).items()
        }
        self._members = np.array([orders[server][0] for server in lap.lane], dtype=np.int64)
        self._degraded = {server: orders[server][0] for server in lap.entry}
        self._last: dict[int, list[int]] = {}
        self._scattered: dict[int, int] = {}  # segment -> its reduce-scatter
        self._ring = builder.new_channel()
        self._ring_route = builder.route(self._members)
        rows.extend(lane_rows(cluster, self._ring, self._members, lap.lane, cyclic=True))
        self._into = {server: builder.new_channel() for server in lap.entry}
        self._out = {server: builder.new_channel() for server in lap.entry}
        self._routes: dict[tuple[str, int], int] = {}
        for server, rank in self._degraded.items():
            self._add_legs(server, rank, rows, legs)
        self._collecting, self._spreading = builder.new_channel(), builder.new_channel()
        self._add_inside(list(orders.values()))

    def _add_legs(self, server: int, rank: int, rows: list[Row], legs: LegRows) -> None:
        """The ways between the owners and a degraded server: one short stretch per section, all in one route."""
        starters, owners = self._members, np.roll(self._members, 1)
        there = np.full_like(owners, rank)
        stretches = {
            "arrive": ([owners, there], self._into),
            "leg": ([owners, there, owners], self._into),
            "raw": ([there, starters], self._out),
            "result": ([there, owners], self._out),
        }
        bound: dict[tuple[int | float, ...], Row] = {}
        for what, (columns, channels) in stretches.items():
            route = np.column_stack(columns).reshape(-1)
            self._routes[what, server] = self._builder.route(route)
            bound |= {row[:5]: row for row in legs(channels[server], route, self._lap.lane)}
        rows.extend(bound.values())

    def _add_inside(self, orders: Sequence[tuple[int, ...]]) -> None:
        """The chains inside all servers, in one route: onto the GPU that takes part, and from it to the others."""
        self._gpus = max(len(order) for order in orders)
        self._chains = len(orders)
        if any(len(order) != self._gpus for order in orders):
            raise InputError("optcc: the servers have different numbers of GPUs")
        inward = np.array([order[::-1] for order in orders], dtype=np.int64)
        self._inward = self._builder.route(inward.reshape(-1))
        self._outward = self._builder.route(inward[:, ::-1].reshape(-1))

    def add(self, k: int, form: Form) -> None:
        """Adds all segments, each channel's passes in the order in which it takes them."""
        segments = pieces(self._lap.lo, self._lap.hi, k)
        for segment, what in _order(k, form, len(self._degraded)):
            self._emit(segment, what, pieces(int(segments[segment]), int(segments[segment + 1]), len(self._members)))

    def _emit(self, segment: int, what: str, bounds: Int) -> None:
        before = self._last.get(segment, []) + (self._paced_by(segment) if what == "raw" else [])
        if what in ("collect", "spread"):
            added = self._emit_inside(what, int(bounds[0]), int(bounds[-1]), before)
        elif what in ("scatter", "gather"):
            added = [self._emit_ring(what, bounds, before)]
            if what == "scatter":
                self._scattered[segment] = added[0]
        else:
            added = self._emit_legs(what, bounds, before)
        if added:
            self._last[segment] = added

    def _paced_by(self, segment: int) -> list[int]:
        """The reduce-scatter that the raw sections of a segment wait for, so that they do not run ahead of the ring."""
        earlier = segment - len(self._degraded) - RAW_AHEAD
        return [self._scattered[earlier]] if earlier >= 0 else []

    def _emit_inside(self, what: str, lo: int, hi: int, before: list[int]) -> list[int]:
        hops = self._gpus - 1
        if hops == 0:
            return []
        collect = what == "collect"
        lo_of, hi_of = (np.full(self._chains, edge, dtype=np.int64) for edge in (lo, hi))
        one = self._builder.spans(
            self._collecting if collect else self._spreading,
            self._inward if collect else self._outward,
            lo_of,
            hi_of,
            np.arange(self._chains, dtype=np.int64) * self._gpus,
            hops if collect else 0,
            0 if collect else hops,
            after=before,
        )
        return [one]

    def _emit_ring(self, what: str, bounds: Int, before: list[int]) -> int:
        n = len(self._members)
        at = np.arange(n, dtype=np.int64)
        start, hops = (at, (n - 1, 0)) if what == "scatter" else ((at - 1) % n, (0, n - 1))
        weight = 2.0 * (self._lap.hi - self._lap.lo)  # of its channel: a reduce-scatter and an all-gather of all
        return self._builder.sections(
            self._ring, self._ring_route, bounds, start, *hops, cyclic=True, after=before, weight=weight
        )

    def _emit_legs(self, what: str, bounds: Int, before: list[int]) -> list[int]:
        route, channels, stride, reduce_hops, copy_hops = {
            "raw": ("raw", self._out, 2, 1, 0),
            "partial": ("arrive", self._into, 2, 1, 0),
            "result": ("result", self._out, 2, 0, 1),
            "final": ("arrive", self._into, 2, 0, 1),
            "leg": ("leg", self._into, 3, 1, 1),
        }[what]
        start = np.arange(len(self._members), dtype=np.int64) * stride
        added: list[int] = []
        for server in self._degraded:
            # What several servers add to the same sections is added in turn.
            waits = before + added[-1:] if what == "raw" else before
            one = self._builder.sections(
                channels[server],
                self._routes[route, server],
                bounds,
                start,
                reduce_hops,
                copy_hops,
                after=waits,
                weight=float(self._lap.hi - self._lap.lo),
            )
            added.append(one)
        return added


def _order(k: int, form: Form, degraded: int) -> list[tuple[int, str]]:
    """All (segment, step) of k segments in the order in which their channels take them."""
    steps = ("collect", "final", "raw", "partial", "leg", "result", "scatter", "gather", "spread")
    ranks = {step: i for i, step in enumerate(steps)}
    bodies = [
        (body, ranks[step], segment, step) for segment in range(k) for body, step in _steps(segment, form, degraded)
    ]
    return [(segment, step) for _, _, segment, step in sorted(bodies)]


def _steps(segment: int, form: Form, degraded: int) -> list[tuple[int, str]]:
    """The steps of a segment and the bodies in which they run (the stagger of the paper, four segments a group)."""
    group, place = divmod(segment, 4)
    first = 4 * group + (0, 0, 1, 1)[place] if form == "four" and degraded == 1 else segment
    if degraded == 0:
        steps = ["scatter", "gather"]
    elif degraded == 1 and form == "three":
        steps = ["scatter", "leg", "gather"]
    elif degraded == 1 and place % 2 == 0:
        steps = ["scatter", "partial", "result", "gather"]
    else:
        steps = ["raw", "scatter", "gather", "final"]
    inner = [(first + i, step) for i, step in enumerate(steps)]
    return [(first - 1, "collect"), *inner, (first + len(steps), "spread")]
