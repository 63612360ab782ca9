"""Direct sends between two ranks: which NICs carry them, as NCCL's point-to-point channels choose.

A GPU sends and receives by the NICs nearest to it. On one switch, and where a leaf holds all NICs of its servers, these
meet directly. On a switch per rail, and on a rail-optimised leaf-spine fabric, the bytes go to the GPU of the sender's
server that is nearest to the receiver's rail first, over the link inside the server, and from there over that rail
(NCCL's PXN). What a NIC cannot carry any more is spread over the others of its server.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.channels import server_of_rank, server_order
from r2cc_simai.errors import PartitionedError

Int = NDArray[np.int64]
Share = tuple[int, float]  # a NIC (or rail) and the part of the bytes that it carries
Pairs = list[tuple[int, int, float]]  # NIC of the sender, NIC of the receiver, part


@dataclass(frozen=True)
class Path:
    """How one rank's bytes reach another: the rank that forwards them, if any, and the NIC pairs (none: links)."""

    via: int | None
    pairs: Pairs


@lru_cache(maxsize=64)
def nics_of_ranks(cluster: Cluster) -> tuple[tuple[int, ...], ...]:
    """The NICs nearest to each GPU: those of its NUMA node, which its GPUs share out, else all of its server."""
    found: list[tuple[int, ...]] = []
    for server in cluster.servers:
        for rank, node in zip(server.ranks, server.gpu_numa, strict=True):
            near = [n for n in server.nics if cluster.nics[n].numa == node] or list(server.nics)
            own = tuple(n for n in near if server_order(cluster, n)[0] == rank)
            peers = [r for r, numa in zip(server.ranks, server.gpu_numa, strict=True) if numa == node]
            found.append(own or (near[peers.index(rank) % len(near)],))
    return tuple(found)


@dataclass(eq=False)
class Direct:
    """Paths between ranks while each NIC has `fraction` of its rate (0: down), shape (n_nics,).

    Where a GPU's NIC is down, its part goes evenly over those of its server that are left. `weighted`: all GPUs of a
    server that has lost bandwidth spread over all its NICs in proportion to what each can carry.
    """

    cluster: Cluster
    fraction: NDArray[np.float64]
    weighted: bool = False
    _ends: dict[int, list[Share]] = field(default_factory=dict)
    _singles: Int | None = None
    _rails: dict[tuple[int, int], dict[int, tuple[int, int]]] = field(default_factory=dict)

    def path(self, src: int, dst: int, members: Sequence[int] | frozenset[int] = ()) -> Path:
        """How the bytes of rank `src` reach rank `dst`; only `members` (all where empty) forward for others.

        Raises:
            PartitionedError: no pair of NICs is left.
        """
        server = server_of_rank(self.cluster)
        a, b = int(server[src]), int(server[dst])
        if a == b:
            return Path(None, [])
        if not self._on_a_rail(a, b):
            return Path(None, _turned(coupled(self._end(src), self._end(dst)), src + dst))
        pairs = _turned(self._on_rails(a, b, dst), src + dst)
        via = server_order(self.cluster, pairs[0][0])[0]
        forwards = len(pairs) == 1 and via != src and (not members or via in members)
        return Path(via if forwards else None, pairs)

    def single(self, rank: int) -> int:
        """The one NIC over which a rank sends and receives; -1 where it has several or none, or sends keep to rails."""
        server = self.cluster.servers[int(server_of_rank(self.cluster)[rank])]
        if self.cluster.keeps_rails or not any(self.fraction[n] > 0 for n in server.nics):
            return -1
        end = self._end(rank)
        return end[0][0] if len(end) == 1 else -1

    def single_pairs(self, src: int, targets: Int) -> Int:
        """The NIC of each target whose bytes from `src` take one NIC pair; -1 where they take another path."""
        server = server_of_rank(self.cluster)
        if self.single(src) < 0:
            return np.full(len(targets), -1, dtype=np.int64)
        if self._singles is None:
            self._singles = np.full(self.cluster.n_ranks, -2, dtype=np.int64)
        for rank in targets[self._singles[targets] == -2]:
            self._singles[rank] = self.single(int(rank))
        return np.where(server[targets] == server[src], -1, self._singles[targets])

    def _end(self, rank: int) -> list[Share]:
        """The NICs over which a rank sends and receives."""
        if rank not in self._ends:
            self._ends[rank] = self._shares(rank)
        return self._ends[rank]

    def _shares(self, rank: int) -> list[Share]:
        server = self.cluster.servers[int(server_of_rank(self.cluster)[rank])]
        alive = [n for n in server.nics if self.fraction[n] > 0]
        if not alive:
            raise PartitionedError(f"server{server.index}: no NIC left; its ranks cannot be reached")
        if self.weighted and any(self.fraction[n] < 1 for n in server.nics):
            return _in_proportion(alive, [self._rate(n) for n in alive])
        return _spread(list(nics_of_ranks(self.cluster)[rank]), alive)

    def _on_rails(self, src_server: int, dst_server: int, dst: int) -> Pairs:
        rails = self._common_rails(src_server, dst_server)
        hurt = any(self.fraction[n] < 1 for s in (src_server, dst_server) for n in self.cluster.servers[s].nics)
        if self.weighted and hurt:
            shares = _in_proportion(list(rails), [min(self._rate(n) for n in pair) for pair in rails.values()])
        else:
            own = [self.cluster.nics[n].rail for n in nics_of_ranks(self.cluster)[dst]]
            shares = _spread(own, list(rails))
        return [(*rails[rail], part) for rail, part in shares]

    def _on_a_rail(self, src_server: int, dst_server: int) -> bool:
        """Whether what two servers exchange stays on a rail; where a spine joins them, only if they have one left."""
        if not self.cluster.keeps_rails:
            return False
        return not self.cluster.rails_connected or bool(self._common_rails(src_server, dst_server))

    def _common_rails(self, src_server: int, dst_server: int) -> dict[int, tuple[int, int]]:
        key = src_server, dst_server
        if key not in self._rails:
            by_rail = [self._alive_by_rail(server) for server in key]
            common = sorted(set(by_rail[0]) & set(by_rail[1]))
            if not common and not self.cluster.rails_connected:
                raise PartitionedError(
                    f"server{src_server} and server{dst_server}: no rail works on both, and no switch joins the rails "
                    f"of {self.cluster.name}"
                )
            self._rails[key] = {rail: (by_rail[0][rail], by_rail[1][rail]) for rail in common}
        return self._rails[key]

    def _alive_by_rail(self, server: int) -> dict[int, int]:
        nics = reversed(self.cluster.servers[server].nics)
        return {self.cluster.nics[n].rail: n for n in nics if self.fraction[n] > 0}

    def _rate(self, nic: int) -> float:
        return self.cluster.nics[nic].payload_rate * float(self.fraction[nic])


def _spread(own: list[int], alive: list[int]) -> list[Share]:
    """Each of `own` has the same part; that of one which is not alive goes evenly over all that are."""
    part = 1.0 / len(own)
    lost = part * sum(one not in alive for one in own)
    shares = {one: part * own.count(one) for one in own if one in alive}
    if lost:
        shares = {one: shares.get(one, 0.0) + lost / len(alive) for one in alive}
    return list(shares.items())


def _in_proportion(keys: list[int], rates: list[float]) -> list[Share]:
    return [(key, rate / sum(rates)) for key, rate in zip(keys, rates, strict=True)]


def _turned(pairs: Pairs, turn: int) -> Pairs:
    """The pairs from another one on, so that the few chunks of many senders do not all begin on one NIC."""
    turn %= len(pairs)
    return pairs[turn:] + pairs[:turn]


def coupled(sources: list[Share], targets: list[Share]) -> Pairs:
    """NIC pairs that give each end its parts: the two divisions of the bytes laid over each other."""
    if len(sources) == 1 and len(targets) == 1:
        return [(sources[0][0], targets[0][0], 1.0)]
    pairs: Pairs = []
    i = j = 0
    left, room = sources[0][1], targets[0][1]
    while True:
        part = min(left, room)
        pairs.append((sources[i][0], targets[j][0], part))
        left, room = left - part, room - part
        if left < 1e-12:
            i += 1
        if room < 1e-12:
            j += 1
        if i == len(sources) or j == len(targets):
            break
        left = sources[i][1] if left < 1e-12 else left
        room = targets[j][1] if room < 1e-12 else room
    total = sum(part for *_, part in pairs)
    return [(src, dst, part / total) for src, dst, part in pairs]
