"""Ring or double binary tree for an AllReduce: a cost model from the cluster's latencies and bandwidths, as NCCL's.

A ring makes 2(p-1) steps one after another and puts 2(p-1)/p of a channel's bytes through a NIC; a tree makes 2 steps
for each of its levels and each further rank of a server, and puts 2 of them through. Per channel of d bytes over p
ranks on S servers of at most g, m channels in all, with l_n and l_l the latencies of a step between servers and inside
one, B the slowest NIC's payload rate, L the link's, and c = min(s, chunk)::

    ring    s = d/p:               max(steps_n (l_n + c/B) + steps_l (l_l + c/L) + (s-c)/B,
                                       2(p-1) s/B + l_n,  2(p-1) s m (g-1)/g / L)
    tree    s = d/(2k), k slices:  2(g-1)(l_l + c/L) + 2 (s-c) m/L + 2 depth (l_n + 2s/B)
                                       + (k-1) max(4s/B,  4 s m (g-1)/g / L,  2 l_n / window)

`depth` is that of the deeper tree. A server has four edges in both trees together: a level takes two slices through one
port, and a slice of both trees takes four. As in NCCL's model (src/graph/tuning.cc) a tree so counts 2 D on any number
of servers, although two or three have fewer edges: it is chosen for its latency, and large AllReduces stay on rings.
NCCL's low-latency protocol counts as bytes here, too.
"""

from collections.abc import Collection, Sequence
from typing import Literal

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import Lane, ring_route, server_of_rank
from r2cc_simai.collectives.double_tree import deepest

SLICES = (1, 2, 4, 8)
SURELY = 0.9
"""A tree is taken where the model says that it needs less than this part of the ring's time."""


def restricted_to(cluster: Cluster, *algorithms: Literal["ring", "tree"]) -> Cluster:
    """The same cluster with no other algorithms to choose from."""
    transport = cluster.spec.transport.model_copy(update={"algorithms": algorithms})
    return Cluster(cluster.name, cluster.spec.model_copy(update={"transport": transport}))


def tree_slices(view: View, size: int, lanes: Sequence[Lane], members: Collection[int] | None) -> int:
    """How many slices the double trees of an AllReduce have; 0 where the ring is faster."""
    allowed = view.cluster.spec.transport.algorithms
    if "tree" not in allowed or size == 0 or len(lanes[0]) < 2:
        return 0
    model = _Model(view, size, lanes, members)
    slices = min(SLICES, key=model.tree_s)  # the fewest of equals
    if "ring" not in allowed:
        return slices
    return slices if model.tree_s(slices) < SURELY * model.ring_s() else 0


class _Model:
    """The two formulas for one request, in seconds; the latency of the start is left out of both."""

    def __init__(self, view: View, size: int, lanes: Sequence[Lane], members: Collection[int] | None) -> None:
        cluster = view.cluster
        self._cluster = cluster
        ranks = ring_route(cluster, lanes[0], members)
        servers = server_of_rank(cluster)[ranks]
        counts = [int((servers == s).sum()) for s in lanes[0]]
        self._ranks, self._servers, self._most = len(ranks), len(counts), max(counts)
        self._lanes = len(lanes)
        self._bytes = size * cluster.wire_factor(size)
        rates = [view.payload_rate(nic) for lane in lanes for nic in lane.values()]
        self._nic = min((rate for rate in rates if rate > 0), default=1.0)  # a dead one's bytes go elsewhere
        self._link = min(cluster.servers[s].link_rate for s in lanes[0])
        self._link_s = max(cluster.servers[s].link_latency_s for s in lanes[0])
        self._net_s = cluster.spec.transport.step_latency_us * 1e-6
        window = cluster.spec.transport.window_chunks
        self._window_s = 2 * self._net_s / window if window else 0.0
        self._link_share = self._lanes * (self._most - 1) / self._most / self._link

    def ring_s(self) -> float:
        """Time of the flat rings."""
        p = self._ranks
        section = self._bytes / self._lanes / p
        chunk = min(section, self._cluster.chunk_bytes)
        steps = 2 * (p - 1)
        across = -(-steps * self._servers // p)
        inside = steps - across
        way = across * (self._net_s + chunk / self._nic) + inside * (self._link_s + chunk / self._link)
        port = steps * section / self._nic + self._net_s
        return max(way + (section - chunk) / self._nic, port, steps * section * self._link_share)

    def tree_s(self, slices: int) -> float:
        """Time of the double trees in so many slices."""
        part = self._bytes / self._lanes / 2 / slices
        chunk = min(part, self._cluster.chunk_bytes)
        inside = 2 * (self._most - 1) * (self._link_s + chunk / self._link)
        inside += 2 * (part - chunk) * self._lanes / self._link if self._most > 1 else 0.0
        across = 2 * deepest(self._servers) * (self._net_s + 2 * part / self._nic)
        gap = max(4 * part / self._nic, 4 * part * self._link_share, self._window_s)
        return inside + across + (slices - 1) * gap
