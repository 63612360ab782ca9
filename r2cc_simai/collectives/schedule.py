"""The schedule: who sends which section to whom, in which order.

A schedule is written once by an algorithm, checked once, and executed by every backend. It is compact: a pass over
1,024 ranks is a handful of arrays, and the engine expands it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.engine import _core

Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pass:
    """One pipelined movement of sections along a route of ranks.

    Section i is the bytes `lo[i]:hi[i]` of the buffer. It starts at position `start[i]` of the route, makes
    `reduce_hops` hops on which the receiver adds what arrives to its own data, then `copy_hops` hops on which it takes
    what arrives. A cyclic route closes; sections then run on past its end. Passes of one `channel` run in order over
    the same connections. `after` holds positions of earlier passes of the schedule that must be complete.

    `chunks` is the number of pieces in which a section is pipelined. `weight` is the pass's share where it competes for
    a port; by default its bytes, so that concurrent parts of one collective end together.
    """

    channel: int
    route: int
    lo: Int
    hi: Int
    start: Int
    reduce_hops: int
    copy_hops: int
    cyclic: bool = False
    chunks: int = 1
    after: tuple[int, ...] = ()
    weight: float | None = None

    @property
    def bytes(self) -> int:
        """Bytes of all sections together."""
        return int((self.hi - self.lo).sum())


@dataclass(frozen=True, eq=False)
class Schedule:
    """Passes over routes (arrays of ranks) that act on a buffer of `bytes` on each of `n_ranks` ranks."""

    n_ranks: int
    bytes: int
    routes: tuple[Int, ...]
    passes: tuple[Pass, ...]
    wire_factor: float = 1.0

    @cached_property
    def core(self) -> _core.Schedule:
        """The engine's copy.

        Raises:
            ValueError: the schedule is inconsistent; the message names the pass.
        """
        passes = self.passes
        return _core.Schedule(
            n_ranks=self.n_ranks,
            bytes=self.bytes,
            wire_factor=self.wire_factor,
            route_offsets=_offsets(self.routes),
            route_ranks=_joined(self.routes),
            channel=_ints([p.channel for p in passes]),
            route=_ints([p.route for p in passes]),
            cyclic=_ints([p.cyclic for p in passes]),
            reduce_hops=_ints([p.reduce_hops for p in passes]),
            copy_hops=_ints([p.copy_hops for p in passes]),
            chunks=_ints([p.chunks for p in passes]),
            weight=np.array([p.bytes if p.weight is None else p.weight for p in passes], dtype=np.float64),
            section_offsets=_offsets([p.lo for p in passes]),
            lo=_joined([p.lo for p in passes]),
            hi=_joined([p.hi for p in passes]),
            start=_joined([p.start for p in passes]),
            after_offsets=_offsets([p.after for p in passes]),
            after=_joined([_ints(p.after) for p in passes]),
        )

    def hops(self) -> set[tuple[int, int, int]]:
        """Every (channel, source rank, destination rank) that the schedule may use."""
        found: set[tuple[int, int, int]] = set()
        for channel, route, cyclic in {(p.channel, p.route, p.cyclic) for p in self.passes}:
            ranks = self.routes[route]
            ends = np.roll(ranks, -1) if cyclic else ranks[1:]
            found.update((channel, int(a), int(b)) for a, b in zip(ranks, ends, strict=False))
        return found


@dataclass
class ScheduleBuilder:
    """Collects passes; `add` returns the position of a pass, for the `after` of later ones."""

    n_ranks: int
    bytes: int
    chunk_bytes: int
    wire_factor: float = 1.0
    _routes: list[Int] = field(default_factory=list)
    _passes: list[Pass] = field(default_factory=list)
    _channels: int = 0

    def new_channel(self) -> int:
        """A channel number that nothing else uses."""
        self._channels += 1
        return self._channels - 1

    def route(self, ranks: Sequence[int] | Int) -> int:
        """Registers a route of ranks; passes refer to it by the number returned."""
        self._routes.append(np.asarray(ranks, dtype=np.int64))
        return len(self._routes) - 1

    def chain(
        self,
        channel: int,
        route: int,
        lo: int,
        hi: int,
        reduce_hops: int,
        copy_hops: int,
        after: Sequence[int] = (),
    ) -> int:
        """One section from the start of the route to its end."""
        bounds = np.array([lo, hi], dtype=np.int64)
        return self.sections(channel, route, bounds, np.zeros(1, dtype=np.int64), reduce_hops, copy_hops, after=after)

    def ring(
        self,
        channel: int,
        route: int,
        lo: int,
        hi: int,
        *,
        reduce: bool = True,
        copy: bool = True,
        after: Sequence[int] = (),
    ) -> int:
        """A ring over the route: section i starts at position i and goes round (n-1 hops) to reduce, and to copy.

        Both is AllReduce; reducing alone leaves section i on position i-1, copying alone starts from position i.
        """
        n = len(self._routes[route])
        bounds = pieces(lo, hi, n)
        hops = n - 1
        start = np.arange(n, dtype=np.int64)
        return self.sections(channel, route, bounds, start, hops * reduce, hops * copy, cyclic=True, after=after)

    def sections(
        self,
        channel: int,
        route: int,
        bounds: Int,
        start: Int,
        reduce_hops: int,
        copy_hops: int,
        *,
        cyclic: bool = False,
        after: Sequence[int] = (),
        weight: float | None = None,
    ) -> int:
        """Sections one after another: section i is bounds[i]:bounds[i+1], from position start[i] of the route on."""
        lo, hi = bounds[:-1], bounds[1:]
        return self.spans(
            channel, route, lo, hi, start, reduce_hops, copy_hops, cyclic=cyclic, after=after, weight=weight
        )

    def spans(
        self,
        channel: int,
        route: int,
        lo: Int,
        hi: Int,
        start: Int,
        reduce_hops: int,
        copy_hops: int,
        *,
        cyclic: bool = False,
        after: Sequence[int] = (),
        weight: float | None = None,
    ) -> int:
        """Any sections on one route: section i is lo[i]:hi[i] and starts at position start[i] of the route."""
        self._channels = max(self._channels, channel + 1)
        largest = int((hi - lo).max(initial=0))
        chunks = max(1, -(-largest // self.chunk_bytes))
        self._passes.append(
            Pass(channel, route, lo, hi, start, reduce_hops, copy_hops, cyclic, chunks, tuple(after), weight)
        )
        return len(self._passes) - 1

    def build(self) -> Schedule:
        """The schedule of all that was added."""
        return Schedule(self.n_ranks, self.bytes, tuple(self._routes), tuple(self._passes), self.wire_factor)


def pieces(lo: int, hi: int, n: int) -> Int:
    """n + 1 bounds that cut [lo, hi) into n parts; parts differ by at most one byte."""
    whole, rest = divmod(hi - lo, n)
    i = np.arange(n + 1, dtype=np.int64)
    return lo + whole * i + rest * i // n


def _ints(values: Sequence[int]) -> Int:
    return np.array(values, dtype=np.int64)


def _offsets(rows: Sequence[Sequence[int] | Int]) -> Int:
    return np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64)))


def _joined(rows: Sequence[Int]) -> Int:
    return np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]) if rows else _ints([])
