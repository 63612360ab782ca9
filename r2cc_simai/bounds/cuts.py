"""Cuts through the fabric that bound an AllReduce, found with maximum flows (networkx).

Let P be a partition of the servers into k >= 2 parts, and in_t(V) the most bytes that can have entered part V from
outside by time t: a maximum flow in which every link has what it can have carried by t as its capacity. An AllReduce
of D bytes that ends at T has::

    sum over V in P of in_T(V)  >=  2 (k - 1) D

Proof. Take each part as one party whose inside is free; that only helps. Look at one byte of the buffer. At the end
every party holds a value that depends on all k contributions. Messages between parties that concern this byte carry a
byte each at least, since contributions are independent of each other. Until the first party, say v, holds all k
contributions, each of the k-1 others has sent at least one message, for its contribution has left it. When v has them,
nobody else does (one message completes only its receiver), so each of the k-1 others still has a message to receive
that completes it. These 2(k-1) messages differ: the first k-1 were received by the time that v was complete, and of
them only v's last completed anybody. Summed over D bytes, 2(k-1)D bytes enter parts. A switch copies and adds nothing.

What enters V by T over the links is a flow from outside V to V whose sum on each link is at most what the link can
carry by T; so it is no more than in_T(V), and by max-flow = min-cut than the capacity of any cut around V.

k = 2 says that each of two sides needs D bytes, the sum of the other: T >= D / (capacity of any cut). k = n on one
switch is 2(n-1)D over the capacity of all servers. On one switch without host bridges in the way no other partition
says more than those two: where every server has carried c >= D and all together >= 2(n-1)D, a partition of which no
part has more than half of the total has in = total >= 2(k-1)D, and one with such a part W has in = 2 (total - W), and
outside W lie at least k-1 servers: >= 2(k-1)D.

The most violated partition at a time t is found by maximum flows, one per server: in_t is submodular, as every cut
function is, so the minimum of sum (in_t(V) - 2D) over all partitions is the maximum of x(all) among the vectors x with
x(S) <= in_t(S) - 2D for every set S of servers (Dilworth truncation; Cunningham, Optimal attack and reinforcement of a
network, J. ACM 32, 1985). The greedy algorithm gives it: one server after the other gets the largest x that no set of
servers seen so far forbids, and the sets that forbid more, joined where they overlap, are the parts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from r2cc_simai.bounds.fabric import Fabric, Link, Node
from r2cc_simai.bounds.profiles import Profile, when

Part = frozenset[Node]
MOST_STEPS = 200  # of raising the bound; each step is a valid bound by itself


@dataclass(frozen=True)
class Cut:
    """The links around a part and what they can have carried by the time it was looked for (bytes)."""

    links: tuple[Link, ...]
    bytes: float


def raise_bound(fabric: Fabric, size: int, bound_s: float) -> float:
    """The least time, from `bound_s` on, at which no partition that is looked at is violated (seconds).

    All partitions are looked at where every server is a node of the fabric. Per step: the most violated one at the time
    reached, and the first time at which the links of its cuts can have carried what it needs.
    """
    time_s = bound_s
    for _ in range(MOST_STEPS):
        violated = _most_violated(fabric, size, time_s)
        if violated is None:
            return time_s
        later = when(*violated)
        if later <= time_s * (1 + 1e-12) or later == float("inf"):
            return max(time_s, later)
        time_s = later
    return time_s


def _most_violated(fabric: Fabric, size: int, time_s: float) -> tuple[list[Profile], float] | None:
    """Profiles of the links of a violated partition's cuts, and the bytes that they have to carry."""
    search = _Search(fabric, time_s, 2.0 * size)
    chosen = [search.better(part) for part in search.parts()]
    k = sum(count for count, _ in chosen)
    need = 2.0 * (k - 1) * size
    if sum(cut.bytes * times for _, cuts in chosen for cut, times in cuts) >= need - 1e-9 * size:
        return None
    return [p for _, cuts in chosen for cut, times in cuts for link in cut.links for p in _scaled(link, times)], need


def _scaled(link: Link, times: int) -> Iterator[Profile]:
    for profile in link.profiles:
        yield tuple((begin, rate * link.times * times) for begin, rate in profile)


class _Search:
    """Cuts of one fabric at one time; `gain` is the 2D that every further part of a partition needs."""

    def __init__(self, fabric: Fabric, time_s: float, gain: float) -> None:
        self._fabric = fabric
        self._gain = gain
        self._graph = fabric.graph(time_s)

    def parts(self) -> Sequence[Part]:
        """The partition of the nodes with the least sum of in(V) - gain."""
        x: dict[Node, float] = {}
        parts: list[Part] = []
        for node in self._fabric.nodes:
            x[node], tight = self._largest(node, x)
            parts = [part for part in parts if not part & tight] + [
                tight.union(*(part for part in parts if part & tight))
            ]
        return parts

    def _largest(self, node: Node, x: dict[Node, float]) -> tuple[float, Part]:
        """min in(S) - gain - x(S without node) over the sets S of nodes seen so far that hold `node`, and such an S.

        A minimum cut: what is in S lies on the side of "in", where it saves its x if that is positive.
        """
        import networkx as nx

        graph = self._graph.copy()
        graph.add_edge("in", node)  # no capacity: unlimited
        for other in self._fabric.nodes:
            if other not in x and other != node:
                graph.add_edge(other, "out")
        for other, value in x.items():
            graph.add_edge(*(("in", other) if value > 0 else (other, "out")), capacity=abs(value))
        if "out" not in graph:
            graph.add_node("out")
        size, (inside, _) = nx.minimum_cut(graph, "in", "out")
        saved = sum(value for value in x.values() if value > 0)
        return size - saved - self._gain, frozenset(n for n in self._fabric.nodes if n in inside)

    def better(self, part: Part) -> tuple[int, list[tuple[Cut, int]]]:
        """A part as a whole or, where its nodes are several servers, each of those alone, whichever leaves less.

        Returns the number of parts that it makes, their cuts and how often each counts.
        """
        whole = self._cut(part)
        if all(node.count == 1 for node in part):
            return 1, [(whole, 1)]
        singles = [(self._cut(frozenset([Node(node.cls, 0, 1)])), node.count) for node in part]
        if sum((cut.bytes - self._gain) * times for cut, times in singles) < whole.bytes - self._gain:
            return sum(times for _, times in singles), singles
        return 1, [(whole, 1)]

    def _cut(self, part: Part) -> Cut:
        """The minimum cut around a part."""
        import networkx as nx

        rest = set(self._fabric.nodes) - part
        if not rest:
            return Cut((), 0.0)
        graph = self._graph.copy()
        graph.add_edges_from(("in", node) for node in part)
        graph.add_edges_from((node, "out") for node in rest)
        size, (inside, _) = nx.minimum_cut(graph, "in", "out")
        crossing = [link for link in self._fabric.links if (link.a in inside) != (link.b in inside)]
        return Cut(tuple(crossing), float(size))
