"""R2CC-AllReduce of a group that shares its servers with others, as data-parallel groups do beside tensor parallelism.

Planning is per server: X is the lost fraction of a server over all its NICs, and every group on it divides its buffer
in the same way. With one dead NIC of eight each of eight groups has X = 1/8, whichever rail is its own.

A group's rings run on its own rail. A hop to or from a degraded server is spread over all that works there, and in the
ring of the healthy servers the hop that leaves the degraded one out takes the rails which that has lost: its neighbours
have room there. With B the rate of a group's own NICs each group then takes what `collectives.r2cc_allreduce` says of n
servers. Several degraded servers are left out level by level, as there; every hop at one of them gives each NIC of both
ends its part. That needs rails that are joined: on a switch per rail two servers that lost different rails cannot both
carry their part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import Lane, server_of_rank
from r2cc_simai.collectives.r2cc_allreduce import Division, Level, Part
from r2cc_simai.collectives.ring_order import Track
from r2cc_simai.collectives.schedule import pieces
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.r2cc_levels import SMALLEST_WIDTH
from r2cc_simai.strategies.rings import in_proportion, own_lanes
from r2cc_simai.strategies.shared_servers import PairsOf, around


@dataclass(frozen=True)
class SharedRing:
    """A ring of some servers of a group: how many ranks they have in it, and the part of a server's bandwidth that all
    of them have for it."""

    servers: tuple[int, ...]
    ranks: int
    width: float

    @property
    def way(self) -> float:
        """2(p-1)/p of a flat ring over p ranks."""
        return 2 * (self.ranks - 1) / self.ranks


@dataclass(frozen=True)
class SharedDivision:
    """Rings, the global one first, and the part of the buffer that each of them takes."""

    rings: tuple[SharedRing, ...]
    parts: tuple[float, ...]

    def time(self, k: int) -> float:
        """max(T1 of all rings) + (1 + 1/K) T3 in units of D/B."""
        stage1 = max(ring.way * part / ring.width for ring, part in zip(self.rings, self.parts, strict=True))
        return stage1 + (1 + 1 / k) * sum(self.parts[1:]) / self.rings[0].width


def shared_division(request: Request, view: View, k: int, y: Literal["x", "opt"]) -> SharedDivision:
    """The division with the number of levels that costs least; no level where none saves time."""
    rings = shared_rings(request, view)
    made = [_divided(rings[: depth + 1], y) for depth in range(len(rings))]
    return min(made, key=lambda division: division.time(k))


def shared_rings(request: Request, view: View) -> list[SharedRing]:
    """The global ring and ever smaller ones, without the servers that have nothing left for them."""
    count: dict[int, int] = {}
    for server in server_of_rank(view.cluster)[list(request.group)].tolist():
        count[server] = count.get(server, 0) + 1
    lost = {server: view.lost(server) if server in view.hurt_servers else 0.0 for server in sorted(count)}
    rings: list[SharedRing] = []
    for above, at in pairwise([1.0, *sorted(set(lost.values()), reverse=True)]):
        if above - at >= SMALLEST_WIDTH or not rings:
            members = tuple(server for server in lost if lost[server] <= at)
            rings.append(SharedRing(members, sum(count[s] for s in members), above - at))
    return rings


def _divided(rings: Sequence[SharedRing], y: Literal["x", "opt"]) -> SharedDivision:
    """Parts by widths (`x`), or so that all rings end at once (`opt`)."""
    shares = [ring.width / (ring.way if y == "opt" and ring.ranks > 1 else 1.0) for ring in rings]
    return SharedDivision(tuple(rings), tuple(share / sum(shares) for share in shares))


def shared_hops(view: View, division: SharedDivision) -> PairsOf:
    """How the hops of a group's rings and of stage 2 are spread."""
    across = division.rings[1].way * division.parts[1]
    return around(view, division.rings[0].servers, across, across + division.rings[0].way * division.parts[0])


def placed(request: Request, view: View, division: SharedDivision) -> Division:
    """A division on the group's own channels, each with the same part of every ring."""
    lanes = own_lanes(request, view.cluster)
    cuts = in_proportion(request.bytes, division.parts)
    even = [1.0] * len(lanes)
    levels = [
        _level(view, division.rings[0], ring, lanes, lo, hi)
        for ring, lo, hi in zip(division.rings[1:], cuts[1:-1], cuts[2:], strict=True)
    ]
    tracks = [Track.of(lane) for lane in lanes]
    return Division(tracks, in_proportion(cuts[1], even), tuple(levels), members=frozenset(request.group))


def _level(view: View, whole: SharedRing, ring: SharedRing, lanes: Sequence[Lane], lo: int, hi: int) -> Level:
    """Bytes lo:hi on the rings of a level, and stage 2 for them, in equal parts of every lane."""
    members = set(ring.servers)
    left_out = tuple(sorted((s for s in whole.servers if s not in members), key=lambda s: -view.lost(s)))
    tracks = [Track.of({server: nic for server, nic in lane.items() if server in members}) for lane in lanes]
    bounds = [lo + b for b in in_proportion(hi - lo, [1.0] * len(lanes))]
    parts = [
        Part(Track.of(lane), root, int(begin), int(end))
        for lane, first, last in zip(lanes, bounds[:-1], bounds[1:], strict=True)
        for roots in [_roots(view, whole, ring, left_out, lane)]
        for root, (begin, end) in zip(roots, pairwise(pieces(first, last, len(roots))), strict=True)
    ]
    return Level(left_out, tracks, bounds, parts)


def _roots(view: View, whole: SharedRing, ring: SharedRing, left_out: tuple[int, ...], lane: Lane) -> list[int]:
    """The roots of stage 2 on a lane: the next server behind a single one left out. A root has a hop of each of
    several, so there are many of them, other ones on each rail."""
    if len(left_out) == 1:
        at = whole.servers.index(left_out[0])
        return [whole.servers[(at + 1) % len(whole.servers)]]
    members = ring.servers
    count = min(len(members), 2 * len(left_out))
    rail = view.cluster.nics[lane[members[0]]].rail
    return [members[(i * len(members) // count + rail) % len(members)] for i in range(count)]
