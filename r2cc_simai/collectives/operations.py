"""The collectives by name: what each must leave on the ranks, how nccl-tests counts it, and its lower bound.

Sizes are those of nccl-tests: D is the buffer of a rank; for all_gather, reduce_scatter and all_to_all it is the larger
buffer, of p blocks, block k of which belongs to the k-th rank of the group.

The bound counts what must cross a server's border, links inside a server are free. With p ranks, p_s of them on server
s, and at least two servers::

    all_gather       receives the blocks it lacks, (1 - p_s/p) D      sends its own blocks once, p_s/p D
    reduce_scatter   the same the other way round: a partial sum of every block of others leaves
    broadcast        receives D; the root's server sends D
    reduce           sends D; the root's server receives D
    all_to_all       p_s (1 - p_s/p) D in both directions
    send_recv        D for each pair with one end on the server
    send             D at each of the two servers

    T >= max_s max(received_s, sent_s) / C_s          C_s: payload bandwidth of server s per direction

and the same with the pods of a leaf-spine fabric in place of servers, C_s being that of their uplinks.

The bound of all_reduce (`collectives.bound`) is stronger than such a sum, since all servers together receive 2(n-1) D.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.bounds.fabric import pods
from r2cc_simai.bounds.profiles import nic_profile, when
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.bound import all_reduce_bound
from r2cc_simai.collectives.channels import server_of_rank
from r2cc_simai.collectives.checker import Wanted
from r2cc_simai.collectives.schedule import pieces
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Timeline

Int = NDArray[np.int64]
Crossing = tuple[NDArray[np.float64], NDArray[np.float64]]  # bytes that each server receives and sends, at least


@dataclass(frozen=True)
class Call:
    """One collective: over which ranks, of which size in bytes, from or to which root."""

    group: tuple[int, ...]
    bytes: int
    root: int = 0

    @property
    def blocks(self) -> Int:
        """Bounds of the blocks of the group's ranks, shape (p + 1,)."""
        return pieces(0, self.bytes, len(self.group))

    @property
    def all_ranks(self) -> int:
        """The mask of all contributions."""
        return sum(1 << rank for rank in self.group)


@dataclass(frozen=True)
class Operation:
    """What is known of a collective, whichever algorithm runs it.

    `bus_factor(p)` makes nccl-tests' busbw of its algbw; `wanted` is the postcondition for the checker; `crossing` is
    what each server must receive and send. `reduces` and `rooted` say whether it adds and whether it has a root;
    `in_blocks` whether a rank's count is a block of the size.
    """

    name: str
    bus_factor: Callable[[int], float]
    wanted: Callable[[Call], Wanted]
    crossing: Callable[[Call, Int, int], Crossing]
    alias: str = ""
    reduces: bool = False
    rooted: bool = False
    in_blocks: bool = False


def operation(name: str) -> Operation:
    """The collective of a name, as this project or nccl-tests spells it.

    Raises:
        InputError: no such collective.
    """
    for one in OPERATIONS.values():
        if name in (one.name, one.alias):
            return one
    raise InputError(f"{name or 'no name'}: no collective that is known (allowed: {', '.join(OPERATIONS)})")


def canonical(name: str) -> str:
    """The project's name of a collective that nccl-tests may spell otherwise; an unknown one stays."""
    return next((one.name for one in OPERATIONS.values() if name == one.alias), name)


def default_group(name: str, cluster: Cluster) -> tuple[int, ...]:
    """All ranks in the order in which a job numbers them: server after server.

    For send_recv they are dealt to the servers in turn (`mpirun --map-by node`), so that every pair crosses between
    servers by its own NICs, as neighbouring pipeline stages do; server after server, all that leaves a server would be
    one pair's traffic on one GPU's NIC. A send goes from the first rank of a server to that of the next.
    """
    if name == "send":
        return tuple(server.ranks[0] for server in cluster.servers[:2]) if len(cluster.servers) > 1 else (0, 1)
    if name != "send_recv":
        return tuple(range(cluster.n_ranks))
    most = max(len(server.ranks) for server in cluster.servers)
    return tuple(s.ranks[k] for k in range(most) for s in cluster.servers if k < len(s.ranks))


def lower_bound(cluster: Cluster, name: str, call: Call, timeline: Timeline, start_s: float = 0.0) -> float:
    """Seconds that a collective takes at least when it starts at `start_s` of the timeline.

    Infinite where a server stays without a NIC that it needs; 0 where nothing crosses between servers. Events by byte
    count are not counted.
    """
    servers = server_of_rank(cluster)[np.array(call.group, dtype=np.int64)]
    if name == "all_reduce":
        return all_reduce_bound(cluster, call.bytes, timeline, start_s, np.unique(servers).tolist())
    if call.bytes == 0 or len(np.unique(servers)) < 2:
        return 0.0
    received, sent = operation(name).crossing(call, servers, len(cluster.servers))
    need = np.maximum(received, sent)
    least = max(carried_s(cluster, int(s), float(need[s]), timeline, start_s) for s in np.nonzero(need)[0])
    return max(least, _pods_bound(cluster, name, call, servers))


def _pods_bound(cluster: Cluster, name: str, call: Call, servers: Int) -> float:
    """The same for what crosses the borders of the pods of a leaf-spine fabric, which their uplinks carry."""
    uplinks = pods(cluster)
    if len(uplinks) < 2:
        return 0.0
    pod = np.zeros(len(cluster.servers), dtype=np.int64)
    for leaf in cluster.leaves:
        pod[[cluster.nics[n].server for n in leaf.nics]] = leaf.pod
    received, sent = operation(name).crossing(call, pod[servers], len(uplinks))
    need = np.maximum(received, sent) if len(np.unique(pod[servers])) > 1 else np.zeros(0)
    return max((when(uplinks[int(p)], float(need[p])) for p in np.nonzero(need)[0]), default=0.0)


def carried_s(cluster: Cluster, server: int, need: float, timeline: Timeline, start_s: float) -> float:
    """Seconds in which the NICs of a server can carry `need` payload bytes in one direction."""
    events = [e for e in timeline.events if e.at_bytes is None]
    return when([nic_profile(cluster.nics[nic], events, start_s) for nic in cluster.servers[server].nics], need)


def _all_reduced(call: Call) -> Wanted:
    return _for_members(call, lambda index, lo: call.all_ranks)  # noqa: ARG005


def _gathered(call: Call) -> Wanted:
    owner = _owner(call)
    return _for_members(call, lambda index, lo: 1 << call.group[owner(lo)])  # noqa: ARG005


def _scattered(call: Call) -> Wanted:
    owner = _owner(call)
    return _for_members(call, lambda index, lo: call.all_ranks if owner(lo) == index else 0)


def _broadcasted(call: Call) -> Wanted:
    return _for_members(call, lambda index, lo: 1 << call.root)  # noqa: ARG005


def _reduced(call: Call) -> Wanted:
    return _for_members(call, lambda index, lo: call.all_ranks if call.group[index] == call.root else 0)  # noqa: ARG005


def _exchanged(call: Call) -> Wanted:
    """The virtual buffer holds what rank k sends at k D, so that the blocks can be told apart."""
    owner = _owner(call)

    def wanted(index: int, lo: int) -> int:
        sender, offset = divmod(lo, call.bytes)
        return 1 << call.group[sender] if owner(offset) == index else 0

    return _for_members(call, wanted)


def _passed_on(call: Call) -> Wanted:
    """The virtual buffer holds what the k-th rank of the group sends at k D; the next one must have it."""
    p = len(call.group)

    def wanted(index: int, lo: int) -> int:
        sender = lo // call.bytes
        return 1 << call.group[sender] if (sender + 1) % p == index else 0

    return _for_members(call, wanted)


def _sent(call: Call) -> Wanted:
    return _for_members(call, lambda index, lo: 1 << call.group[0] if index == 1 else 0)  # noqa: ARG005


def _for_members(call: Call, wanted: Callable[[int, int], int]) -> Wanted:
    index = {rank: k for k, rank in enumerate(call.group)}
    return lambda rank, lo, hi: wanted(index[rank], lo) if rank in index else 0  # noqa: ARG005


def _owner(call: Call) -> Callable[[int], int]:
    blocks = call.blocks
    return lambda lo: int(np.searchsorted(blocks, lo, side="right")) - 1


def _block_bytes(call: Call, servers: Int, n: int) -> NDArray[np.float64]:
    return np.bincount(servers, np.diff(call.blocks), minlength=n).astype(np.float64)


def _own_blocks_out(call: Call, servers: Int, n: int) -> Crossing:
    own = _block_bytes(call, servers, n)
    members = np.bincount(servers, minlength=n) > 0
    return np.where(members, call.bytes - own, 0.0), own


def _own_blocks_in(call: Call, servers: Int, n: int) -> Crossing:
    received, sent = _own_blocks_out(call, servers, n)
    return sent, received


def _root_out(call: Call, servers: Int, n: int) -> Crossing:
    at_root = np.arange(n) == servers[call.group.index(call.root)]
    members = np.bincount(servers, minlength=n) > 0
    return np.where(members & ~at_root, float(call.bytes), 0.0), np.where(at_root, float(call.bytes), 0.0)


def _root_in(call: Call, servers: Int, n: int) -> Crossing:
    received, sent = _root_out(call, servers, n)
    return sent, received


def _blocks_of_others(call: Call, servers: Int, n: int) -> Crossing:
    own, ranks = _block_bytes(call, servers, n), np.bincount(servers, minlength=n)
    return own * (len(call.group) - ranks), ranks * (call.bytes - own)


def _pairs(call: Call, servers: Int, n: int) -> Crossing:
    after = np.roll(servers, -1)
    crosses = servers != after
    received, sent = (np.bincount(ends[crosses], minlength=n).astype(np.float64) for ends in (after, servers))
    return received * call.bytes, sent * call.bytes


def _one_pair(call: Call, servers: Int, n: int) -> Crossing:
    received, sent = np.zeros(n), np.zeros(n)
    sent[servers[0]] = received[servers[1]] = float(call.bytes)
    return received, sent


def _no_crossing(call: Call, servers: Int, n: int) -> Crossing:
    raise NotImplementedError("all_reduce has a bound of its own")


def _of_blocks(p: int) -> float:
    return (p - 1) / p


def _one(p: int) -> float:  # noqa: ARG001
    return 1.0


OPERATIONS: dict[str, Operation] = {
    one.name: one
    for one in (
        Operation("all_reduce", lambda p: 2 * (p - 1) / p, _all_reduced, _no_crossing, reduces=True),
        Operation("all_gather", _of_blocks, _gathered, _own_blocks_out, in_blocks=True),
        Operation("reduce_scatter", _of_blocks, _scattered, _own_blocks_in, reduces=True, in_blocks=True),
        Operation("broadcast", _one, _broadcasted, _root_out, rooted=True),
        Operation("reduce", _one, _reduced, _root_in, reduces=True, rooted=True),
        Operation("all_to_all", _of_blocks, _exchanged, _blocks_of_others, alias="alltoall", in_blocks=True),
        Operation("send_recv", _one, _passed_on, _pairs, alias="sendrecv"),
        Operation("send", _one, _sent, _one_pair),
    )
}
"""Every collective by name; the bus factors are those of nccl-tests (doc/PERFORMANCE.md)."""


def wanted_after(name: str, group: Sequence[int], size: int, root: int = 0) -> Wanted:
    """What a collective must leave on each rank, for `check_schedule` and `check_trace`."""
    return operation(name).wanted(Call(tuple(group), size, root))
