"""Data whose result is known exactly, and the check of every element.

Rank r brings, in iteration t, a random sequence of `PERIOD` whole numbers from 1 to M over and over; M is so small that
the sum of all ranks is exact in the element type, in whatever order it is made, also with one contribution too many:

    M = floor(limit / (ranks + 1))        limit: 2^24 for float32, 2^11 for float16, 2^31 - 1 for int32

A contribution that is missing or counted twice changes every element of a sum, and by numbers that tell whose it was. A
prime period tells apart what was shifted: units are no multiples of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from r2cc_simai.collectives.checker import Wanted
from r2cc_simai.collectives.operations import operation, wanted_after
from r2cc_simai.errors import InputError
from r2cc_simai.lab.reduce import DTYPES, Elements, Reduction
from r2cc_simai.lab.work import Collective

PERIOD = 4093
BLOCK = 64 * PERIOD  # elements that are compared at a time
_LIMIT = {"float32": 2**24, "float16": 2**11, "int32": 2**31 - 1}


def contribution(rank: int, iteration: int, reduction: Reduction, ranks: int) -> Elements:
    """One period of what a rank brings, shape (PERIOD,).

    Raises:
        InputError: so many ranks that the type cannot hold their sum.
    """
    most = _LIMIT[reduction.dtype] // (ranks + 1)
    if most < 2:
        raise InputError(f"lab: {reduction.dtype} is too small for exact sums over {ranks} ranks")
    values = np.random.default_rng((rank, iteration)).integers(1, most, PERIOD, endpoint=True)
    return values.astype(DTYPES[reduction.dtype])


def fill(buffer: Elements, period: Elements) -> None:
    """The sequence over and over, from the start of the buffer on."""
    whole = len(buffer) // PERIOD * PERIOD
    buffer[:whole].reshape(-1, PERIOD)[:] = period
    buffer[whole:] = period[: len(buffer) - whole]


@dataclass(frozen=True)
class Wrong:
    """How many elements are wrong, and what the first of them look like."""

    elements: int
    first: str


class Expectation:
    """What one rank must hold after a collective."""

    def __init__(self, collective: Collective, rank: int, ranks: int) -> None:
        self._reduction = Reduction(collective.dtype, collective.op)
        self._ranks = ranks
        self._group = len(collective.request.group)
        request = collective.request
        self._reduces = operation(request.op).reduces
        wanted = wanted_after(request.op, request.group, request.bytes, request.root)
        self._cells = _cells(collective, rank, wanted, self._reduction.item_bytes)
        self._periods: dict[int, Elements] = {}
        self._iteration = -1

    def load(self, iteration: int) -> None:
        """Looks forward to an iteration."""
        self._iteration = iteration
        self._periods = {mask: self._expected(mask) for mask in {mask for _, _, mask in self._cells}}

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """All that is to be checked, in blocks (lo, hi, mask of the contributions)."""
        for lo, hi, mask in self._cells:
            for start in range(lo, hi, BLOCK):
                yield start, min(start + BLOCK, hi), mask

    def check(self, buffer: Elements, lo: int, hi: int, mask: int) -> Wrong | None:
        """Compares elements lo to hi with the reduction of the contributions of `mask`."""
        period = np.roll(self._periods[mask], -(lo % PERIOD))
        found = buffer[lo:hi]
        wrong = np.nonzero(found != np.resize(period, hi - lo))[0]
        if not len(wrong):
            return None
        at = int(wrong[0])
        text = f"element {lo + at}: {found[at]} in place of {period[at % PERIOD]}{self._why(lo, found, wrong, mask)}"
        return Wrong(len(wrong), text)

    def _expected(self, mask: int) -> Elements:
        parts = [contribution(r, self._iteration, self._reduction, self._ranks) for r in _members(mask)]
        total = parts[0].copy()
        for part in parts[1:]:
            self._reduction.into(total, part)
        if self._reduces:
            self._reduction.finish(total, self._group)
        return total

    def _why(self, lo: int, found: Elements, wrong: np.ndarray, mask: int) -> str:
        """Whose contribution explains the difference of all wrong elements of a sum."""
        if self._reduction.op != "sum":
            return ""
        at = (lo + wrong) % PERIOD
        difference = found[wrong].astype(np.float64) - self._periods[mask][at]
        for rank in range(self._ranks):
            own = contribution(rank, self._iteration, self._reduction, self._ranks)[at].astype(np.float64)
            if np.array_equal(difference, own):
                return f" (rank {rank} is in it once too often)"
            if np.array_equal(difference, -own):
                return f" (rank {rank} is missing)"
        return ""


def _members(mask: int) -> list[int]:
    return [r for r in range(mask.bit_length()) if mask >> r & 1]


def _cells(collective: Collective, rank: int, wanted: Wanted, item: int) -> list[tuple[int, int, int]]:
    """Ranges of elements and the mask of what must be in them, neighbours with equal masks joined."""
    passes = collective.schedule.passes
    edges = [np.array([0, collective.schedule.bytes])] + [edge for one in passes for edge in (one.lo, one.hi)]
    cells: list[tuple[int, int, int]] = []
    # An element belongs to the section of its last byte (lab.units), so to the cell [cut, next cut) that this is in.
    cuts = np.unique(np.concatenate(edges)).tolist()
    for a, b in pairwise(cuts):
        lo, hi, mask = a // item, b // item, wanted(rank, a, b)
        if not mask or lo == hi:
            continue
        if cells and cells[-1][1:] == (lo, mask):
            cells[-1] = (cells[-1][0], hi, mask)
        else:
            cells.append((lo, hi, mask))
    return cells
