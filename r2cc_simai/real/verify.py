"""Every element of a rank's buffer against what the collective must leave there."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.collectives.checker import Wanted
from r2cc_simai.collectives.schedule import Int
from r2cc_simai.real.exact_data import ExactData


def count_wrong(
    result: NDArray[Any],
    rank: int,
    wanted: Wanted,
    cuts: Int,
    data: ExactData,
    element_bytes: int,
    op: str,
    iteration: int,
) -> int:
    """Elements that are not what `wanted` asks for; parts for which it asks nothing do not count.

    `cuts` are the bounds in bytes at which the schedule cuts the buffer. An element that one of them goes through
    belongs to the part of its last byte.
    """
    wrong = 0
    for lo, hi in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        first, end = lo // element_bytes, hi // element_bytes
        mask = wanted(rank, lo, hi)
        if first == end or not mask:
            continue
        ranks = tuple(one for one in range(len(data.weights)) if mask >> one & 1)
        expected = data.reduced(ranks, op, first, end, iteration)
        wrong += int(np.count_nonzero(result[first:end] != expected))
    return wrong
