"""Permutations of the rails of a cluster under which its servers stay what they are.

Rates, headers, rails, NUMA nodes, the backups that are in use and the GPUs beside the NICs move along.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from r2cc_simai.cluster.model import Cluster, Nic
from r2cc_simai.cluster.symmetry import Move, still
from r2cc_simai.collectives.channels import server_order
from r2cc_simai.collectives.direct import nics_of_ranks

MOST_MOVES = 1024
"""Permutations that are tried for each state; a cluster that has more is taken to have none."""
_TRIES = 20_000  # of the search for them


@lru_cache(maxsize=64)
def rail_moves(cluster: Cluster) -> tuple[Move, ...]:
    """Permutations of the NICs of all servers alike under which they cannot be told apart, the still one first.

    None but that where servers differ, and where a host bridge limits what passes between NUMA nodes: a ring's path
    inside the server crosses it at places that do not move along.
    """
    same = still(cluster)
    if cluster.spec.overrides or cluster.spec.server.host_bridge_gbps is not None:
        return (same,)
    moves: list[Move] = []
    for tried, move in enumerate(_candidates(cluster)):
        if tried >= _TRIES or len(moves) > MOST_MOVES:
            return (same,)
        if _carries(cluster, move):
            moves.append(move)
    return (same, *(move for move in moves if move != same))


def gpu_move(cluster: Cluster, move: Move) -> Move | None:
    """How the GPUs of a server move with its NICs: to those beside the NICs' new places. None: they cannot."""
    near = [frozenset(nics_of_ranks(cluster)[rank]) for rank in cluster.servers[0].ranks]
    free: dict[frozenset[int], list[int]] = {}
    for gpu, own in enumerate(near):
        free.setdefault(own, []).append(gpu)
    places: list[int] = []
    for own in near:
        there = free.get(frozenset(move[n] for n in own))
        if not there:
            return None
        places.append(there.pop(0))
    return tuple(places)


def _candidates(cluster: Cluster) -> Iterator[Move]:
    """Permutations that keep rates, headers and the backups that are in use."""
    own = [cluster.nics[n] for n in cluster.servers[0].nics]
    used = cluster.spec.failover.backups_per_nic
    backups = [nic.backups[:used] for nic in own]

    def fits(move: list[int]) -> bool:
        for k, there in enumerate(move):
            for b, c in zip(backups[k], backups[there], strict=True):
                if b < len(move) and move[b] != c:
                    return False
        return True

    def grown(move: list[int]) -> Iterator[Move]:
        if len(move) == len(own):
            yield tuple(move)
            return
        for there in range(len(own)):
            if there not in move and _hardware(own[len(move)]) == _hardware(own[there]) and fits([*move, there]):
                yield from grown([*move, there])

    yield from grown([])


def _hardware(nic: Nic) -> tuple[float, ...]:
    return (nic.rate, nic.line_rate, nic.burst_bytes, nic.mtu_bytes, nic.header_bytes, len(nic.backups))


def _carries(cluster: Cluster, move: Move) -> bool:
    """Whether rails, NUMA nodes and GPUs move along: what two NICs share, they share afterwards, and nothing else."""
    nics = [cluster.nics[n] for n in cluster.servers[0].nics]
    for shared in ([nic.rail for nic in nics], [nic.numa for nic in nics]):
        if not _one_to_one((shared[k], shared[there]) for k, there in enumerate(move)):
            return False
    gpus = gpu_move(cluster, move)
    if gpus is None:
        return False
    numa = cluster.servers[0].gpu_numa
    ends = [(nic.numa, nics[move[k]].numa) for k, nic in enumerate(nics)]
    if not _one_to_one([*ends, *((numa[g], numa[there]) for g, there in enumerate(gpus))]):
        return False
    first = [server_order(cluster, n)[0] for n in cluster.servers[0].nics]
    return all(first[move[k]] == gpus[gpu] for k, gpu in enumerate(first))


def _one_to_one(pairs: Iterable[tuple[object, object]]) -> bool:
    pairs = set(pairs)
    return len({a for a, _ in pairs}) == len(pairs) == len({b for _, b in pairs})
