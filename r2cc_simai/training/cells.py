"""Parts of a job that do not meet until late in an iteration: data-parallel replicas before gradients are reduced.

Until then what happens in one of them does not depend on what has failed in another, and replicas that have lost the
same do the same. Servers, messages and groups that start early hold ranks together. What is left are the cells; groups
across several of them are *held* when a cell runs for itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from r2cc_simai.chakra.schema import NodeType
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.symmetry import Move, kinds_of
from r2cc_simai.collectives.channels import server_of_rank
from r2cc_simai.collectives.rail_moves import gpu_move, rail_moves
from r2cc_simai.engine._core import Trace
from r2cc_simai.training.mixing import numbered
from r2cc_simai.training.ranks import NONE, Ranks, as_wholes

Int = NDArray[np.int64]
LATE = 0.5
"""Groups whose first collective comes after this part of the nodes of every member's trace may lie across cells."""


@dataclass(frozen=True, eq=False)
class Cell:
    """`rows` of the ranks, ascending by GPU, and the NICs of their servers. Cells of a `kind` are alike in all that a
    run knows: what holds for the k-th rank and NIC of one holds for those of another."""

    rows: Int
    nics: Int
    kind: int


@dataclass(frozen=True, eq=False)
class CellMove:
    """A move of the rails that takes a cell to itself: the rank at place p goes to `places[p]`, a NIC to `nics[p]`."""

    places: Int
    nics: Int


@dataclass(frozen=True, eq=False)
class TraceColumns:
    """What a trace says of its nodes. `waiting` (deps,) is the node that waits for each of `deps`."""

    looks: tuple[Int, ...]
    communicates: NDArray[np.bool_]
    deps: Int
    dep_offsets: Int
    waiting: Int
    first_collective: dict[int, int]

    @staticmethod
    def of(trace: Trace) -> "TraceColumns":
        """`looks` is what tells the requests of two nodes apart."""
        kind, group, offsets = trace.type, trace.group, trace.dep_offsets
        nodes = np.flatnonzero(kind == NodeType.COMM_COLL)
        roles, first = np.unique(group[nodes], return_index=True)
        return TraceColumns(
            looks=(kind, trace.comm_type, group, trace.peer, trace.bytes),
            communicates=np.isin(kind, (NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV)),
            deps=trace.deps,
            dep_offsets=offsets,
            waiting=np.repeat(np.arange(len(trace)), np.diff(offsets)),
            first_collective=dict(zip(roles.tolist(), nodes[first].tolist(), strict=True)),
        )

    def behind(self, role: int, others: list[int]) -> bool:
        """Whether the first collective of a role waits for those of other roles."""
        n = len(self.dep_offsets) - 1
        first = [self.first_collective[other] for other in others]
        a, b = np.concatenate((self.deps, np.full(len(first), n))), np.concatenate((self.waiting, first))
        graph = coo_array((np.ones(len(a)), (a, b)), shape=(n + 1, n + 1)).tocsr()
        reached = breadth_first_order(graph, n, return_predecessors=False)
        return self.first_collective[role] in set(reached.tolist())


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a job: `of_rank` (n,) and `place` (n,) number a row's cell and its place there.

    `held` (groups,) says which groups lie across cells, `meets` (n, roles) in which roles a rank has collectives with
    those of other cells. `moves` (kinds,) are those of the rails, the one that moves nothing first. `joined` (kinds,)
    says whether groups across servers of a cell may have collectives before it meets others.
    """

    cells: tuple[Cell, ...]
    of_rank: Int
    place: Int
    held: NDArray[np.bool_]
    meets: NDArray[np.bool_]
    traces: tuple[TraceColumns, ...]
    moves: tuple[tuple[CellMove, ...], ...]
    joined: tuple[bool, ...]


def cells_of(ranks: Ranks, cluster: Cluster) -> Cells | None:
    """The cells of a job; None where there is only one.

    Leaf switches, and NICs whose token buckets remember, tie all ranks together.
    """
    known = _KNOWN.setdefault(ranks, {})
    if cluster not in known:
        tied = bool(cluster.leaves) or any(nic.burst_bytes > 0 for nic in cluster.nics)
        known[cluster] = None if tied else _found(ranks, cluster)
    return known[cluster]


_KNOWN: WeakKeyDictionary[Ranks, dict[Cluster, Cells | None]] = WeakKeyDictionary()


@lru_cache(maxsize=1)
def _columns(traces: tuple[Trace, ...]) -> tuple[TraceColumns, ...]:
    return tuple(TraceColumns.of(trace) for trace in traces)


def _found(ranks: Ranks, cluster: Cluster) -> Cells | None:
    traces = _columns(ranks.traces)
    used = np.zeros(ranks.groups.shape, dtype=bool)
    early = np.zeros(len(ranks.members), dtype=bool)
    for number, trace in enumerate(traces):
        own = np.flatnonzero(ranks.trace_of == number)
        for role, node in trace.first_collective.items():
            used[own, role] = True
            if node < LATE * len(ranks.traces[number]):
                early[ranks.groups[own, role]] = True
    of_rank = _components(ranks, cluster, early)
    if of_rank.max(initial=0) == 0:
        return None
    held = np.array([len(set(of_rank[m].tolist())) > 1 for m in ranks.members], dtype=bool)
    meets = used & (ranks.groups != NONE) & held[ranks.groups]
    if not meets.any():
        return None
    by_gpu = np.argsort(ranks.rank, kind="stable")
    rows: list[Int] = [by_gpu[of_rank[by_gpu] == k] for k in range(int(of_rank.max()) + 1)]
    place = np.empty(len(ranks), dtype=np.int64)
    for own in rows:
        place[own] = np.arange(len(own))
    hardware = np.array(kinds_of(cluster, [(server.index,) for server in cluster.servers]), dtype=np.int64)
    kinds: dict[object, int] = {}
    cells: list[Cell] = []
    moves: list[tuple[CellMove, ...]] = []
    joined: list[bool] = []
    for own in rows:
        servers = np.unique(server_of_rank(cluster)[ranks.rank[own]]).tolist()
        nics = np.array([nic for s in servers for nic in cluster.servers[s].nics], dtype=np.int64)
        kind = kinds.setdefault(_look(ranks, cluster, own, place, held, hardware), len(kinds))
        cells.append(Cell(own, nics, kind))
        if kind == len(moves):
            moves.append(tuple(_moves(ranks, cluster, own, place)))
            joined.append(_joined(ranks, cluster, own, used, meets, traces))
    return Cells(tuple(cells), of_rank, place, held, meets, traces, tuple(moves), tuple(joined))


def _joined(
    ranks: Ranks,
    cluster: Cluster,
    own: Int,
    used: NDArray[np.bool_],
    meets: NDArray[np.bool_],
    traces: tuple[TraceColumns, ...],
) -> bool:
    """Whether a group across servers of a cell may have collectives before all of them wait for those with others."""
    server = server_of_rank(cluster)[ranks.rank]
    open_: dict[int, bool] = {}
    behind: dict[tuple[int, int, tuple[int, ...]], bool] = {}
    for row in own.tolist():
        trace, others = int(ranks.trace_of[row]), tuple(np.flatnonzero(meets[row]).tolist())
        for role in np.flatnonzero(used[row] & ~meets[row]).tolist():
            group = int(ranks.groups[row, role])
            if len(set(server[ranks.members[group]].tolist())) < 2:
                continue
            key = trace, role, others
            if key not in behind:
                behind[key] = bool(others) and traces[trace].behind(role, list(others))
            open_[group] = open_.get(group, True) and not behind[key]
    return any(open_.values())


def _look(
    ranks: Ranks, cluster: Cluster, own: Int, place: Int, held: NDArray[np.bool_], hardware: Int
) -> tuple[bytes, ...]:
    """All that a run of a cell depends on, by places; `hardware` (servers,) is the same for equal servers."""
    servers, ordinal = np.unique(server_of_rank(cluster)[ranks.rank[own]], return_inverse=True)
    first_gpu = np.array([cluster.servers[s].ranks[0] for s in servers])[ordinal]
    kinds = {kind: k for k, kind in enumerate(dict.fromkeys(ranks.kinds))}
    groups = ranks.groups[own].reshape(-1)
    of_group = [NONE if g == NONE else 2 * kinds[ranks.kinds[g]] + int(held[g]) for g in groups.tolist()]
    parts = (
        ranks.trace_of[own],
        ordinal,
        ranks.rank[own] - first_gpu,
        hardware[servers],
        _peers(ranks, own, place),
        numbered(groups),
        np.array(of_group),
    )
    return tuple(np.asarray(part, dtype=np.int64).tobytes() for part in parts)


def _peers(ranks: Ranks, own: Int, place: Int) -> Int:
    """The places of the peers of a cell's ranks, (places, roles)."""
    peers = ranks.peers[own]
    return np.where(peers == NONE, NONE, place[peers])


def _moves(ranks: Ranks, cluster: Cluster, own: Int, place: Int) -> Iterator[CellMove]:
    """The moves of the rails under which a cell's ranks do the same, in groups and with peers that move along."""
    gpu = {int(rank): k for k, rank in enumerate(ranks.rank[own])}
    servers = np.unique(server_of_rank(cluster)[ranks.rank[own]]).tolist()
    peers, groups, traces = _peers(ranks, own, place), ranks.groups[own], ranks.trace_of[own]
    for rail in rail_moves(cluster):
        gpus = gpu_move(cluster, rail)
        there = None if gpus is None else _places(cluster, servers, gpu, gpus)
        if there is None or (traces[there] != traces).any():
            continue
        moved = np.where(peers == NONE, NONE, there[peers])
        if (peers[there] == moved).all() and as_wholes(groups, groups[there]):
            nics = [k * len(rail) + to for k in range(len(servers)) for to in rail]
            yield CellMove(there, np.array(nics, dtype=np.int64))


def _places(cluster: Cluster, servers: list[int], gpu: dict[int, int], move: Move) -> Int | None:
    """Where each place of a cell goes when the GPUs of its servers move; None: to one that has no rank."""
    to = np.empty(len(gpu), dtype=np.int64)
    for server in servers:
        ranks = cluster.servers[server].ranks
        for k, there in enumerate(move):
            if (ranks[k] in gpu) != (ranks[there] in gpu):
                return None
            if ranks[k] in gpu:
                to[gpu[ranks[k]]] = gpu[ranks[there]]
    return to


def _components(ranks: Ranks, cluster: Cluster, early: NDArray[np.bool_]) -> Int:
    """What servers, messages and early groups hold together: a number for each row."""
    n = len(ranks)
    row, role = np.nonzero(ranks.peers != NONE)
    in_group, group_role = np.nonzero((ranks.groups != NONE) & early[ranks.groups])
    a = np.concatenate((np.arange(n), row, in_group))
    b = np.concatenate(
        (
            n + server_of_rank(cluster)[ranks.rank],
            ranks.peers[row, role],
            n + len(cluster.servers) + ranks.groups[in_group, group_role],
        )
    )
    size = n + len(cluster.servers) + len(early)
    _, labels = connected_components(coo_array((np.ones(len(a)), (a, b)), shape=(size, size)), directed=False)
    return numbered(labels[:n].astype(np.int64))
