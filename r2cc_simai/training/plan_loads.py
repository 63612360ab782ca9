"""Which ports the plans of groups load, where that is not the same for all: near a failure, and across leaf switches.

A chain's end sends less than its middle, a dead NIC's traffic goes to another one. Where nothing has failed, a plan
gives all members of a group the same, and nobody has to ask.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.chakra.schema import NodeType
from r2cc_simai.collectives.channels import server_of_rank
from r2cc_simai.engine._core import Trace
from r2cc_simai.training.mixing import mixed
from r2cc_simai.training.plans import Planner
from r2cc_simai.training.ranks import Ranks

Int = NDArray[np.int64]
Sizes = dict[tuple[int, int], int]  # by role and type
SMALLEST = 1 << 20
"""Bytes of collectives that are looked at; what smaller ones take of a port does not matter."""
_SEND = -2


@dataclass(frozen=True, eq=False)
class PlanLoads:
    """One entry per group (or pair of ranks) and unit of two ports that its plans load.

    `group` numbers the groups of the job and behind them the pairs; `unit` is half a port's number in the engine;
    `key` stands for which passes load it how much, in which direction and under what knowledge. `pair_rows` (pairs, 2)
    are the rows of the sender and the receiver.
    """

    group: Int
    unit: Int
    key: Int
    pair_rows: Int


def plan_loads(ranks: Ranks, planner: Planner, everywhere: bool) -> PlanLoads:
    """The loads of groups and pairs on servers where something has failed, or of all that cross between servers.

    Raises:
        PartitionedError: what is known leaves ranks of a group without a path.
    """
    asked = _Asked(ranks, planner, everywhere)
    entries: list[tuple[Int, Int, Int]] = []
    pairs: dict[tuple[int, int], int] = {}
    for epoch in range(len(planner.views)):
        for group, comm_type, size in asked.collectives(epoch):
            members = tuple(int(r) for r in np.sort(ranks.rank[ranks.members[group]]))
            entries.append(_loads(planner, group, members, comm_type, size, epoch))
        for rows, size in asked.messages(epoch):
            number = len(ranks.members) + pairs.setdefault(rows, len(pairs))
            members = (int(ranks.rank[rows[0]]), int(ranks.rank[rows[1]]))
            entries.append(_loads(planner, number, members, _SEND, size, epoch))
    empty = np.zeros(0, dtype=np.int64)
    groups, units, keys = (np.concatenate([empty, *(e[k] for e in entries)]) for k in range(3))
    return PlanLoads(groups, units, keys, np.array(list(pairs), dtype=np.int64).reshape(-1, 2))


def _loads(
    planner: Planner, number: int, members: tuple[int, ...], comm_type: int, size: int, epoch: int
) -> tuple[Int, Int, Int]:
    comm = None if comm_type == _SEND else comm_type
    units, loads = planner.planned(comm, members, size, epoch).loads
    same = np.ones_like(units)
    return same * number, units, mixed([loads, same * comm_type, same * epoch])


class _Asked:
    """What the ranks ask for that has to be looked at."""

    def __init__(self, ranks: Ranks, planner: Planner, everywhere: bool) -> None:
        self._ranks, self._everywhere = ranks, everywhere
        self._degraded = [set(view.degraded()) for view in planner.views]
        servers = server_of_rank(planner.views[0].cluster)[ranks.rank]
        self._servers = servers
        self._of_group = [{int(s) for s in servers[m]} for m in ranks.members]
        self._sizes, self._sends = _sizes(ranks.traces)

    def _counts(self, servers: set[int], epoch: int) -> bool:
        return len(servers) > 1 and (self._everywhere or bool(servers & self._degraded[epoch]))

    def collectives(self, epoch: int) -> Iterator[tuple[int, int, int]]:
        """Group, type and size."""
        for group, members in enumerate(self._ranks.members):
            if not self._counts(self._of_group[group], epoch):
                continue
            first = members[0]
            roles = np.flatnonzero(self._ranks.groups[first] == group)
            for (role, comm_type), size in self._sizes[self._ranks.trace_of[first]].items():
                if role in roles:
                    yield group, comm_type, size

    def messages(self, epoch: int) -> Iterator[tuple[tuple[int, int], int]]:
        """Rows of sender and receiver, and size."""
        for role, peers in enumerate(self._ranks.peers.T):
            for row in np.flatnonzero((peers >= 0) & self._looked_at(peers, epoch)).tolist():
                for (own, _), size in self._sends[self._ranks.trace_of[row]].items():
                    if own == role:
                        yield (row, int(peers[row])), size

    def _looked_at(self, peers: Int, epoch: int) -> NDArray[np.bool_]:
        there = self._servers[peers]
        crosses: NDArray[np.bool_] = self._servers != there
        if self._everywhere:
            return crosses
        hit = list(self._degraded[epoch])
        return crosses & (np.isin(self._servers, hit) | np.isin(there, hit))


@lru_cache(maxsize=1)
def _sizes(traces: tuple[Trace, ...]) -> tuple[list[Sizes], list[Sizes]]:
    """The largest collectives and messages of each trace."""
    collectives = [_largest(t.type, t.group, t.comm_type, t.bytes, NodeType.COMM_COLL) for t in traces]
    return collectives, [_largest(t.type, t.peer, t.comm_type, t.bytes, NodeType.COMM_SEND) for t in traces]


def _largest(kind: Int, role: Int, comm_type: Int, size: Int, which: NodeType) -> Sizes:
    """Bytes of the largest node of a kind by role and type; small ones are left out."""
    rows = np.flatnonzero((kind == which) & (size >= SMALLEST))
    largest: Sizes = {}
    for one, comm, count in np.unique(np.column_stack((role, comm_type, size))[rows], axis=0).tolist():
        largest[one, comm] = max(count, largest.get((one, comm), 0))
    return largest
