"""The checker: does every rank end with every contribution exactly once?

`check_schedule` executes a schedule symbolically before it runs. `check_trace` judges what the chunk backend executed,
cuts and rollbacks included: a static check cannot see a chunk that was added twice after a rollback.

Contributions are bit masks: bit r stands for the data that rank r brought. A buffer keeps two masks per byte range,
what it holds at least once and what it holds more than once.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.collectives.schedule import Pass, Schedule
from r2cc_simai.engine import _core

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Violation:
    """The first thing found wrong: on which rank, in which bytes, and what."""

    rank: int
    lo: int
    hi: int
    what: str

    def __str__(self) -> str:
        return f"rank {self.rank}, bytes {self.lo}..{self.hi}: {self.what}"


def all_reduced(n_ranks: int) -> Callable[[int, int, int], int]:
    """What an AllReduce must leave: every contribution on every rank."""
    everything = (1 << n_ranks) - 1
    return lambda rank, lo, hi: everything  # noqa: ARG005


Wanted = Callable[[int, int, int], int]  # (rank, lo, hi) -> mask of the contributions that must be there


def check_schedule(schedule: Schedule, wanted: Wanted | None = None) -> Violation | None:
    """Executes a schedule symbolically and judges the end.

    Passes whose sections meet on a rank must be ordered by `after`; otherwise the result would depend on timing, which
    is a violation of its own. `wanted` is AllReduce by default.
    """
    race = _unordered(schedule)
    if race is not None:
        return race
    cuts = _cuts(schedule)
    once = [[1 << rank] * (len(cuts) - 1) for rank in range(schedule.n_ranks)]
    more = [[0] * (len(cuts) - 1) for _ in range(schedule.n_ranks)]
    for one in schedule.passes:
        _execute(schedule, one, cuts, once, more)
    return judge(cuts, once, more, wanted or all_reduced(schedule.n_ranks))


def check_trace(schedule: Schedule, provenance: _core.Provenance, wanted: Wanted | None = None) -> Violation | None:
    """Judges the buffers that a chunk run left in `provenance`."""
    cuts = provenance.cuts()
    once, more = (_as_masks(words) for words in (provenance.once(), provenance.more()))
    return judge(cuts, once, more, wanted or all_reduced(schedule.n_ranks))


def _as_masks(words: NDArray[np.uint64]) -> list[list[int]]:
    return [[sum(int(w) << (64 * k) for k, w in enumerate(cell)) for cell in rank] for rank in words]


def judge(cuts: Int, once: list[list[int]], more: list[list[int]], wanted: Wanted) -> Violation | None:
    """Compares final buffers with what is wanted: per rank and byte range, who is in it once and who more than once."""
    for rank, (single, double) in enumerate(zip(once, more, strict=True)):
        for i in range(len(cuts) - 1):
            lo, hi = int(cuts[i]), int(cuts[i + 1])
            if lo == hi:
                continue
            want = wanted(rank, lo, hi)
            if double[i] & want:
                return Violation(rank, lo, hi, f"contributions of ranks {_ranks(double[i] & want)} more than once")
            if want & ~single[i]:
                return Violation(rank, lo, hi, f"contributions of ranks {_ranks(want & ~single[i])} are missing")
            if single[i] & ~want and want:
                return Violation(rank, lo, hi, f"contributions of ranks {_ranks(single[i] & ~want)} do not belong")
    return None


def _ranks(mask: int) -> list[int]:
    return [r for r in range(mask.bit_length()) if mask >> r & 1]


def _cuts(schedule: Schedule) -> Int:
    bounds = [np.array([0, schedule.bytes])]
    bounds += [edge for one in schedule.passes for edge in (one.lo, one.hi)]
    return np.unique(np.concatenate(bounds))


def _execute(schedule: Schedule, one: Pass, cuts: Int, once: list[list[int]], more: list[list[int]]) -> None:
    route = [int(r) for r in schedule.routes[one.route]]
    for lo, hi, start in zip(one.lo, one.hi, one.start, strict=True):
        span = range(*np.searchsorted(cuts, [lo, hi]))
        for hop in range(one.reduce_hops + one.copy_hops):
            src = route[(start + hop) % len(route)]
            dst = route[(start + hop + 1) % len(route)]
            for i in span:
                if hop < one.reduce_hops:
                    more[dst][i] |= more[src][i] | (once[dst][i] & once[src][i])
                    once[dst][i] |= once[src][i]
                else:
                    more[dst][i] = more[src][i]
                    once[dst][i] = once[src][i]


def _unordered(schedule: Schedule) -> Violation | None:
    """Two passes that meet in the same bytes of a rank although neither waits for the other."""
    passes = schedule.passes
    before: list[int] = []  # per pass: mask of all passes that must be complete before it starts
    for one in passes:
        mask = 0
        for earlier in one.after:
            mask |= before[earlier] | 1 << earlier
        before.append(mask)
    touched = [_touched(schedule, one) for one in passes]
    first = np.array([one.lo.min(initial=schedule.bytes) for one in passes], dtype=np.int64)
    last = np.array([one.hi.max(initial=0) for one in passes], dtype=np.int64)
    for j in range(len(passes)):
        for i in np.nonzero(np.maximum(first[:j], first[j]) < np.minimum(last[:j], last[j]))[0].tolist():
            clash = set() if before[j] >> i & 1 else touched[i].clash(touched[j])
            if clash and _share_bytes(passes[i], passes[j]):
                shared = int(max(first[i], first[j])), int(min(last[i], last[j]))
                rank = min(clash)
                return Violation(rank, *shared, f"passes {i} and {j} touch them and neither waits for the other")
    return None


@dataclass(frozen=True)
class _Touched:
    """Ranks whose buffers a pass reads, changes, and of the changed ones those to which it only adds."""

    reads: set[int]
    writes: set[int]
    adds: set[int]

    def clash(self, other: "_Touched") -> set[int]:
        """Ranks on which the order of two passes matters: additions may come in any order, and so may readers."""
        both_write = (self.writes & other.writes) - (self.adds & other.adds)
        return both_write | self.writes & other.reads | self.reads & other.writes


def _touched(schedule: Schedule, one: Pass) -> _Touched:
    route = schedule.routes[one.route]
    starts = one.start[one.hi > one.lo][:, None]

    def ranks(first: int, hops: int) -> set[int]:
        """Ranks at `first` to `first + hops - 1` hops from the sections' starts."""
        return {int(r) for r in route[np.unique((starts + first + np.arange(min(hops, len(route)))) % len(route))]}

    hops = one.reduce_hops + one.copy_hops
    reads, writes = ranks(0, hops), ranks(1, hops)
    adds = ranks(1, one.reduce_hops) - ranks(1 + one.reduce_hops, one.copy_hops) - reads
    return _Touched(reads, writes, adds)


def _share_bytes(a: Pass, b: Pass) -> bool:
    order = np.argsort(a.lo, kind="stable")
    lo, hi = a.lo[order], a.hi[order]
    for b_lo, b_hi in zip(b.lo, b.hi, strict=True):
        first = int(np.searchsorted(hi, b_lo, side="right"))
        if b_lo < b_hi and first < len(lo) and lo[first] < b_hi and lo[first] < hi[first]:
            return True
    return False
