"""How channels lie on NICs and ranks, as NCCL lays its rings.

A channel enters and leaves every server through one NIC. Inside a server it starts at the GPU nearest to that NIC and
visits the others in order, so a flat ring crosses each server's border once per channel and direction.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Row
from r2cc_simai.errors import PartitionedError

Int = NDArray[np.int64]
Lane = dict[int, int]  # server -> the NIC that a channel uses there


def channel_lanes(cluster: Cluster, servers: Sequence[int], alive: NDArray[np.bool_]) -> list[Lane]:
    """The NIC of each channel on each server: one channel per rail that works on all of `servers`.

    Where one switch joins the rails, NICs that are left over make further channels across rails, so that there are as
    many channels as the poorest server has NICs. `alive` says which NICs work.

    Raises:
        PartitionedError: a server has no NIC left, or two servers share no rail on a fabric of separate rails.
    """
    nics = {s: [n for n in cluster.servers[s].nics if alive[n]] for s in servers}
    for server, left in nics.items():
        if not left:
            raise PartitionedError(f"server{server}: no NIC left; its ranks cannot be reached")
    rails = {s: {cluster.nics[n].rail: n for n in reversed(left)} for s, left in nics.items()}
    common = sorted(set.intersection(*(set(r) for r in rails.values())))
    lanes: list[Lane] = [{s: rails[s][rail] for s in servers} for rail in common]
    if cluster.rails_connected:
        used = {nic for lane in lanes for nic in lane.values()}
        rest = {s: [n for n in left if n not in used] for s, left in nics.items()}
        for k in range(min(len(left) for left in rest.values())):
            lanes.append({s: rest[s][k] for s in servers})
    if not lanes:
        a, b = _strangers(rails)
        raise PartitionedError(
            f"server{a} and server{b}: no rail works on both, and no switch joins the rails of {cluster.name}"
        )
    return lanes


def _strangers(rails: dict[int, dict[int, int]]) -> tuple[int, int]:
    servers = sorted(rails)
    for i, a in enumerate(servers):
        for b in servers[i + 1 :]:
            if not set(rails[a]) & set(rails[b]):
                return a, b
    return servers[0], servers[-1]


@lru_cache(maxsize=64)
def _orders(cluster: Cluster) -> tuple[tuple[int, ...], ...]:
    """For each NIC the ranks of its server, the nearest GPU first; equally near GPUs take turns among the NICs."""
    orders: list[tuple[int, ...]] = []
    for server in cluster.servers:
        for nic in server.nics:
            numa = cluster.nics[nic].numa
            near = [g for g, node in enumerate(server.gpu_numa) if node == numa] or list(range(len(server.ranks)))
            peers = [n for n in server.nics if cluster.nics[n].numa == numa]
            first = near[peers.index(nic) % len(near)]
            orders.append(server.ranks[first:] + server.ranks[:first])
    return tuple(orders)


def server_order(cluster: Cluster, nic: int) -> tuple[int, ...]:
    """Ranks of a NIC's server in the order in which a channel on that NIC visits them."""
    return _orders(cluster)[nic]


def ring_route(cluster: Cluster, lane: Lane, members: Collection[int] | None = None) -> Int:
    """Ranks of a flat ring over the servers of a lane, server after server; only `members` where they are given."""
    orders = _orders(cluster)
    ranks = [rank for nic in lane.values() for rank in orders[nic] if members is None or rank in members]
    return np.array(ranks, dtype=np.int64)


def spread_rows(
    cluster: Cluster, channel: int, route: Int, lane: Lane, view: View, *, cyclic: bool, weighted: bool = False
) -> list[Row]:
    """As `lane_rows`, but a hop at whose ends NICs are dead goes evenly over all NIC pairs that work.

    Several communicators that each own a rail so share what a dead NIC of their server costs, each the same part.
    `weighted`: the same for a NIC that is slow, and in proportion to what is left of each pair.

    Raises:
        PartitionedError: two servers have no pair of NICs left.
    """
    rows = lane_rows(cluster, channel, route, lane, cyclic=cyclic)
    hurt = view.hurt_servers if weighted else view.dead_servers
    if not hurt:
        return rows
    spread: list[Row] = []
    for row in rows:
        ends = cluster.nics[row[3]].server, cluster.nics[row[4]].server
        if ends[0] not in hurt and ends[1] not in hurt:
            spread.append(row)
        elif weighted:
            spread += [(*row[:3], *pair) for pair in left_pairs(view, *ends)]
        else:
            pairs = working_pairs(view, *ends)
            spread += [(*row[:3], src, dst, 1.0 / len(pairs)) for src, dst in pairs]
    return spread


@lru_cache(maxsize=4096)
def working_pairs(view: View, src: int, dst: int) -> tuple[tuple[int, int], ...]:
    """NIC pairs between two servers that work, on the same rail as far as there are such.

    Raises:
        PartitionedError: there are none.
    """
    lanes = channel_lanes(view.cluster, (src, dst), view.alive)
    return tuple((lane[src], lane[dst]) for lane in lanes)


@lru_cache(maxsize=4096)
def left_pairs(view: View, src: int, dst: int) -> tuple[tuple[int, int, float], ...]:
    """The pairs of `working_pairs`, in proportion to what is left of each.

    Raises:
        PartitionedError: there are none.
    """
    pairs = working_pairs(view, src, dst)
    left = [min(view.payload_rate(a), view.payload_rate(b)) for a, b in pairs]
    return tuple((a, b, rate / sum(left)) for (a, b), rate in zip(pairs, left, strict=True))


def lane_rows(cluster: Cluster, channel: int, route: Int, lane: Lane, *, cyclic: bool) -> list[Row]:
    """Binding rows for all hops of a route that cross between servers, each over the lane's NICs."""
    server_of = server_of_rank(cluster)
    ends = np.roll(route, -1) if cyclic else route[1:]
    starts = route if cyclic else route[:-1]
    crossing = np.nonzero(server_of[starts] != server_of[ends])[0]
    rows: dict[tuple[int, int], Row] = {}
    for i in crossing:
        a, b = int(starts[i]), int(ends[i])
        rows[a, b] = (channel, a, b, lane[int(server_of[a])], lane[int(server_of[b])], 1.0)
    return list(rows.values())


@lru_cache(maxsize=64)
def server_of_rank(cluster: Cluster) -> Int:
    """Server number of every rank, shape (n_ranks,)."""
    return np.concatenate([np.full(len(s.ranks), s.index, dtype=np.int64) for s in cluster.servers])
