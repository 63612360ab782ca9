"""Which moves of servers and rails change nothing for a job under a strategy.

A move must leave the cluster what it is (`cluster.symmetry`, `collectives.rail_moves`) and take the job's ranks to
ranks that do the same in groups and with peers that move along. What is left is what a strategy makes of the order of
servers. In the rings of most of them it matters how far two degraded servers are apart: a hop between them is not what
two hops between them and others are. Of a strategy that is not this package's own nothing is known.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.symmetry import Move, Symmetry, alone, kinds_of, turns_of
from r2cc_simai.collectives.channels import server_of_rank
from r2cc_simai.collectives.rail_moves import gpu_move, rail_moves
from r2cc_simai.engine.run import Backend
from r2cc_simai.runners.collective import Job
from r2cc_simai.strategies.adapcc import AdapCC
from r2cc_simai.strategies.base import Strategy
from r2cc_simai.strategies.registry import STRATEGIES
from r2cc_simai.training.job import TrainingJob
from r2cc_simai.training.ranks import NONE, Ranks, as_wholes

Order = Literal["free", "turns", "one turns", "fixed"]
"""How blocks may move: any two of a kind change places; all turn together; they turn while one server at most has lost
something; none moves."""
_IN_TRAINING: dict[str, Order] = {
    "ideal": "free",
    "hot-repair": "free",
    "nccl-failover": "free",
    "adapcc": "free",
    "nccl": "turns",
    "balance": "turns",
    "r2cc-allreduce": "one turns",
}
"""Free are those that keep the healthy rings, or rings of the servers that are left: where the others are is no matter.
r2cc-allreduce leaves out one server and begins stage 2 at the next; for several it chooses roots by their numbers and
that of the rail. optcc has no moves, and auto may take it: its chains begin at certain servers."""
_RINGS = frozenset({"ideal", "nccl", "hot-repair", "balance", "nccl-failover"})
"""Strategies that run every collective over all ranks on rings or trees of NCCL's."""
_IN_BLOCKS = frozenset({"all_gather", "reduce_scatter", "all_to_all"})
"""Collectives in which no rank is told from the others, whatever the size."""
WHOLE = 10**8  # bytes of a piece in which one byte more or less does not count

Int = NDArray[np.int64]
Fits = Callable[[Int], bool]  # whether a move of all GPUs (GPU k goes to move[k]) takes the job to itself


def training_symmetry(job: TrainingJob, strategy: Strategy) -> Symmetry:
    """The moves of a training job. A block is the servers of one data-parallel replica, or of those that share some."""
    order = _IN_TRAINING.get(strategy.name)
    if order is None or job.replica is None or _has_roots(job.ranks) or not _known(job.cluster, strategy):
        return alone(job.cluster)
    if strategy.name == AdapCC.name and any(len(replicas) > 1 for replicas in replicas_of_blocks(job).values()):
        return alone(job.cluster)  # a server that has lost some of its ranks is another one than the rest
    return symmetry_of(job.cluster, blocks_of(job), order, lambda move: carries(job.ranks, move))


def collective_symmetry(cluster: Cluster, job: Job, strategy: Strategy) -> Symmetry:
    """The moves of a job of equal collectives over all ranks; each server is a block.

    A tree has its servers in certain places, so that an AllReduce for which one may be chosen leaves the rails alone to
    move. Nothing moves where pieces of whole bytes differ by too much: see `even`.
    """
    order: Order = "turns"
    if job.op == "all_reduce" and "tree" in cluster.spec.transport.algorithms:
        order = "fixed"
    known = strategy.name in _RINGS or (job.op in _IN_BLOCKS and strategy.name in ("r2cc-allreduce", "optcc"))
    if job.backend is not Backend.FLOW or job.op not in {"all_reduce", *_IN_BLOCKS} or not known:
        return alone(cluster)
    if not _known(cluster, strategy) or not even(cluster, job):
        return alone(cluster)
    return symmetry_of(cluster, [(server.index,) for server in cluster.servers], order, lambda _: True)


def even(cluster: Cluster, job: Job) -> bool:
    """Whether channels, and ranks' blocks of them, have equal bytes however many NICs are left, to one part in 1e8."""
    blocks = 1 if job.op == "all_reduce" else cluster.n_ranks
    channels = range(1, max(len(server.nics) for server in cluster.servers) + 1)
    return all(job.bytes % (blocks * count) == 0 or job.bytes >= blocks * count * WHOLE for count in channels)


def symmetry_of(cluster: Cluster, blocks: Sequence[tuple[int, ...]], order: Order, fits: Fits) -> Symmetry:
    """The moves of blocks and rails that fit the cluster, and of which `fits` says that they fit the job.

    Blocks turn at most where a hop is not like every other: from below one leaf switch to below another, or between two
    servers that have lost different rails where no switch joins the rails. Below leaf switches nothing moves once two
    servers have lost something: which of the rails that are left meet, and cross the spine, goes by their numbers.
    """
    numbers = range(len(blocks))
    free = order == "free" and cluster.rails_connected and not cluster.leaves
    kinds = _exchanged(cluster, blocks, kinds_of(cluster, blocks), fits) if free else tuple(numbers)
    found = (0,) if order == "fixed" else turns_of(cluster, blocks)
    turns = [turn for turn in found if fits(_block_move(cluster, blocks, _turned(numbers, turn)))]
    rails = [rail for rail in rail_moves(cluster) if _rail_fits(cluster, rail, fits)]
    most = 1 if order == "one turns" or cluster.leaves else None
    return Symmetry(cluster, tuple(blocks), kinds, free, tuple(turns), tuple(rails), most)


def blocks_of(job: TrainingJob) -> list[tuple[int, ...]]:
    """Servers that share replicas, by their first server; a server without ranks is a block of its own."""
    assert job.replica is not None
    first: dict[int, int] = {}  # the block's smallest server, by server, followed to its end
    servers = server_of_rank(job.cluster)[job.ranks.rank].tolist()

    def root(server: int) -> int:
        while first.setdefault(server, server) != server:
            server = first[server]
        return server

    of_replica: dict[int, int] = {}
    for replica, server in zip(job.replica.tolist(), servers, strict=True):
        a, b = root(server), root(of_replica.setdefault(replica, server))
        first[max(a, b)] = min(a, b)
    members: dict[int, list[int]] = {}
    for server in range(len(job.cluster.servers)):
        members.setdefault(root(server), []).append(server)
    return [tuple(members[block]) for block in sorted(members)]


def replicas_of_blocks(job: TrainingJob) -> dict[tuple[int, ...], frozenset[int]]:
    """The replicas of each block."""
    assert job.replica is not None
    server = server_of_rank(job.cluster)[job.ranks.rank]
    return {block: frozenset(job.replica[np.isin(server, block)].tolist()) for block in blocks_of(job)}


def carries(ranks: Ranks, move: Int) -> bool:
    """Whether a move of the GPUs takes every rank to one with the same trace, and its groups and peers along."""
    row_of = np.full(len(move), NONE, dtype=np.int64)
    row_of[ranks.rank] = np.arange(len(ranks))
    row = row_of[move[ranks.rank]]
    if (row == NONE).any() or (ranks.trace_of[row] != ranks.trace_of).any():
        return False
    moved_peers = np.where(ranks.peers == NONE, NONE, row[ranks.peers])
    if (ranks.peers[row] != moved_peers).any():
        return False
    return as_wholes(ranks.groups, ranks.groups[row])


def _has_roots(ranks: Ranks) -> bool:
    """Whether some rank of a group is told from the others: where a broadcast starts."""
    kinds = [(trace.type == NodeType.COMM_COLL) & (trace.comm_type == CommType.BROADCAST) for trace in ranks.traces]
    return any(bool(kind.any()) for kind in kinds)


def _rail_fits(cluster: Cluster, rail: Move, fits: Fits) -> bool:
    gpus = gpu_move(cluster, rail)
    if gpus is None:
        return False
    return fits(np.concatenate([np.array(server.ranks)[list(gpus)] for server in cluster.servers]))


def _exchanged(
    cluster: Cluster, blocks: Sequence[tuple[int, ...]], kinds: Sequence[int], fits: Fits
) -> tuple[int, ...]:
    """Kinds of blocks of which the first can change places with each of the others."""
    first: dict[int, list[int]] = {}
    found: list[int] = []
    for block, kind in enumerate(kinds):
        for other in first.setdefault(kind, []):
            order = list(range(len(blocks)))
            order[block], order[other] = other, block
            if len(blocks[block]) == len(blocks[other]) and fits(_block_move(cluster, blocks, order)):
                found.append(other)
                break
        else:
            first[kind].append(block)
            found.append(block)
    return tuple(found)


def _turned(blocks: Sequence[int], turn: int) -> list[int]:
    return [(block + turn) % len(blocks) for block in blocks]


def _block_move(cluster: Cluster, blocks: Sequence[tuple[int, ...]], order: Sequence[int]) -> Int:
    """Where each GPU goes when block k takes the place of block order[k]."""
    move = np.arange(cluster.n_ranks, dtype=np.int64)
    for block, there in enumerate(order):
        for a, b in zip(blocks[block], blocks[there], strict=True):
            move[list(cluster.servers[a].ranks)] = cluster.servers[b].ranks
    return move


def _known(cluster: Cluster, strategy: Strategy) -> bool:
    """Whether anything is known of how the strategy treats servers and NICs, and all NICs' failures are found alike."""
    return type(strategy) in STRATEGIES.values() and not cluster.draws_detection
