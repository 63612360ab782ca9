"""Which server follows which in a ring, and the NICs by which a channel enters and leaves each of them.

Topology-aware logical re-ranking (R2CC paper, arXiv 2512.25059): where a switch joins one rail only, two neighbours
that lost different rails share fewer rails than either has left, and the whole ring has as many channels as the
poorest pair of neighbours has rails in common. A server between them that has both rails is a bridge: a channel comes
in by one rail and goes out by another. Server A without rail 0 and B without rail 1 share 6 of 8 rails as neighbours;
with a whole server between them on either side the ring has 7 channels.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import Int, Lane, channel_lanes, server_of_rank

Pair = tuple[int, int, float]  # source NIC, destination NIC, share of the hop
Usable = Callable[[int], bool]  # whether a NIC, by number, can take more traffic


@dataclass(frozen=True)
class Track:
    """The NICs of one channel on the servers of a ring, in ring order: it comes in by `into` and leaves by `out`."""

    into: Lane
    out: Lane

    @staticmethod
    def of(lane: Lane) -> "Track":
        """A channel that uses one NIC a server for both directions."""
        return Track(lane, lane)

    @property
    def servers(self) -> tuple[int, ...]:
        """The servers in ring order."""
        return tuple(self.into)


def track_pairs(cluster: Cluster, track: Track, src: int, dst: int, working: Collection[int] = ()) -> list[Pair]:
    """The NICs of a hop between two servers of a track, and their shares.

    Servers that are no neighbours in the track's ring may find themselves on different rails of a fabric that does not
    join them; the hop is then spread over all pairs of `working` NICs.
    """
    pair = track.out[src], track.into[dst]
    if cluster.rails_connected or not working or cluster.nics[pair[0]].rail == cluster.nics[pair[1]].rail:
        return [(*pair, 1.0)]
    return spread_pairs(cluster, src, dst, working)


def spread_pairs(cluster: Cluster, src: int, dst: int, working: Collection[int]) -> list[Pair]:
    """A hop between two servers, spread evenly over all pairs of working NICs.

    Raises:
        PartitionedError: they have no pair.
    """
    alive = np.zeros(len(cluster.nics), dtype=bool)
    alive[[nic for server in (src, dst) for nic in cluster.servers[server].nics if nic in working]] = True
    lanes = channel_lanes(cluster, (src, dst), alive)
    return [(lane[src], lane[dst], 1.0 / len(lanes)) for lane in lanes]


def track_rows(
    cluster: Cluster, channel: int, route: Int, track: Track, *, cyclic: bool, working: Collection[int] = ()
) -> list[Row]:
    """Binding rows for the hops of a route that cross between servers, as `track_pairs` has them."""
    server_of = server_of_rank(cluster)
    ends = np.roll(route, -1) if cyclic else route[1:]
    starts = route if cyclic else route[:-1]
    rows: list[Row] = []
    for i in np.nonzero(server_of[starts] != server_of[ends])[0]:
        a, b = int(starts[i]), int(ends[i])
        pairs = track_pairs(cluster, track, int(server_of[a]), int(server_of[b]), working)
        rows += [(channel, a, b, *pair) for pair in pairs]
    return rows


def rail_tracks(cluster: Cluster, order: Sequence[int], out: Usable, into: Usable) -> list[Track]:
    """Channels of a ring in this order where every hop stays on one rail: as many as the poorest hop has rails.

    `out` and `into` say which NICs can still send and receive. A channel keeps its rail as long as it can.
    """
    if len(order) == 1:
        both = [n for n in cluster.servers[order[0]].nics if out(n) and into(n)]
        return [Track.of({order[0]: nic}) for nic in both]
    leaves = {s: _by_rail(cluster, s, out) for s in order}
    enters = {s: _by_rail(cluster, s, into) for s in order}
    hops = list(zip(order, [*order[1:], order[0]], strict=True))
    rails = [sorted(leaves[a].keys() & enters[b].keys()) for a, b in hops]
    first = min(range(len(hops)), key=lambda i: len(rails[i]))
    channels = len(rails[first])
    on: dict[int, list[int]] = {first: rails[first]}
    for step in range(1, len(hops)):
        i = (first + step) % len(hops)
        on[i] = _keep(on[(i - 1) % len(hops)], rails[i])
    return [
        Track(
            into={b: enters[b][on[(i - 1) % len(hops)][c]] for i, (b, _) in enumerate(hops)},
            out={a: leaves[a][on[i][c]] for i, (a, _) in enumerate(hops)},
        )
        for c in range(channels)
    ]


def _keep(before: Sequence[int], rails: Sequence[int]) -> list[int]:
    """A rail of a hop for each channel: the one that it is on where the hop has it, else one that is free."""
    free = iter([rail for rail in rails if rail not in before])
    return [rail if rail in rails else next(free) for rail in before]


def _by_rail(cluster: Cluster, server: int, usable: Usable) -> Lane:
    return {cluster.nics[n].rail: n for n in reversed(cluster.servers[server].nics) if usable(n)}


def bridged_order(cluster: Cluster, servers: Sequence[int], usable: Usable) -> tuple[int, ...]:
    """The servers in an order in which neighbours share as many rails as may be; as they are where nothing is gained.

    Servers that have the same rails stand together; between two such groups goes a bridge, a server that has all rails
    which some server has, as long as there are any. Without bridges the group that shares most with the last one is
    next.
    """
    rails = {s: frozenset(_by_rail(cluster, s, usable)) for s in servers}
    poorest = min(len(own) for own in rails.values())
    if cluster.rails_connected or _narrowest(servers, rails) == poorest:
        return tuple(servers)
    everything = frozenset().union(*rails.values())
    bridges = iter([s for s in servers if rails[s] == everything])
    groups: dict[frozenset[int], list[int]] = {}
    for s in servers:
        if rails[s] != everything:
            groups.setdefault(rails[s], []).append(s)
    order = [s for group in _chained(groups) for s in [*group, *_next(bridges)]] + list(bridges)
    return tuple(order) if _narrowest(order, rails) > _narrowest(servers, rails) else tuple(servers)


def _narrowest(order: Sequence[int], rails: dict[int, frozenset[int]]) -> int:
    return min(len(rails[a] & rails[b]) for a, b in zip(order, [*order[1:], order[0]], strict=True))


def _next(bridges: Iterator[int]) -> list[int]:
    found = next(bridges, None)
    return [] if found is None else [found]


def _chained(groups: dict[frozenset[int], list[int]]) -> Iterator[list[int]]:
    left = dict(groups)
    last: frozenset[int] = next(iter(left), frozenset())
    while left:
        last = max(left, key=lambda own: len(own & last))
        yield left.pop(last)
