"""Hops of a group that shares its servers with other groups, each of which does the same.

A server that has lost bandwidth carries the hops of all its groups over all NICs that it has left, each in proportion
to what it can carry. Every group then loses the same part, that of the server, whichever rail it owns.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import left_pairs
from r2cc_simai.collectives.direct import coupled
from r2cc_simai.collectives.ring_order import Pair

Pairs = tuple[Pair, ...]
PairsOf = Callable[[int, int], Sequence[Pair] | None]  # of a hop between two servers; None: it stays as it is


def rebound(rows: Sequence[Row], view: View, pairs_of: PairsOf) -> list[Row]:
    """The binding of a group after its hops have been spread as `pairs_of` says."""
    nics = view.cluster.nics
    kept: list[Row] = []
    spread: dict[tuple[int, int, int], Sequence[Pair]] = {}
    for row in rows:
        pairs = pairs_of(nics[row[3]].server, nics[row[4]].server)
        if pairs is None:
            kept.append(row)
        else:
            spread[row[:3]] = pairs
    return kept + [(*hop, *pair) for hop, pairs in spread.items() for pair in pairs]


@lru_cache(maxsize=4096)
def levelled_pairs(view: View, src: int, dst: int) -> Pairs:
    """NIC pairs that give each NIC of both servers its part of what its server can carry, on its rail as far as may be.

    Where rails are joined; elsewhere as `left_pairs`.
    """
    on_rails = left_pairs(view, src, dst)  # refuses servers that nothing joins
    if not view.cluster.rails_connected:
        return on_rails
    out, into = ({view.cluster.nics[n].rail: (n, part) for n, part in _parts(view, s)} for s in (src, dst))
    same = [(out[r][0], into[r][0], min(out[r][1], into[r][1])) for r in sorted(out.keys() & into.keys())]
    taken = {nic: share for a, b, share in same for nic in (a, b)}
    rest = [
        [(n, part - taken.get(n, 0.0)) for n, part in _parts(view, s) if part - taken.get(n, 0.0) > 1e-12]
        for s in (src, dst)
    ]
    if not rest[0] or not rest[1]:
        return _whole(same)
    over = sum(part for _, part in rest[0])
    return _whole(same + [(a, b, share * over) for a, b, share in coupled(*rest)])


def _parts(view: View, server: int) -> list[tuple[int, float]]:
    left = {n: view.payload_rate(n) for n in view.cluster.servers[server].nics if view.fraction[n] > 0}
    return [(n, rate / sum(left.values())) for n, rate in left.items()]


def _whole(pairs: Sequence[Pair]) -> Pairs:
    total = sum(share for *_, share in pairs)
    return tuple((a, b, share / total) for a, b, share in pairs if share > 0)


@lru_cache(maxsize=4096)
def gap_pairs(view: View, lost_at: int, src: int, dst: int, part: float) -> Pairs:
    """NIC pairs of a hop that leaves out the degraded server `lost_at`, which stands between `src` and `dst`.

    `part` of it goes over the rails on which that server has lost bandwidth: there both ends have room, since what they
    exchange with it uses the other rails. The rest goes over those.
    """
    cluster = view.cluster
    lost: dict[int, float] = {}
    for n in cluster.servers[lost_at].nics:
        rail = cluster.nics[n].rail
        lost[rail] = lost.get(rail, 0.0) + cluster.nics[n].payload_rate * (1 - view.fraction[n])
    pairs = left_pairs(view, src, dst)
    missing = [lost.get(cluster.nics[a].rail, 0.0) for a, _, _ in pairs]
    room = [share if rate == 0 else 0.0 for (_, _, share), rate in zip(pairs, missing, strict=True)]
    if sum(missing) == 0:
        return pairs
    part = 1.0 if sum(room) == 0 else part
    shares = [
        part * rate / sum(missing) + (1 - part) * free / max(sum(room), 1e-300)
        for rate, free in zip(missing, room, strict=True)
    ]
    return _whole([(a, b, share) for (a, b, _), share in zip(pairs, shares, strict=True)])


def around(view: View, servers: Sequence[int], across: float, every: float) -> PairsOf:
    """How the hops of a group on some servers are spread where servers are degraded.

    One: its hops go over all that it has left. In a ring that leaves it out, which carries `across` of the bytes, the
    hop between its neighbours takes the rails that it has lost, up to their part of the `every` byte that a neighbour
    sends. Several: every hop at one of them gives each NIC of both ends its part.
    """
    hurt = frozenset(view.degraded(servers))
    if len(hurt) > 1:
        return lambda src, dst: levelled_pairs(view, src, dst) if src in hurt or dst in hurt else None
    (degraded,) = hurt
    at = list(servers).index(degraded)
    gap = servers[at - 1], servers[(at + 1) % len(servers)]
    on_lost = min(1.0, view.lost(degraded) * every / across) if across > 0 else 1.0

    def pairs(src: int, dst: int) -> Sequence[Pair] | None:
        if degraded in (src, dst):
            return left_pairs(view, src, dst)
        return gap_pairs(view, degraded, src, dst, on_lost) if (src, dst) == gap else None

    return pairs
