"""What a NIC can carry over time, as a lower bound counts it: piecewise constant payload rates.

A profile is a list of (from seconds, payload bytes per second), the last entry for ever. All that a set of links can
have carried by a time t is the sum of their integrals, whatever ran over them.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from r2cc_simai.cluster.model import Nic
from r2cc_simai.failures.timeline import Event

Profile = tuple[tuple[float, float], ...]


def nic_profile(nic: Nic, events: Sequence[Event], start_s: float) -> Profile:
    """Line rate until the bucket is dry, then the NIC's rate, times what is left of it; time 0 is `start_s`.

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
    profile: list[tuple[float, float]] = []
    for (begin, left), (end, _) in pairwise([*steps, (math.inf, 0.0)]):
        dry = begin + bucket_s / left if left > 0 else math.inf
        if dry > begin:
            profile.append((begin, left * nic.line_rate * efficiency))
        if end > dry:
            profile.append((dry, left * nic.rate * efficiency))
        bucket_s = max(0.0, bucket_s - left * (end - begin)) if left > 0 else bucket_s
    return tuple(profile)


def when(profiles: Sequence[Profile], need: float) -> float:
    """Seconds until the links together have carried `need` bytes; infinite if they never will."""
    times = sorted({begin for profile in profiles for begin, _ in profile})
    carried = 0.0
    for begin, end in pairwise([*times, math.inf]):
        rate = sum(_at(profile, begin) for profile in profiles)
        if rate > 0 and carried + rate * (end - begin) >= need:
            return begin + (need - carried) / rate
        if end < math.inf:
            carried += rate * (end - begin)
    return math.inf


def carried(profile: Profile, time_s: float) -> float:
    """Bytes that a link can have carried by a time; the rate of the end where the time is infinite."""
    if math.isinf(time_s):
        return profile[-1][1]
    total = 0.0
    for (begin, rate), (end, _) in pairwise([*profile, (math.inf, 0.0)]):
        if begin < time_s:
            total += rate * (min(end, time_s) - begin)
    return total


def _at(profile: Profile, time_s: float) -> float:
    rate = 0.0
    for begin, value in profile:
        if begin <= time_s:
            rate = value
    return rate
