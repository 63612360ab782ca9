"""Equal ranks: those that do the same, in the same place, with partners that are equal in turn.

Colours are refined until nothing changes (as for graph isomorphism, Weisfeiler and Leman 1968). A rank's colour starts
as its program and its place's hardware; then it takes in the colours of its server, of its groups, its peers. A group's
is that of its members with the roles that they have there, and of the ports that its plans load. A port's is that of
the rank next to it, of what happens to it, and of the groups that load it how much. At the end ranks of one colour meet
the same. Simulating one of each colour, with each port carrying what its class carries divided by the ports of the
class, gives the same result.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.channels import server_of_rank
from r2cc_simai.collectives.direct import nics_of_ranks
from r2cc_simai.failures.timeline import Event
from r2cc_simai.training.mixing import gathered, mixed, numbered
from r2cc_simai.training.plan_loads import PlanLoads
from r2cc_simai.training.ranks import NONE, Ranks

Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Classes:
    """`of_rank` (n,) and `of_group` (groups,) number the classes; `first_rank` and `first_group` are one of each.

    `of_unit` numbers the classes of ports, one entry per unit of two ports: NICs, GPUs, servers and leaf switches.
    """

    of_rank: Int
    of_group: Int
    of_unit: Int
    first_rank: Int
    first_group: Int
    rank_count: Int
    group_count: Int


def each_for_itself(ranks: Ranks, cluster: Cluster) -> Classes:
    """No two ranks are taken for equal."""
    units = len(cluster.nics) + cluster.n_ranks + len(cluster.servers) + len(cluster.leaves)
    n, groups, unit = (np.arange(k, dtype=np.int64) for k in (len(ranks), len(ranks.members), units))
    return Classes(n, groups, unit, n, groups, np.ones_like(n), np.ones_like(groups))


def equal_ranks(ranks: Ranks, cluster: Cluster, events: tuple[Event, ...], loads: PlanLoads) -> Classes:
    """The classes of ranks that cannot be told apart under these failures, with plans that load ports so."""
    colours = _Colours(ranks, cluster, events, loads)
    found = 0
    while colours.count > found:
        found = colours.count
        colours.refine()
    of_group, of_unit = numbered(colours.group[: len(ranks.members)]), numbered(colours.units)
    _, first_rank, rank_count = np.unique(colours.rank, return_index=True, return_counts=True)
    _, first_group, group_count = np.unique(of_group, return_index=True, return_counts=True)
    return Classes(colours.rank, of_group, of_unit, first_rank, first_group, rank_count, group_count)


class _Colours:
    """One round after the other. Colours of groups and units are 64-bit numbers, those of ranks are dense."""

    def __init__(self, ranks: Ranks, cluster: Cluster, events: tuple[Event, ...], loads: PlanLoads) -> None:
        self._ranks, self._loads = ranks, loads
        self._nics, self._gpus, self._servers = len(cluster.nics), cluster.n_ranks, len(cluster.servers)
        self._leaves = len(cluster.leaves)
        self._server_of_gpu = server_of_rank(cluster)
        self._server_of_nic = np.array([nic.server for nic in cluster.nics], dtype=np.int64)
        self._leaf_of_nic = np.array(cluster.leaf_of_nic, dtype=np.int64)
        self._near: Int = np.full(self._nics, NONE, dtype=np.int64)
        for gpu, own in enumerate(nics_of_ranks(cluster)):
            self._near[list(own)] = gpu
        self._row_of_gpu: Int = np.full(self._gpus, NONE, dtype=np.int64)
        self._row_of_gpu[ranks.rank] = np.arange(len(ranks))
        rows, roles = np.nonzero(ranks.groups != NONE)
        self._row, self._role, self._group = rows, roles, ranks.groups[rows, roles]
        self._shape = mixed([ranks.group_sizes, _kinds(list(ranks.kinds))])
        bridged = any(
            math.isfinite(server.bridge_rate) for server in cluster.servers
        )  # else the NUMA node is no matter
        hardware = _kinds(
            [(s.link_rate, s.link_latency_s, bridged and numa) for s in cluster.servers for numa in s.gpu_numa]
        )
        self._back_roles = [_back_role(ranks.peers, role) for role in range(ranks.peers.shape[1])]
        self._nic = _hardware_of_nics(cluster, events)
        self.rank = numbered(mixed([ranks.trace_of, hardware[ranks.rank]]))
        self.units: Int = np.zeros(self._nics + self._gpus + self._servers + self._leaves, dtype=np.int64)
        self.group: Int = np.zeros(len(ranks.members) + len(loads.pair_rows), dtype=np.int64)
        self._see_units()
        self._see_groups()

    @property
    def count(self) -> int:
        """Colours of ranks, groups and units that can be told apart."""
        return sum(len(np.unique(c)) for c in (self.rank, self.group, self.units))

    def refine(self) -> None:
        """One round."""
        ranks, loads = self._ranks, self._loads
        server = self.units[self._nics + self._gpus :][self._server_of_gpu[ranks.rank]]
        parts = [self.rank, server, *(_seen(self.group, g) for g in ranks.groups.T)]
        parts += [_seen(self.rank, p) for p in ranks.peers.T]
        parts += [self._near_peer(p) for p in ranks.peers.T]
        parts += self._back_roles
        parts.append(self.units[self._nics : self._nics + self._gpus][ranks.rank])
        pairs = self.group[len(ranks.members) :]
        for end in range(2):
            parts.append(gathered(len(ranks), loads.pair_rows[:, end], mixed([pairs])))
        self.rank = numbered(mixed(parts))
        self._see_units()
        self._see_groups()

    def _see_units(self) -> None:
        """NICs by the rank beside them, GPUs, servers by all that they have, leaf switches by what hangs on them."""
        bounds = np.cumsum((self._nics, self._gpus, self._servers))
        kind = np.repeat(np.arange(4), (self._nics, self._gpus, self._servers, self._leaves))
        loads = gathered(len(kind), self._loads.unit, mixed([self.group[self._loads.group], self._loads.key]))
        nic, gpu, server, leaf = np.split(mixed([self.units, kind, loads]), bounds)
        of_gpu = _seen(self.rank, self._row_of_gpu)
        nic = mixed([nic, self._nic, _seen(of_gpu, self._near)])
        beside = self._near != NONE
        gpu = mixed([gpu, of_gpu, gathered(self._gpus, self._near[beside], nic[beside])])
        server = mixed(
            [
                server,
                gathered(self._servers, self._server_of_gpu, gpu),
                gathered(self._servers, self._server_of_nic, nic),
            ]
        )
        own = self._leaf_of_nic >= 0
        leaf = mixed([leaf, gathered(self._leaves, self._leaf_of_nic[own], nic[own])])
        nic = mixed([nic, server[self._server_of_nic], _seen(leaf, self._leaf_of_nic)])
        self.units = np.concatenate((nic, gpu, server, leaf))

    def _see_groups(self) -> None:
        """Groups by their members and the ports that their plans load; behind them the pairs."""
        loads, groups = self._loads, len(self._shape)
        members = gathered(groups, self._group, mixed([self.rank[self._row], self._role]))
        pairs = mixed([self.rank[loads.pair_rows[:, 0]], self.rank[loads.pair_rows[:, 1]]])
        whole = np.concatenate((mixed([members, self._shape]), pairs))
        ports = gathered(len(whole), loads.group, mixed([self.units[loads.unit], loads.key]))
        self.group = mixed([self.group, whole, ports])

    def _near_peer(self, peers: Int) -> Int:
        """Whether a peer is on the same server."""
        own = self._server_of_gpu[self._ranks.rank]
        return np.where(peers == NONE, NONE, own == own[peers])


def _back_role(peers: Int, role: int) -> Int:
    """By which of its own roles a rank's peer knows the rank; who sends to two equal ranks knows them by two roles."""
    peer, rows = peers[:, role], np.arange(len(peers))
    back = np.full(len(peers), NONE, dtype=np.int64)
    for k in reversed(range(peers.shape[1])):
        back[(peer != NONE) & (peers[peer, k] == rows)] = k
    return back


def _seen(colour: Int, index: Int) -> Int:
    return np.append(colour, NONE)[index]  # NONE is the last place


def _kinds(things: Sequence[object]) -> Int:
    """A number for each thing, the same for equal ones."""
    known: dict[object, int] = {}
    return np.array([known.setdefault(thing, len(known)) for thing in things], dtype=np.int64)


def _hardware_of_nics(cluster: Cluster, events: tuple[Event, ...]) -> Int:
    """A number for each NIC: equal for equal ones; one to which something happens has its own.

    So have all on its server if it fails in the middle: its traffic moves to its backups there, whatever the plans say.
    """
    hit = {event.nic for event in events}
    hit |= {nic for e in events if e.time_s > 0 for nic in cluster.servers[cluster.nics[e.nic].server].nics}
    things: list[object] = [
        (
            nic.index if nic.index in hit else NONE,
            nic.rate,
            nic.line_rate,
            nic.burst_bytes,
            nic.mtu_bytes,
            nic.header_bytes,
            math.isfinite(cluster.servers[nic.server].bridge_rate) and nic.numa,
        )
        for nic in cluster.nics
    ]
    return _kinds(things)
