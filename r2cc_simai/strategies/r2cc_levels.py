"""How R2CC-AllReduce divides the buffer when several servers are degraded: levels, shares, and what they cost.

Peeling: the global ring takes what the poorest server can carry of everybody's bandwidth. Servers with nothing left
are peeled off, and the others form the next ring over what they have left, level by level. Every number of levels is
priced by the formulas of `collectives.r2cc_allreduce`; the recursion stops where one more costs more than it saves.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import channel_lanes, server_order
from r2cc_simai.collectives.r2cc_allreduce import Division, Level, Part, stage2_pairs
from r2cc_simai.collectives.ring_order import Track, bridged_order, rail_tracks
from r2cc_simai.collectives.schedule import pieces
from r2cc_simai.strategies.carried_rates import nic_rates
from r2cc_simai.strategies.rings import in_proportion

ROOTS = 16  # parts into which stage 2 of a level is split at least if it has so many members: each has its own root
SMALLEST_WIDTH = 0.01  # of a server's bandwidth; a ring over less than that is not made


@dataclass(frozen=True)
class Ring:
    """Servers in ring order, the tracks between them, and how many bytes/s each of them has for itself."""

    servers: tuple[int, ...]
    tracks: tuple[Track, ...]
    widths: tuple[float, ...]


def best_division(view: View, size: int, k: int, y: Literal["x", "opt"]) -> tuple[Division, float]:
    """The division of `size` bytes with the number of levels that costs least, and the seconds that it is to take.

    No levels at all are rings over what works, in proportion to what each can carry.

    Raises:
        PartitionedError: the servers are not joined by what works.
    """
    rings = peeled(view)
    made = [division_of(view, rings[: depth + 1], size, y) for depth in range(len(rings))]
    return min(((d, predicted_s(view, d, k)) for d in made), key=lambda pair: pair[1])


def peeled(view: View) -> list[Ring]:
    """The global ring, then ever smaller ones over what the others leave of the NICs.

    Raises:
        PartitionedError: the servers are not joined by what works.
    """
    cluster = view.cluster
    every = tuple(s.index for s in cluster.servers)
    members = bridged_order(cluster, every, lambda nic: view.fraction[nic] > 0)
    left = _Left(view)
    rings: list[Ring] = []
    while members:
        tracks = left.tracks(members)
        if not rings and not tracks:
            channel_lanes(cluster, members, view.alive)  # names the two that no rail joins
        taken = [(t, w) for t in tracks if (w := left.take(t)) > 0]
        if taken:
            rings = _with_ring(rings, Ring(members, tuple(t for t, _ in taken), tuple(w for _, w in taken)))
        emptied = {s for s in members if left.rate(s) < SMALLEST_WIDTH * left.whole}
        if not taken and not emptied:
            emptied = {min(members, key=left.rate)}
        members = tuple(s for s in members if s not in emptied)
    return rings


def _with_ring(rings: list[Ring], ring: Ring) -> list[Ring]:
    """Two rings over the same servers are one."""
    if rings and rings[-1].servers == ring.servers:
        last = rings[-1]
        return [*rings[:-1], Ring(ring.servers, last.tracks + ring.tracks, last.widths + ring.widths)]
    return [*rings, ring]


class _Left:
    """What is left of every NIC's payload rate in each direction, bytes/s."""

    def __init__(self, view: View) -> None:
        self._cluster = view.cluster
        rates = nic_rates(view)
        self._out, self._into = rates.copy(), rates.copy()
        self.whole = max(float(rates[list(s.nics)].sum()) for s in view.cluster.servers)
        self._least = SMALLEST_WIDTH * max(nic.payload_rate for nic in view.cluster.nics)

    def rate(self, server: int) -> float:
        """What a server can still send and receive."""
        nics = list(self._cluster.servers[server].nics)
        return float(min(self._out[nics].sum(), self._into[nics].sum()))

    def tracks(self, members: Sequence[int]) -> list[Track]:
        """Channels over what is left, as many as there may be at once."""
        out, into = self._out >= self._least, self._into >= self._least
        if not self._cluster.rails_connected:
            return rail_tracks(self._cluster, members, lambda n: bool(out[n]), lambda n: bool(into[n]))
        alive = out & into
        if not all(alive[list(self._cluster.servers[s].nics)].any() for s in members):
            return []
        return [Track.of(lane) for lane in channel_lanes(self._cluster, members, alive)]

    def take(self, track: Track) -> float:
        """Gives a track all that its narrowest NIC has left, and says how much that is."""
        out, into = list(track.out.values()), list(track.into.values())
        width = float(min(self._out[out].min(), self._into[into].min()))
        self._out[out] -= width
        self._into[into] -= width
        return width


def division_of(view: View, rings: Sequence[Ring], size: int, y: Literal["x", "opt"]) -> Division:
    """Shares of the rings: by their widths (`x`), or so that all end at once (`opt`); the first is the global one."""
    shares = [sum(ring.widths) / (_way(view.cluster, ring.servers) if y == "opt" else 1.0) for ring in rings]
    cuts = in_proportion(size, shares)
    working = frozenset(n for n, fraction in enumerate(view.fraction) if fraction > 0)
    bare = Division(rings[0].tracks, in_proportion(cuts[1], rings[0].widths), (), working)
    levels = [
        _level(view, bare, rings[0], ring, (lo, hi))
        for ring, lo, hi in zip(rings[1:], cuts[1:-1], cuts[2:], strict=True)
    ]
    return replace(bare, levels=tuple(levels))


def _level(view: View, bare: Division, whole: Ring, ring: Ring, span: tuple[int, int]) -> Level:
    """A level on bytes span[0]:span[1].

    Stage 2 runs over the tracks of the global ring in proportion to their widths, `each` parts a track, whose roots
    take turns. A root has a hop of every server left out, in and out, where others have one. Idle NICs of the root take
    those beyond the first as long as none of them gets more than a track's NIC, which carries all parts of its track.
    """
    members, tracks = ring.servers, whole.tracks
    left_out = tuple(sorted((s for s in whole.servers if s not in members), key=lambda s: -view.lost(s)))
    each = _parts_per_track(len(members), len(tracks), len(left_out))
    count = each * len(tracks)
    roots = [members[i * len(members) // count] for i in range(count)]
    beside = {
        root: min(1.0, each * len(bare.idle(view.cluster, root)) / max(1, (len(left_out) - 1) * roots.count(root)))
        for root in set(roots)
    }
    parts = [
        Part(track, root, lo, hi, beside[root])
        for (track, lo, hi), root in zip(_split(whole, span, each), roots, strict=True)
    ]
    bounds = [span[0] + b for b in in_proportion(span[1] - span[0], ring.widths)]
    return Level(left_out, ring.tracks, bounds, parts)


def _parts_per_track(members: int, tracks: int, left_out: int) -> int:
    """Enough for many roots, and so many that no root gets a much larger part of a track's bytes than the others."""
    least = -(-min(members, max(ROOTS, 4 * left_out)) // tracks)
    largest = {each: -(-each * tracks // members) / each for each in range(least, 2 * least + 2)}
    return next(each for each, part in largest.items() if part <= 1.05 * min(largest.values()))


def _split(whole: Ring, span: tuple[int, int], each: int) -> Iterator[tuple[Track, int, int]]:
    bounds = in_proportion(span[1] - span[0], whole.widths)
    for track, begin, end in zip(whole.tracks, bounds[:-1], bounds[1:], strict=True):
        for lo, hi in pairwise(pieces(span[0] + begin, span[0] + end, each)):
            yield track, int(lo), int(hi)


def _way(cluster: Cluster, servers: Sequence[int]) -> float:
    """2(p-1)/p of a flat ring over p ranks; 1 for a single one."""
    ranks = sum(len(cluster.servers[s].ranks) for s in servers)
    return 2 * (ranks - 1) / ranks if ranks > 1 else 1.0


def predicted_s(view: View, division: Division, k: int) -> float:
    """max(T1 of all rings) + (1 + 1/K) T3', seconds; latency is not counted.

    T1 is what the busiest NIC or GPU link takes for its part of the rings, 2(p-1)/p of the bytes of each ring over p
    ranks, and for the own parts of the servers that are left out; T3' the same for stage 2.
    """
    stage1, stage2 = _Loads(view), _Loads(view)
    rings = [(division.tracks, division.bounds), *((level.tracks, level.bounds) for level in division.levels)]
    for tracks, bounds in rings:
        for track, lo, hi in zip(tracks, bounds[:-1], bounds[1:], strict=True):
            size = _way(view.cluster, track.servers) * (hi - lo)
            if len(track.servers) > 1:
                for nic in track.servers:
                    stage1.nics(track.out[nic], track.into[nic], size)
            stage1.links(track.into.values(), size)
    for level in division.levels:
        sizes: dict[int, float] = defaultdict(float)
        for part in level.parts:
            size = float(part.hi - part.lo)
            sizes[division.tracks.index(part.track)] += size
            for out, into, share in stage2_pairs(view.cluster, division, level, part):
                stage2.nics(out, into, share * size)
        for at, size in sizes.items():
            track = division.tracks[at]
            stage2.links(track.into.values(), size)
            stage1.links((track.out[server] for server in level.left_out), size, turned=1)
    return stage1.seconds() + (1 + 1 / k) * stage2.seconds()


class _Loads:
    """Bytes on every NIC and GPU link, shape (2, n): sent, received."""

    def __init__(self, view: View) -> None:
        cluster = view.cluster
        self._cluster = cluster
        self._nic_rate = nic_rates(view)
        self._link_rate = np.concatenate([np.full(len(s.ranks), s.link_rate) for s in cluster.servers])
        self._nics = np.zeros((2, len(cluster.nics)))
        self._links = np.zeros((2, cluster.n_ranks))

    def nics(self, out: int, into: int, size: float) -> None:
        """Counts bytes that leave by one NIC and come in by another."""
        self._nics[0, out] += size
        self._nics[1, into] += size

    def links(self, nics: Iterable[int], size: float, turned: int = 0) -> None:
        """Counts bytes that pass all ranks of the servers of some NICs, the `turned`-th nearest first."""
        for nic in nics:
            order = server_order(self._cluster, nic)
            order = order[turned:] + order[:turned]
            self._links[0, list(order[:-1])] += size
            self._links[1, list(order[1:])] += size

    def seconds(self) -> float:
        """What the busiest takes."""
        used = self._nics.max(axis=0) > 0
        nic_s = (self._nics.max(axis=0)[used] / self._nic_rate[used]).max(initial=0.0)
        return float(max(nic_s, (self._links / self._link_rate).max()))
