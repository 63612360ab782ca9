"""The lower bound of an AllReduce between servers, for any state of the NICs and any timeline of failures.

Every server receives at least the D bytes it lacks, and all servers together receive 2(n-1)D (consistent with the
OptCC paper, arXiv 2606.01680)::

    T >= max( max_i D / C_i,  2(n-1) D / sum_i C_i )

where C_i is the payload bandwidth of server i, so that one server with (1-X)B gives max(D/((1-X)B), 2(n-1)D/((n-X)B)).
Servers count, links inside them are free. With a timeline both sides become integrals over time, a token bucket adds
its burst. Latency is not counted, so a measured or simulated time may be compared with it at any size.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from r2cc_simai.cluster.model import Cluster, Nic
from r2cc_simai.failures.timeline import Event, Timeline


def all_reduce_bound(cluster: Cluster, size: int, timeline: Timeline, start_s: float = 0.0) -> float:
    """Seconds that an AllReduce of `size` bytes takes at least when it starts at `start_s` of the timeline.

    Infinite where a server stays without a NIC; 0 on a single server. Events by byte count are not counted.
    """
    n = len(cluster.servers)
    if n < 2 or size == 0:
        return 0.0
    events = [e for e in timeline.events if e.at_bytes is None]
    nics = {s.index: [cluster.nics[i] for i in s.nics] for s in cluster.servers}
    profiles = {s: [_profile(nic, events, start_s) for nic in own] for s, own in nics.items()}
    single = max(_when(profile, float(size)) for profile in profiles.values())
    together = _when([p for profile in profiles.values() for p in profile], 2.0 * (n - 1) * size)
    return max(single, together)


Profile = list[tuple[float, float]]  # (from seconds, payload bytes per second), the last one for ever


def _profile(nic: Nic, events: Sequence[Event], start_s: float) -> Profile:
    """What a NIC can carry over time: line rate until the bucket is dry, then its rate, times what is left of it.

    A NIC at a fraction f of its rate drains its bucket at f times the speed, one that is down keeps it.
    """
    efficiency = nic.payload_rate / nic.rate
    fraction = 1.0
    steps: list[tuple[float, float]] = [(0.0, 1.0)]
    for event in events:
        if event.nic != nic.index:
            continue
        if event.time_s <= start_s:
            fraction = event.fraction
            steps[0] = (0.0, fraction)
        else:
            steps.append((event.time_s - start_s, event.fraction))
    bucket_s = nic.burst_bytes / (nic.line_rate - nic.rate) if nic.line_rate > nic.rate else 0.0  # at the full rate
    profile: Profile = []
    for (begin, left), (end, _) in pairwise([*steps, (math.inf, 0.0)]):
        dry = begin + bucket_s / left if left > 0 else math.inf
        if dry > begin:
            profile.append((begin, left * nic.line_rate * efficiency))
        if end > dry:
            profile.append((dry, left * nic.rate * efficiency))
        bucket_s = max(0.0, bucket_s - left * (end - begin)) if left > 0 else bucket_s
    return profile


def _when(profiles: Sequence[Profile], need: float) -> float:
    """When the NICs together have carried `need` bytes."""
    times = sorted({begin for profile in profiles for begin, _ in profile})
    carried = 0.0
    for begin, end in pairwise([*times, math.inf]):
        rate = sum(_at(profile, begin) for profile in profiles)
        if rate > 0 and carried + rate * (end - begin) >= need:
            return begin + (need - carried) / rate
        if end < math.inf:
            carried += rate * (end - begin)
    return math.inf


def _at(profile: Profile, time_s: float) -> float:
    rate = 0.0
    for begin, value in profile:
        if begin <= time_s:
            rate = value
    return rate
