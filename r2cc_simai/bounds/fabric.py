"""The fabric as a graph of links with a profile each: servers, host bridges, switches, and a spine above leaf switches.

Servers in the same state that hang on the same switches form a class. Up to `MOST_SERVERS` servers each is a node. Of
more, N of one class are two nodes: one of them, and the N-1 others together. No cut in two is lost by that. For a set S
of servers the capacity between S and the rest is the minimum, over all ways to lay the switches on either side, of a
sum with one term per server that depends on the server's class and side alone, and of what the uplinks of leaf switches
add, whichever servers are in S. So it is a concave function of how many
servers of each class S has, and its minimum over all S (neither empty nor everything) lies on a vertex of that box of
counts: a union of whole classes, a single server, or the complement of one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r2cc_simai.bounds.profiles import Profile, carried, nic_profile
from r2cc_simai.cluster.leaf_spine import Leaf
from r2cc_simai.cluster.model import Cluster, Nic, Server
from r2cc_simai.failures.timeline import Event

if TYPE_CHECKING:
    import networkx as nx

MOST_SERVERS = 12
"""Up to so many servers each is a node by itself."""

Attachment = tuple[tuple[int, bool, Profile], ...]  # per NIC: switch, whether behind the host bridge, what it carries


@dataclass(frozen=True)
class ServerClass:
    """Equal servers: how many, how they hang on the fabric, and what their host bridge carries (bytes/s)."""

    count: int
    nics: Attachment
    bridge_rate: float


@dataclass(frozen=True)
class Node:
    """The `index`-th node of a class, which stands for `count` of its servers; the first one stands for one."""

    cls: int
    index: int
    count: int


@dataclass(frozen=True)
class Link:
    """Parallel connections between two places of the fabric; each profile counts `times` times."""

    a: object
    b: object
    profiles: tuple[Profile, ...]
    times: int

    def carried(self, time_s: float) -> float:
        """Bytes per direction by a time."""
        return self.times * sum(carried(profile, time_s) for profile in self.profiles)


@dataclass(frozen=True)
class Fabric:
    """The nodes that stand for servers, and the links between them, their host bridges and the switches."""

    classes: tuple[ServerClass, ...]
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]

    def graph(self, time_s: float) -> "nx.DiGraph[object]":
        """Each link as two arcs with what it can have carried by a time as `capacity` (bytes)."""
        import networkx as nx

        graph: nx.DiGraph[object] = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        for link in self.links:
            capacity = link.carried(time_s)
            graph.add_edge(link.a, link.b, capacity=capacity)
            graph.add_edge(link.b, link.a, capacity=capacity)
        return graph


def behind_bridge(server: Server, numa: int) -> bool:
    """Whether no GPU shares a NIC's NUMA node, so that all its traffic crosses the host bridge.

    Where a GPU does, the traffic of the others can reach it over links inside the server, which a bound counts as free.
    """
    return numa not in server.gpu_numa and server.bridge_rate < float("inf")


def server_classes(
    cluster: Cluster, events: Sequence[Event], start_s: float, servers: Sequence[int] | None = None
) -> tuple[ServerClass, ...]:
    """The servers, or some of them, by state, in order of their first."""
    counts: dict[tuple[Attachment, float], int] = defaultdict(int)
    for server in cluster.servers if servers is None else (cluster.servers[s] for s in servers):
        nics: Attachment = tuple(
            sorted(
                (_switch(cluster, nic), behind_bridge(server, nic.numa), profile)
                for nic in (cluster.nics[i] for i in server.nics)
                for profile in [nic_profile(nic, events, start_s)]
            )
        )
        bridge = server.bridge_rate if any(far for _, far, _ in nics) else float("inf")
        counts[nics, bridge] += 1
    return tuple(ServerClass(count, nics, bridge) for (nics, bridge), count in counts.items())


def _switch(cluster: Cluster, nic: Nic) -> int:
    """The switch that a NIC hangs on, by number."""
    if cluster.leaves:
        return cluster.leaf_of_nic[nic.index]
    return 0 if cluster.rails_connected else nic.rail


def uplink_profile(cluster: Cluster, leaf: Leaf) -> Profile:
    """Payload that a leaf switch carries to the spine, or from it: each packet has at least the smallest header."""
    nics = [cluster.nics[n] for n in leaf.nics]
    return ((0.0, leaf.uplink_rate / (1 + min(nic.header_bytes / nic.mtu_bytes for nic in nics))),)


def pods(cluster: Cluster) -> dict[int, list[Profile]]:
    """The uplinks of every pod of a leaf-spine fabric: all that goes in or out of its servers from other pods."""
    found: dict[int, list[Profile]] = defaultdict(list)
    for leaf in cluster.leaves:
        found[leaf.pod].append(uplink_profile(cluster, leaf))
    return found


def fabric_of(classes: Sequence[ServerClass], uplinks: Mapping[int, Profile] | None = None) -> Fabric:
    """The graph of some classes of servers; `uplinks` join switches, by number, to a spine."""
    servers = sum(one.count for one in classes)
    nodes: list[Node] = []
    links: list[Link] = []
    for i, one in enumerate(classes):
        apart = one.count if servers <= MOST_SERVERS else 1
        own = [Node(i, k, 1) for k in range(apart)]
        own += [Node(i, 1, one.count - 1)] if one.count > apart else []
        nodes += own
        for node in own:
            links += _links(node, one)
    used = {switch for one in classes for switch, _, _ in one.nics}
    links += [Link(("switch", leaf), ("spine",), (up,), 1) for leaf, up in (uplinks or {}).items() if leaf in used]
    return Fabric(tuple(classes), tuple(nodes), tuple(links))


def _links(node: Node, one: ServerClass) -> list[Link]:
    on: dict[tuple[int, bool], list[Profile]] = defaultdict(list)
    for switch, far, profile in one.nics:
        on[switch, far].append(profile)
    bridge = ("bridge", node)
    links = [
        Link(bridge if far else node, ("switch", switch), tuple(profiles), node.count)
        for (switch, far), profiles in on.items()
    ]
    if any(far for _, far in on):
        links.append(Link(node, bridge, (((0.0, one.bridge_rate),),), node.count))
    return links
