"""OptCC for a group that shares its servers with others, as data-parallel groups do beside tensor parallelism.

A group's healthy ring and its part of the global ring run on its own rail; a hop to or from a degraded server is spread
over all that works there, so that each group loses the part X that the server has lost. In the healthy ring the hop
that leaves a single degraded server out takes the rails which that has lost, as far as its neighbours have room there.
The rails of the other healthy servers are used evenly by the rings alone: where the legs miss a lost rail, they load
the others by up to 1/m of the buffer more, m healthy servers.
"""

from collections.abc import Callable, Sequence

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import Int, Lane, server_of_rank
from r2cc_simai.collectives.optcc import Lap
from r2cc_simai.collectives.ring_order import Pair
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.optcc_model import too_few_healthy
from r2cc_simai.strategies.rings import in_proportion, own_lanes, servers_of
from r2cc_simai.strategies.shared_servers import PairsOf, around

PairsOnLane = Callable[[int, int, Lane], Sequence[Pair]]  # of a hop between two servers, for a lap on a lane


def why_not(request: Request, view: View, form: str) -> str:
    """Why the scheme does not fit a group in the state of a view; empty where it does."""
    servers = servers_of(request, view.cluster)
    degraded = len(view.degraded(servers))
    if len(servers) - degraded < 2:
        return too_few_healthy(degraded, len(servers))
    if degraded > 1 and form == "three":
        return "form=three takes one degraded server, here are several"
    on_server = server_of_rank(view.cluster)[list(request.group)].tolist()
    if len({on_server.count(server) for server in servers}) > 1:
        return "the group has more ranks on one server than on another"
    return ""


def shared_laps(request: Request, view: View, cut: int) -> tuple[list[Lap], list[Lap]]:
    """Laps of the global ring on the bytes [0:cut] and of the scheme on the others; all channels have equal parts."""
    lanes = own_lanes(request, view.cluster)
    degraded = view.degraded(servers_of(request, view.cluster))

    def parts(lo: int, hi: int) -> list[tuple[Lane, int, int]]:
        bounds = [lo + b for b in in_proportion(hi - lo, [1.0] * len(lanes))]
        return list(zip(lanes, bounds[:-1], bounds[1:], strict=True))

    everywhere = [Lap(lane, {}, lo, hi) for lane, lo, hi in parts(0, cut)] if cut else []
    scheme = [
        Lap({s: nic for s, nic in lane.items() if s not in degraded}, {s: lane[s] for s in degraded}, lo, hi)
        for lane, lo, hi in parts(cut, request.bytes)
    ]
    return everywhere, scheme


def nominal_leg(view: View, src: int, dst: int, lane: Lane) -> Sequence[Pair]:
    """A leg on one pair of NICs, before `shared_hops` spreads it over all that work."""
    first = {server: view.cluster.servers[server].nics[0] for server in (src, dst)}
    return [(lane.get(src, first[src]), lane.get(dst, first[dst]), 1.0)]


def shared_hops(request: Request, view: View, global_part: float) -> PairsOf:
    """How the hops of a group's rings are spread: those at degraded servers, and the one around a single one."""
    servers = servers_of(request, view.cluster)
    n, m = len(servers), len(servers) - len(view.degraded(servers))
    across = (1 - global_part) * 2 * (m - 1) / m
    return around(view, servers, across, across + global_part * 2 * (n - 1) / n)


def leg_rows(view: View, pairs_of: PairsOnLane, channel: int, route: Int, lane: Lane) -> list[Row]:
    """Binding of the hops of a route between servers, in the shares that `pairs_of` has."""
    server_of = server_of_rank(view.cluster)
    rows: dict[tuple[int, int], list[Row]] = {}
    for a, b in zip(route[:-1].tolist(), route[1:].tolist(), strict=True):
        ends = int(server_of[a]), int(server_of[b])
        if ends[0] == ends[1] or (a, b) in rows:
            continue
        pairs = pairs_of(*ends, lane)
        total = sum(share for _, _, share in pairs)
        rows[a, b] = [(channel, a, b, src, dst, share / total) for src, dst, share in pairs]
    return [row for found in rows.values() for row in found]
