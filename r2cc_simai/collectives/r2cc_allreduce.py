"""R2CC-AllReduce: an AllReduce in which degraded servers carry less (R2CC paper, arXiv 2512.25059).

Stage 1: a global ring on (1-Y)D and beside it a ring of the healthy servers on YD; the degraded server adds up its own
part of YD inside. Stage 2, per chunk of YD: that part meets the healthy sum at one root, and the whole sum goes down a
chain to all others.
Consecutive chunks use both directions at once, hence the factor 1 + 1/K of T3. With D bytes, bandwidth B and a lost
fraction X of the degraded server's::

    T1 = 2(n-1)/n * (1-Y)D / ((1-X)B)      T2 = 2(n-2)/(n-1) * YD / (XB)      T3 = (1+1/K) * YD / ((1-X)B)
    T = max(T1, T2) + T3                    Y* = X(n-1)^2 / (X(n-1)^2 + (1-X)n(n-2))

Several degraded servers: level by level. Sorted by lost fraction, X_1 >= X_2 >= ... >= X_m > X_{m+1} = 0, level l is a
ring without the l most degraded servers, over what the levels before left of everybody's bandwidth, (X_l - X_{l+1})B.
In stage 2 each of the l servers left out sends its own part of d_l to a root, and from there the sum goes down l chains
through the members, each of which ends at one server that was left out. Every server receives and sends each level's
bytes about once, and a root those of all servers left out; roots take turns, R of them. With Y D = sum of d_l, l >= 1::

    T1 = max over l of 2(n-l-1)/(n-l) * d_l / ((X_l - X_{l+1})B)          X_0 = 1 for the global ring, l = 0
    T3 = (1+1/K) * YD / ((1-X_1)B)        (once no root has more than the most degraded server, R large enough)
    d_l = (X_l - X_{l+1}) D,  Y = X_1:    T/T0 = 1 + (1+1/K) n X_1 / (2(n-1)(1-X_1))

So the most degraded server alone decides, as if it were the only one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import Int, Lane, ring_route, server_order
from r2cc_simai.collectives.ring_order import Pair, Track, spread_pairs, track_pairs, track_rows
from r2cc_simai.collectives.schedule import ScheduleBuilder, pieces


@dataclass(frozen=True)
class Part:
    """Bytes [lo, hi) of stage 2 over the NICs of a track of the global ring, summed up at server `root`.

    `beside`: the share of the root's hops beyond the first ones in and out that its idle NICs take.
    """

    track: Track
    root: int
    lo: int
    hi: int
    beside: float = 0.0


@dataclass(frozen=True)
class Level:
    """A ring of the servers of `tracks`, track i on bytes[bounds[i]:bounds[i+1]], and how stage 2 brings those bytes
    to and from the servers that it leaves out."""

    left_out: tuple[int, ...]
    tracks: Sequence[Track]
    bounds: Sequence[int]
    parts: Sequence[Part]


@dataclass(frozen=True)
class Division:
    """What goes where: the global rings, track i on bytes[bounds[i]:bounds[i+1]], and the levels on the other bytes.

    `working`: NICs that work. With several servers left out a root has more hops than its track's NIC has room for:
    they go over those of its working NICs that no track of the global ring uses, or are spread over all. `members`:
    the ranks that take part, all of the servers by default.
    """

    tracks: Sequence[Track]
    bounds: Sequence[int]
    levels: Sequence[Level]
    working: frozenset[int] = frozenset()
    members: frozenset[int] | None = None

    def ranks(self, cluster: Cluster, nic: int) -> tuple[int, ...]:
        """The ranks of a NIC's server that take part, in the order in which a channel on that NIC visits them."""
        order = server_order(cluster, nic)
        return order if self.members is None else tuple(rank for rank in order if rank in self.members)

    def idle(self, cluster: Cluster, server: int) -> list[int]:
        """NICs of a server that work and that no global ring uses."""
        used = {nic for track in self.tracks for nic in (track.into[server], track.out[server])}
        return [nic for nic in cluster.servers[server].nics if nic in self.working and nic not in used]


def one_level(
    degraded: int,
    lanes: Sequence[Lane],
    bounds: Sequence[int],
    partial_lanes: Sequence[Lane],
    partial_bounds: Sequence[int],
    stage2_bounds: Sequence[int],
) -> Division:
    """The division for one degraded server; the server after it in the ring is the root of all of stage 2."""
    tracks = [Track.of(lane) for lane in lanes]
    parts = []
    for track, lo, hi in zip(tracks, stage2_bounds[:-1], stage2_bounds[1:], strict=True):
        ring = track.servers
        parts.append(Part(track, ring[(ring.index(degraded) + 1) % len(ring)], lo, hi))
    level = Level((degraded,), [Track.of(lane) for lane in partial_lanes], partial_bounds, parts)
    return Division(tracks, bounds, (level,))


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
    stage1 = _add_rings(builder, cluster, division, division, rows)
    for level in division.levels:
        stage1 += _add_rings(builder, cluster, division, level, rows)
    for level in division.levels:
        for part in level.parts:
            _Stage2(builder, cluster, division, level, part, rows).add(k, stage1)


def _add_rings(
    builder: ScheduleBuilder, cluster: Cluster, division: Division, ring: Division | Level, rows: list[Row]
) -> list[int]:
    """One ring a track; a track on a single rank has nothing to move."""
    added = []
    for track, lo, hi in zip(ring.tracks, ring.bounds[:-1], ring.bounds[1:], strict=True):
        ranks = ring_route(cluster, track.into, division.members)
        if len(ranks) > 1:
            channel = builder.new_channel()
            added.append(builder.ring(channel, builder.route(ranks), int(lo), int(hi)))
            rows.extend(track_rows(cluster, channel, ranks, track, cyclic=True))
    return added


def chains(part: Part, left_out: Sequence[int]) -> list[list[int]]:
    """The servers of the chains down which a part's sum goes: each from the root through its members to its end.

    Members follow the ring from the root on and are dealt to the chains in equal runs.
    """
    ring = part.track.servers
    at = ring.index(part.root)
    members = [s for s in [*ring[at + 1 :], *ring[:at]] if s not in left_out]
    cuts = pieces(0, len(members), len(left_out))
    ends = [s for s in [*ring[at:], *ring[:at]] if s in left_out]
    return [[part.root, *members[lo:hi], end] for (lo, hi), end in zip(pairwise(cuts), ends, strict=True)]


def stage2_pairs(cluster: Cluster, division: Division, level: Level, part: Part) -> Iterator[Pair]:
    """NIC pairs and shares of all hops between servers that a part's bytes make in stage 2."""
    hops = _Hops(cluster, division, level, part)
    for i, server in enumerate(level.left_out):
        yield from hops.up(server, i)
    for i, chain in enumerate(chains(part, level.left_out)):
        yield from hops.first(chain[1], i)
        for a, b in pairwise(chain[1:]):
            yield from track_pairs(cluster, part.track, a, b, division.working)


@dataclass(frozen=True)
class _Hops:
    """The NICs of the hops to and from a part's root. The first of each kind stay on the track, as any server's hops
    do; those beyond, which other servers do not have, go where the root has room."""

    cluster: Cluster
    division: Division
    level: Level
    part: Part

    def up(self, server: int, i: int) -> list[Pair]:
        """From the i-th server left out to the root."""
        track, root = self.part.track, self.part.root
        if i == 0 or not self.cluster.rails_connected:
            return self._on_rails(server, root, i)
        return [(track.out[server], nic, share) for nic, share in self._room(track.into)]

    def first(self, server: int, i: int) -> list[Pair]:
        """From the root to the first server of the i-th chain."""
        track, root = self.part.track, self.part.root
        if i == 0 or not self.cluster.rails_connected:
            return self._on_rails(root, server, i)
        return [(nic, track.into[server], share) for nic, share in self._room(track.out)]

    def _on_rails(self, src: int, dst: int, i: int) -> list[Pair]:
        working = self.division.working
        if i == 0:
            return track_pairs(self.cluster, self.part.track, src, dst, working)
        return spread_pairs(self.cluster, src, dst, working)

    def _room(self, lane: Lane) -> list[tuple[int, float]]:
        """NICs of the root and what part of such a hop each takes."""
        root = self.part.root
        idle = self.division.idle(self.cluster, root)
        beside = self.part.beside if idle else 0.0
        own = [track.into[root] if lane is self.part.track.into else track.out[root] for track in self.division.tracks]
        shares = [(nic, beside / len(idle)) for nic in idle] + [(nic, (1 - beside) / len(own)) for nic in own]
        return [(nic, share) for nic, share in shares if share > 0]


@dataclass(frozen=True)
class _Stage2:
    """Stage 2 of one part: up to the root, and down from it."""

    builder: ScheduleBuilder
    cluster: Cluster
    division: Division
    level: Level
    part: Part
    rows: list[Row]

    def add(self, k: int, stage1: Sequence[int]) -> None:
        """Per chunk: every server left out adds its own part to the root's, then the sum goes down the chains."""
        hops = _Hops(self.cluster, self.division, self.level, self.part)
        own = [self._own_part(server) for server in self.level.left_out]
        up = [self._up(server, hops.up(server, i)) for i, server in enumerate(self.level.left_out)]
        ready = [*stage1, *(one for passes in own for one in passes)]
        down = [
            self._down(chain, hops.first(chain[1], i), whole_root=i == 0)
            for i, chain in enumerate(chains(self.part, self.level.left_out))
        ]
        for lo, hi in pairwise(pieces(self.part.lo, self.part.hi, k)):
            summed = [
                self.builder.chain(channel, route, int(lo), int(hi), length, 0, after=ready)
                for channel, route, length in up
            ]
            for channel, route, length in down:
                self.builder.chain(channel, route, int(lo), int(hi), 0, length, after=summed)

    def _own_part(self, server: int) -> list[int]:
        """The server's own part, added up inside it beside stage 1; a single rank has nothing to add."""
        order = self.division.ranks(self.cluster, self.part.track.out[server])
        if len(order) == 1:
            return []
        route = self.builder.route(np.array([*order[1:], order[0]], dtype=np.int64))
        channel = self.builder.new_channel()
        return [self.builder.chain(channel, route, self.part.lo, self.part.hi, len(order) - 1, 0)]

    def _up(self, server: int, pairs: Sequence[Pair]) -> tuple[int, int, int]:
        """From the rank nearest to the server's NIC to the root's first."""
        first = self.division.ranks(self.cluster, self.part.track.out[server])[0]
        top = self.division.ranks(self.cluster, self.part.track.into[self.part.root])[0]
        return self._channel(np.array([first, top], dtype=np.int64), 0, pairs)

    def _down(self, chain: Sequence[int], pairs: Sequence[Pair], *, whole_root: bool) -> tuple[int, int, int]:
        """All ranks of the servers of a chain; of the root one only where another chain passes the others."""
        into = self.part.track.into
        ranks = ring_route(self.cluster, {server: into[server] for server in chain}, self.division.members)
        own = len(self.division.ranks(self.cluster, into[chain[0]]))
        if whole_root:
            return self._channel(ranks, own - 1, pairs)
        return self._channel(np.concatenate([ranks[:1], ranks[own:]]), 0, pairs)

    def _channel(self, route: Int, at: int, pairs: Sequence[Pair]) -> tuple[int, int, int]:
        """A channel on a route whose hop from position `at` goes over `pairs`, the others over the track."""
        channel = self.builder.new_channel()
        track, working = self.part.track, self.division.working
        a, b = int(route[at]), int(route[at + 1])
        self.rows.extend(track_rows(self.cluster, channel, route[: at + 1], track, cyclic=False, working=working))
        self.rows.extend((channel, a, b, *pair) for pair in pairs)
        self.rows.extend(track_rows(self.cluster, channel, route[at + 1 :], track, cyclic=False, working=working))
        return channel, self.builder.route(route), len(route) - 1
