"""The lower bound of an AllReduce between servers, for any fabric, state of the NICs and timeline of failures.

Every server receives at least the D bytes it lacks, and all n servers together receive 2(n-1)D (consistent with the
OptCC paper, arXiv 2606.01680)::

    T >= max( max_i D / C_i,  2(n-1) D / sum_i C_i )

where C_i is the payload bandwidth of server i: one server with (1-X)B gives max(D/((1-X)B), 2(n-1)D/((n-X)B)), several
give max_i 1/(1-X_i) and 2(n-1)/(n - sum X_i). Both are cuts, of one server and of all servers; where rails are not
joined, a leaf switch has less to the spine than below, or a host bridge stands before NICs, `r2cc_simai.bounds.cuts`
looks for tighter ones and has the proofs.

Servers count, links inside them are free. With a timeline both sides become integrals over time, a token bucket adds
its burst. Latency is not counted, so a measured or simulated time may be compared with it at any size.
"""

from collections.abc import Sequence
from functools import lru_cache

from r2cc_simai.bounds.cuts import raise_bound
from r2cc_simai.bounds.fabric import ServerClass, fabric_of, pods, server_classes, uplink_profile
from r2cc_simai.bounds.profiles import Profile, when
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.failures.timeline import Event, Timeline

MOST_NODES = 24
"""A fabric of so many nodes is searched for tighter cuts; of more, which only leaf-spine ones have, servers and pods
alone are looked at."""


def all_reduce_bound(
    cluster: Cluster, size: int, timeline: Timeline, start_s: float = 0.0, servers: Sequence[int] | None = None
) -> float:
    """Seconds that an AllReduce of `size` bytes takes at least when it starts at `start_s` of the timeline.

    `servers` are those with ranks of the group, all by default; no other takes part. Infinite where servers stay
    without a path to each other; 0 on a single server. Events by byte count are not counted.
    """
    members = tuple(range(len(cluster.servers)) if servers is None else servers)
    if len(members) < 2 or size == 0:
        return 0.0
    return _bound(cluster, members, size, tuple(e for e in timeline.events if e.at_bytes is None), start_s)


@lru_cache(maxsize=512)
def _bound(cluster: Cluster, servers: tuple[int, ...], size: int, events: tuple[Event, ...], start_s: float) -> float:
    classes = server_classes(cluster, events, start_s, servers)
    bound_s = max(closed_form_bound(classes, size), _pods_bound(cluster, servers, size))
    if bound_s == float("inf") or not _cuts_may_say_more(cluster, classes):
        return bound_s
    fabric = fabric_of(classes, {leaf.index: uplink_profile(cluster, leaf) for leaf in cluster.leaves})
    return raise_bound(fabric, size, bound_s) if len(fabric.nodes) <= MOST_NODES else bound_s


def _pods_bound(cluster: Cluster, servers: Sequence[int], size: int) -> float:
    """The same two cuts with the pods of a leaf-spine fabric as parties, and their uplinks as capacities."""
    pod_of = {cluster.nics[n].server: leaf.pod for leaf in cluster.leaves for n in leaf.nics}
    used = {pod_of[s] for s in servers if s in pod_of}
    if len(used) < 2:
        return 0.0
    uplinks = [own for pod, own in pods(cluster).items() if pod in used]
    everything = [profile for own in uplinks for profile in own]
    return max(*(when(own, float(size)) for own in uplinks), when(everything, 2.0 * (len(used) - 1) * size))


def closed_form_bound(classes: tuple[ServerClass, ...], size: int) -> float:
    """max( max_i D / C_i, 2(n-1) D / sum_i C_i ), as integrals over the profiles of the NICs."""
    single = max(when([profile for _, _, profile in one.nics], float(size)) for one in classes)
    everything: list[Profile] = [
        tuple((begin, rate * one.count) for begin, rate in profile) for one in classes for _, _, profile in one.nics
    ]
    n = sum(one.count for one in classes)
    return max(single, when(everything, 2.0 * (n - 1) * size))


def _cuts_may_say_more(cluster: Cluster, classes: tuple[ServerClass, ...]) -> bool:
    bridged = any(far for one in classes for _, far, _ in one.nics)
    apart = bool(cluster.leaves) or not cluster.rails_connected
    return bridged or (apart and len(classes) > 1)
