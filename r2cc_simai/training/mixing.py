"""Numbers that stand for tuples and multisets: equal inputs give equal numbers, others different ones but by accident
(one pair in 2^64)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]


def mixed(columns: Sequence[Int]) -> Int:
    """A 64-bit number for each row that depends on all columns and their order (steps of splitmix64)."""
    state = np.full(len(columns[0]), 0x243F6A8885A308D3, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            state = state + np.uint64(0x9E3779B97F4A7C15) + np.ascontiguousarray(column).view(np.uint64)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return state.view(np.int64)


def gathered(count: int, place: Int, keys: Int) -> Int:
    """For each of `count` places a number of the multiset of the keys that lie there, 0 where there are none."""
    total = np.zeros(count, dtype=np.uint64)
    np.add.at(total, place, keys.view(np.uint64))
    return total.view(np.int64)


def numbered(keys: Int) -> Int:
    """Numbers 0, 1, .. for the distinct keys, in the order in which they first occur."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first, kind="stable")] = np.arange(len(first))
    numbers: Int = order[inverse]
    return numbers
