"""A schedule as messages: what each rank sends and receives, and what each of these must wait for on its own rank.

The order comes from the data alone. On a rank, the operations that touch the same bytes (a receive writes them, a send
reads them) run in the order of the schedule; operations on different bytes, and two sends of the same bytes, are free.
What `after` says beyond that (a pass that waits for another with which it shares no bytes) is not a message and is
left out: it is about time, not about the result.

Everything is arrays: a ring over 1,024 ranks is two million messages and no Python object for any of them.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.collectives.schedule import Int, Schedule

Bool = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RankOps:
    """The sends and receives of one rank, in an order in which they may run; arrays have one entry per operation.

    `send` tells a send from a receive; a receive that is `reduce` adds what arrives to the rank's own bytes `lo:hi`,
    any other replaces them. `tag` is the number of the message, the same at both ends and unique in the schedule.
    `hop` counts from the start of the section's way in pass `pass_`. `before` is the operation of the same section
    that comes before on this rank (-1: none); operation i waits for `waits[waits_offset[i]:waits_offset[i + 1]]`,
    positions of earlier operations, `before` included.
    """

    rank: int
    send: Bool
    reduce: Bool
    lo: Int
    hi: Int
    peer: Int
    channel: Int
    pass_: Int
    hop: Int
    tag: Int
    before: Int
    waits_offset: Int
    waits: Int

    def waits_of(self, op: int) -> Int:
        """Operations that must have ended before operation `op` starts."""
        return self.waits[self.waits_offset[op] : self.waits_offset[op + 1]]


class Messages:
    """All messages of a schedule, handed out rank by rank.

    Sections travel in the schedule's chunks, or in pieces of at most `piece_bytes` where that is given (0: whole).
    """

    def __init__(self, schedule: Schedule, piece_bytes: int | None = None) -> None:
        self.schedule = schedule
        self._piece_bytes = piece_bytes
        self._collect_sections()
        self._collect_hops()

    def _collect_sections(self) -> None:
        lo, hi, owner, counts = [], [], [], []
        for number, one in enumerate(self.schedule.passes):
            if one.reduce_hops + one.copy_hops == 0:
                continue
            some = one.hi > one.lo
            lo.append(one.lo[some])
            hi.append(one.hi[some])
            owner.append(np.full(int(some.sum()), number, dtype=np.int64))
            counts.append(self._pieces(lo[-1], hi[-1], one.chunks))
        empty = np.zeros(0, dtype=np.int64)
        self._lo, self._hi, self._pass, self._count = (np.concatenate([empty, *x]) for x in (lo, hi, owner, counts))
        hops = np.array([p.reduce_hops + p.copy_hops for p in self.schedule.passes], dtype=np.int64)
        self._reduce_hops = np.array([p.reduce_hops for p in self.schedule.passes], dtype=np.int64)
        self._channel = np.array([p.channel for p in self.schedule.passes], dtype=np.int64)
        self._hops = hops[self._pass]
        self._tag = _starts(self._count * self._hops)
        self._first = _starts(self._count)
        self._cut_pieces()

    def _pieces(self, lo: Int, hi: Int, chunks: int) -> Int:
        most = np.full(len(lo), chunks, dtype=np.int64)
        if self._piece_bytes is not None:
            most = -(-(hi - lo) // self._piece_bytes) if self._piece_bytes else np.ones(len(lo), dtype=np.int64)
        count: Int = np.minimum(hi - lo, most)
        return count

    def _cut_pieces(self) -> None:
        section = np.repeat(np.arange(len(self._lo)), self._count)
        i = np.arange(len(section)) - self._first[:-1][section]
        whole, rest = np.divmod(self._hi - self._lo, self._count)
        whole, rest, count = whole[section], rest[section], self._count[section]
        base = self._lo[section]
        self._piece_lo = base + whole * i + rest * i // count
        self._piece_hi = base + whole * (i + 1) + rest * (i + 1) // count
        self.cuts: Int = np.unique(np.concatenate(([0, self.schedule.bytes], self._piece_lo, self._piece_hi)))

    def _collect_hops(self) -> None:
        section, hop, src, dst = [], [], [], []
        base = 0
        for one in self.schedule.passes:
            hops = one.reduce_hops + one.copy_hops
            if hops == 0:
                continue
            route = self.schedule.routes[one.route].astype(np.int32)
            start = one.start[one.hi > one.lo]
            at = (start[None, :] + np.arange(hops)[:, None]) % len(route)
            section.append(np.tile(np.arange(base, base + len(start), dtype=np.int32), hops))
            hop.append(np.repeat(np.arange(hops, dtype=np.int32), len(start)))
            src.append(route[at].reshape(-1))
            dst.append(route[(at + 1) % len(route)].reshape(-1))
            base += len(start)
        empty = np.zeros(0, dtype=np.int32)
        self._section, self._hop, self._src, self._dst = (np.concatenate([empty, *x]) for x in (section, hop, src, dst))
        self._by_src = np.argsort(self._src, kind="stable").astype(np.int64)
        self._by_dst = np.argsort(self._dst, kind="stable").astype(np.int64)
        ranks = np.arange(self.schedule.n_ranks + 1)
        self._src_offset = np.searchsorted(self._src[self._by_src], ranks)
        self._dst_offset = np.searchsorted(self._dst[self._by_dst], ranks)

    @property
    def count(self) -> int:
        """Messages of all ranks together; tags lie below it."""
        return int(self._tag[-1])

    @property
    def longest(self) -> int:
        """Bytes of the longest message."""
        return int((self._piece_hi - self._piece_lo).max(initial=0))

    def of_rank(self, rank: int) -> RankOps:
        """The operations of one rank."""
        sends = self._by_src[self._src_offset[rank] : self._src_offset[rank + 1]]
        receives = self._by_dst[self._dst_offset[rank] : self._dst_offset[rank + 1]]
        entry = np.concatenate((sends, receives))
        is_send = np.arange(len(entry)) < len(sends)
        section, hop = self._section[entry].astype(np.int64), self._hop[entry].astype(np.int64)
        # A section leaves at hop h + 1 after it has come at hop h; within a hop the order is that of the sections.
        longest = int(self._hops.max(initial=0)) + 1
        order = np.argsort(self._pass[section] * 2 * longest + 2 * hop + ~is_send, kind="stable")
        entry, is_send, section, hop = entry[order], is_send[order], section[order], hop[order]
        peer = np.where(is_send, self._dst[entry], self._src[entry]).astype(np.int64)

        count = self._count[section]
        op = np.repeat(np.arange(len(entry)), count)
        within = np.arange(len(op)) - _starts(count)[:-1][op]
        section, hop = section[op], hop[op]
        piece = self._first[section] + within
        number = self._pass[section]
        send = is_send[op]
        before = _previous(piece)
        lo, hi = self._piece_lo[piece], self._piece_hi[piece]
        offset, waits = _waits(before, piece, lo, hi, send, self.cuts)
        return RankOps(
            rank=rank,
            send=send,
            reduce=~send & (hop < self._reduce_hops[number]),
            lo=lo,
            hi=hi,
            peer=peer[op],
            channel=self._channel[number],
            pass_=number,
            hop=hop,
            tag=self._tag[section] + within * self._hops[section] + hop,
            before=before,
            waits_offset=offset,
            waits=waits,
        )


def _starts(counts: Int) -> Int:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)))


def _previous(piece: Int) -> Int:
    """For each operation the one before on the same piece, -1 where there is none."""
    order = np.argsort(piece, kind="stable")
    before = np.full(len(piece), -1, dtype=np.int64)
    if len(piece):
        same = piece[order[1:]] == piece[order[:-1]]
        before[order[1:][same]] = order[:-1][same]
    return before


def _waits(before: Int, piece: Int, lo: Int, hi: Int, send: Bool, cuts: Int) -> tuple[Int, Int]:
    """The waits of all operations, as offsets and a flat list: the one before on the piece, and earlier pieces."""
    others = _between_pieces(piece, lo, hi, send, cuts)
    own = before >= 0
    counts = own.astype(np.int64)
    for op, found in others.items():
        counts[op] += len(found)
    offset = _starts(counts)
    waits = np.zeros(int(offset[-1]), dtype=np.int64)
    waits[offset[:-1][own]] = before[own]
    for op, found in others.items():  # the first operation on its piece: it has no `before`
        waits[offset[op] : offset[op + 1]] = found
    return offset, waits


def _between_pieces(piece: Int, lo: Int, hi: Int, send: Bool, cuts: Int) -> dict[int, list[int]]:
    """What the first operation of a piece waits for where earlier passes have touched the same bytes.

    A piece that is only sent waits for the last writes to its bytes; one that is written, for all that came before.
    """
    order = np.argsort(piece, kind="stable")
    edges = np.flatnonzero(np.diff(piece[order], prepend=-1, append=-1)).tolist() if len(piece) else []
    first = order[edges[:-1]] if edges else order
    by_lo = np.argsort(lo[first], kind="stable")
    reach = np.maximum.accumulate(hi[first][by_lo])
    if not np.any(lo[first][by_lo][1:] < reach[:-1]):
        return {}
    last_write: dict[int, int] = {}
    open_ends: dict[int, list[int]] = {}  # per cell what the next write must wait for
    waits: dict[int, list[int]] = {}
    starts, ends = np.searchsorted(cuts, lo[first]).tolist(), np.searchsorted(cuts, hi[first]).tolist()
    for (a, b), start, end in zip(pairwise(edges), starts, ends, strict=True):
        ops = order[a:b]
        writes = ops[~send[ops]]
        write = int(writes[-1]) if len(writes) else -1
        found: set[int] = set()
        for cell in range(start, end):
            if write >= 0:
                found.update(open_ends.get(cell, ()))
                open_ends[cell] = [int(ops[-1])]
                last_write[cell] = write
            else:
                if cell in last_write:
                    found.add(last_write[cell])
                open_ends.setdefault(cell, []).append(int(ops[-1]))
        if found:
            waits[int(ops[0])] = sorted(found)
    return waits
