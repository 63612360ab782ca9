"""One component that fails and comes back, once or again and again."""

import math
from collections.abc import Iterator

from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Fraction, Seconds, Site, pattern
from r2cc_simai.failures.places import component_or_first, end_of, left


@pattern
def flap(
    site: Site,
    component: str = "",
    period: Seconds = 1.0,
    duty: Fraction = 0.5,
    count: int = 3,
    at: Seconds = 0.0,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """A component goes down `count` times (0: to the end), for the share `duty` of each `period`."""
    if period <= 0:
        raise InputError("period=0: a time above 0 is wanted")
    if duty <= 0:
        raise InputError("duty=0: the share of a period that it is down is above 0 and at most 1")
    if count < 0 or (count == 0 and math.isinf(site.horizon_s)):
        raise InputError(f"count={count}: at least 1 is wanted; 0 (to the end) needs a job of a known length")
    times = count or max(0, math.ceil((site.horizon_s - at) / period))
    for number in range(times):
        begin = at + number * period
        yield Incident(
            component_or_first(site.cluster, component), begin, begin + duty * period, left(fraction), "flap"
        )


@pattern
def repaired(
    site: Site,
    component: str = "",
    at: Seconds = 0.0,
    until: Seconds | None = None,
    for_: Seconds | None = None,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """A component fails and is repaired, after a minute where neither `until` nor `for` says when."""
    end = end_of(at, until, 60.0 if until is None and for_ is None else for_)
    yield Incident(component_or_first(site.cluster, component), at, end, left(fraction))
