"""Equal ranks: those that do the same, in the same place, with partners that are equal in turn.

Colours are refined until nothing changes (as for graph isomorphism, Weisfeiler and Leman 1968). A rank's colour starts
as its program, its place in its server and what happens to its server's NICs; then it takes in the colours of its
groups' members with the roles that they have there, those of its peers, and those of its server. At the end ranks of
one colour meet the same: their groups are of the same colours, and so are the ports that their bytes pass. Simulating
one of each colour, with each port carrying what its class carries divided by the ports of the class, gives the same
result.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.channels import server_of_rank
from r2cc_simai.failures.timeline import Event
from r2cc_simai.training.ranks import NONE, Ranks

Int = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Classes:
    """`of_rank` (n,) and `of_group` (groups,) number the classes; `first_rank` and `first_group` are one of each.

    `of_server` is one class per server of the cluster, also of servers without a rank of the job.
    """

    of_rank: Int
    of_group: Int
    of_server: Int
    first_rank: Int
    first_group: Int
    rank_count: Int
    group_count: Int


def each_for_itself(ranks: Ranks, cluster: Cluster) -> Classes:
    """No two ranks are taken for equal."""
    n, groups, servers = (np.arange(k, dtype=np.int64) for k in (len(ranks), len(ranks.members), len(cluster.servers)))
    return Classes(n, groups, servers, n, groups, np.ones_like(n), np.ones_like(groups))


def equal_ranks(ranks: Ranks, cluster: Cluster, events: tuple[Event, ...]) -> Classes:
    """The classes of ranks that cannot be told apart under these failures."""
    servers = _Servers(cluster, ranks, events)
    colour = _numbered(_mixed([ranks.trace_of, servers.place[ranks.rank], servers.fate[servers.of_rank]]))
    groups = _Groups(ranks)
    while True:
        group = groups.colours(colour)
        server = servers.colours(colour)
        parts = [colour, server[servers.of_rank], *groups.seen_by_ranks(group)]
        parts += [np.where(p == NONE, NONE, colour[p]) for p in ranks.peers.T]
        parts += servers.peer_distance(ranks)
        finer = _numbered(_mixed(parts))
        if finer.max(initial=0) == colour.max(initial=0):
            break
        colour = finer
    group, server = groups.colours(colour), servers.colours(colour)
    of_group = _numbered(group)
    _, first_rank, rank_count = np.unique(colour, return_index=True, return_counts=True)
    _, first_group, group_count = np.unique(of_group, return_index=True, return_counts=True)
    return Classes(colour, of_group, _numbered(server), first_rank, first_group, rank_count, group_count)


class _Servers:
    """Servers as the colouring sees them: what they are, what happens to them, and who works there."""

    def __init__(self, cluster: Cluster, ranks: Ranks, events: tuple[Event, ...]) -> None:
        of_gpu = server_of_rank(cluster)
        first = np.array([s.ranks[0] for s in cluster.servers], dtype=np.int64)
        self.place = np.arange(len(of_gpu), dtype=np.int64) - first[of_gpu]
        self.of_rank: Int = of_gpu[ranks.rank]
        self._slot = self.place[ranks.rank]
        self._count = len(cluster.servers)
        self._width = int(self.place.max()) + 1
        own: dict[int, list[tuple[int, float, float, str]]] = {}
        for event in events:
            nic = cluster.nics[event.nic]
            place = nic.index - cluster.servers[nic.server].nics[0]
            own.setdefault(nic.server, []).append((place, event.time_s, event.fraction, event.component))
        kinds: dict[object, int] = {}
        overrides = cluster.spec.overrides
        self.fate: Int = np.array(
            [
                kinds.setdefault((repr(overrides.get(f"server{s}")), tuple(own.get(s, ()))), len(kinds))
                for s in range(self._count)
            ],
            dtype=np.int64,
        )

    def colours(self, colour: Int) -> Int:
        """A number for each server that tells the colours of its ranks, place by place, and its fate."""
        table = np.full((self._count, self._width), NONE, dtype=np.int64)
        table[self.of_rank, self._slot] = colour
        return _mixed([self.fate, *table.T]).view(np.int64)

    def peer_distance(self, ranks: Ranks) -> list[Int]:
        """For each peer role whether the peer is on the same server."""
        near = [self.of_rank == self.of_rank[p] for p in ranks.peers.T]
        return [n.astype(np.int64) for n in near]


class _Groups:
    """Groups as the colouring sees them: members with the roles that they have in the group."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        rows, roles = np.nonzero(ranks.groups != NONE)
        self._row, self._role = rows, roles
        self._group = ranks.groups[rows, roles]
        kinds: dict[str, int] = {}
        self._kind = np.array([kinds.setdefault(k, len(kinds)) for k in ranks.kinds], dtype=np.int64)

    def colours(self, colour: Int) -> Int:
        """A number for each group: the multiset of its members' colours and roles."""
        key = _mixed([colour[self._row], self._role])
        total = np.zeros(len(self._ranks.members), dtype=np.uint64)
        np.add.at(total, self._group, key)
        return _mixed([total.view(np.int64), self._ranks.group_sizes, self._kind]).view(np.int64)

    def seen_by_ranks(self, group: Int) -> list[Int]:
        """For each role the number of the rank's group."""
        return [np.where(g == NONE, NONE, group[g]) for g in self._ranks.groups.T]


def _mixed(columns: list[Int]) -> Words:
    """A 64-bit number for each row that depends on all columns and their order (splitmix64 steps)."""
    state = np.full(len(columns[0]), 0x243F6A8885A308D3, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            state = state + np.uint64(0x9E3779B97F4A7C15) + column.view(np.uint64)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return state


def _numbered(keys: Words | Int) -> Int:
    """Numbers 0, 1, .. for the distinct keys, in the order in which they first occur."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first, kind="stable")] = np.arange(len(first))
    numbers: Int = order[inverse]
    return numbers
