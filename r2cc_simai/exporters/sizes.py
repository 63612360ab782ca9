"""A buffer size near the one that was asked for at which a schedule has a common chunk."""

import math
from collections.abc import Callable

from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.errors import SimaiError
from r2cc_simai.exporters.messages import Messages
from r2cc_simai.exporters.msccl import common_chunk

# Multiples of these divide by most counts of ranks, channels and segments that clusters have.
_STEPS = tuple(math.lcm(*range(1, n + 1)) * 64 for n in (4, 7, 8, 10, 12))


def nearest_even_size(schedule_of: Callable[[int], Schedule], size: int) -> int | None:
    """The nearest size, among the multiples that are tried, whose schedule MSCCL can hold; None: none was found."""
    tried = {max(1, round(size / step)) * step for step in _STEPS}
    for near in sorted(tried, key=lambda one: abs(one - size)):
        try:
            common_chunk(Messages(schedule_of(near), piece_bytes=0))
        except SimaiError:
            continue
        return near
    return None
