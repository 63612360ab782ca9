"""The lower bound of an AllReduce between servers, for any fabric, state of the NICs and timeline of failures.

Every server receives at least the D bytes it lacks, and all n servers together receive 2(n-1)D (consistent with the
OptCC paper, arXiv 2606.01680)::

    T >= max( max_i D / C_i,  2(n-1) D / sum_i C_i )

where C_i is the payload bandwidth of server i: one server with (1-X)B gives max(D/((1-X)B), 2(n-1)D/((n-X)B)), several
give max_i 1/(1-X_i) and 2(n-1)/(n - sum X_i). Both are cuts, of one server and of all servers; where rails are not
joined, or a host bridge stands before NICs, `r2cc_simai.bounds.cuts` looks for tighter ones and has the proofs.

Servers count, links inside them are free. With a timeline both sides become integrals over time, a token bucket adds
its burst. Latency is not counted, so a measured or simulated time may be compared with it at any size.
"""

from functools import lru_cache

from r2cc_simai.bounds.cuts import raise_bound
from r2cc_simai.bounds.fabric import ServerClass, fabric_of, server_classes
from r2cc_simai.bounds.profiles import Profile, when
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.failures.timeline import Event, Timeline


def all_reduce_bound(cluster: Cluster, size: int, timeline: Timeline, start_s: float = 0.0) -> float:
    """Seconds that an AllReduce of `size` bytes takes at least when it starts at `start_s` of the timeline.

    Infinite where servers stay without a path to each other; 0 on a single server. Events by byte count are not
    counted.
    """
    if len(cluster.servers) < 2 or size == 0:
        return 0.0
    return _bound(cluster, size, tuple(e for e in timeline.events if e.at_bytes is None), start_s)


@lru_cache(maxsize=512)
def _bound(cluster: Cluster, size: int, events: tuple[Event, ...], start_s: float) -> float:
    classes = server_classes(cluster, events, start_s)
    bound_s = closed_form_bound(classes, size)
    if bound_s == float("inf") or not _cuts_may_say_more(cluster, classes):
        return bound_s
    return raise_bound(fabric_of(classes), size, bound_s)


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
    return bridged or not (cluster.rails_connected or len(classes) == 1)
