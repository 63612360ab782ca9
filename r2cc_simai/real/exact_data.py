"""Numbers whose sum over all ranks is exact in the type at hand, and shows which contribution is missing or doubled.

Rank r brings ((i + 7 t) mod m + 1) w_r as element i of iteration t. Weights 4^r tell every set of up to three copies of
each contribution from every other; where their sums would not be exact, r + 1, else 1. A type with P bits of precision
holds whole numbers up to 2^P, so m times the sum of the weights must not be above that.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.errors import InputError

Array = NDArray[Any]

PRECISION_BITS = {"float16": 11, "float32": 24, "int32": 31}
"""Data types that a schedule is executed with, and their exact whole numbers."""
ELEMENT_BYTES = {"float16": 2, "float32": 4, "int32": 4}
REDUCTIONS = ("sum", "max", "avg")

_PERIODS = (251, 127, 61, 31, 13, 7)
_SHIFT = 7


@dataclass(frozen=True)
class ExactData:
    """Contributions of `n_ranks` ranks in a data type; `weights` has one entry per rank."""

    dtype: str
    period: int
    weights: tuple[int, ...]

    def of_rank(self, rank: int, lo: int, hi: int, iteration: int) -> Array:
        """Elements lo to hi that a rank brings."""
        return (self._base(lo, hi, iteration) * self.weights[rank]).astype(self.dtype)

    def reduced(self, ranks: tuple[int, ...], op: str, lo: int, hi: int, iteration: int) -> Array:
        """Elements lo to hi of the result over some ranks."""
        base = self._base(lo, hi, iteration)
        weights = [self.weights[rank] for rank in ranks]
        if op == "max":
            return (base * max(weights)).astype(self.dtype)
        total: Array = (base * sum(weights)).astype(self.dtype)
        return averaged(total, len(ranks)) if op == "avg" and len(ranks) > 1 else total

    def _base(self, lo: int, hi: int, iteration: int) -> NDArray[np.int64]:
        return (np.arange(lo, hi, dtype=np.int64) + _SHIFT * iteration) % self.period + 1


def averaged(total: Array, n: int) -> Array:
    """A sum divided once, at the end, as NCCL's average; whole numbers are rounded towards 0."""
    result: Array = total // n if np.issubdtype(total.dtype, np.integer) else (total / total.dtype.type(n))
    return result


def exact_data(n_ranks: int, dtype: str) -> ExactData:
    """Data for a number of ranks.

    Raises:
        InputError: an unknown type, or so many ranks that no sum would be exact.
    """
    if dtype not in PRECISION_BITS:
        raise InputError(f"-d {dtype}: not among the types that are executed (allowed: {', '.join(PRECISION_BITS)})")
    limit = 2 ** PRECISION_BITS[dtype]
    powers = [4**rank for rank in range(min(n_ranks, 16))] + [limit] * max(0, n_ranks - 16)
    for weights in (powers, list(range(1, n_ranks + 1)), [1] * n_ranks):
        for period in _PERIODS:
            if period * sum(weights) <= limit:
                return ExactData(dtype, period, tuple(weights))
    raise InputError(f"-d {dtype}: sums over {n_ranks} ranks are not exact; choose a wider type")
