"""A schedule and its binding as the ordered units of every stream of a rank.

A stream is one lane of a hop: (channel, source, destination, NIC pair). Its units, pieces of at most `unit_bytes`, are
numbered in the order of the schedule. Where a hop has several lanes its units are dealt one by one to the lane that has
had the least for its share, the engine's rule; both ends so agree.

What a unit waits for on its rank: earlier operations on the same bytes, and `after`: passes that have to be complete.
A rank knows of its own part of a pass alone, as NCCL knows its own kernels, and waits for that.

The bytes of a schedule are cut anywhere. An element belongs to a section if its last byte does, which keeps whatever
sections have in common (they part and cover elements as they part and cover bytes).
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from r2cc_simai.collectives.binding import Binding
from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.errors import InputError
from r2cc_simai.exporters.messages import Messages, RankOps

NicPair = tuple[int, int]
Hop = tuple[int, int, int]  # channel, source rank, destination rank


@dataclass(frozen=True, eq=False)
class StreamUnits:
    """A stream as one of its ends sees it: `ops` are positions in the rank's operations. Inside a server it has no
    NICs."""

    channel: int
    src: int
    dst: int
    lane: int
    nics: NicPair | None
    ops: list[int]

    def __str__(self) -> str:
        return f"channel {self.channel}, rank {self.src} to rank {self.dst}"


@dataclass(frozen=True, eq=False)
class RankUnits:
    """All operations of a rank, in an order in which they may run; lists have one entry per operation.

    `lo`, `hi`: elements. `waits`: how many operations each waits for; `dependents`: who waits for it. `pass_` numbers
    the operation's pass; pass p has `pass_sizes[p]` operations here and opens once `pass_waits[p]` other passes are
    complete here; `pass_dependents[p]` wait for it.
    """

    lo: list[int]
    hi: list[int]
    reduce: list[bool]
    pass_: list[int]
    waits: list[int]
    dependents: list[list[int]]
    pass_sizes: list[int]
    pass_waits: list[int]
    pass_dependents: list[list[int]]
    sends: list[StreamUnits]
    receives: list[StreamUnits]


def in_elements(schedule: Schedule, item_bytes: int) -> Schedule:
    """The same schedule on elements in place of bytes.

    Raises:
        InputError: the buffer is no whole number of elements.
    """
    if schedule.bytes % item_bytes:
        raise InputError(f"lab: a buffer of {schedule.bytes} bytes is no whole number of elements of {item_bytes}")
    passes = tuple(replace(p, lo=p.lo // item_bytes, hi=p.hi // item_bytes) for p in schedule.passes)
    return replace(schedule, bytes=schedule.bytes // item_bytes, passes=passes)


def units_of_rank(elements: Schedule, binding: Binding, servers: tuple[int, ...], rank: int, most: int) -> RankUnits:
    """What a rank does in a schedule on elements, in units of at most `most` elements; `servers[r]`: rank r's server.

    Raises:
        InputError: a hop between servers has no NICs.
    """
    ops = Messages(elements, most).of_rank(rank)
    lanes = _lanes(binding)
    sends = _streams(ops, lanes, servers, send=True)
    receives = _streams(ops, lanes, servers, send=False)
    dependents: list[list[int]] = [[] for _ in ops.lo]
    waiting = np.repeat(np.arange(len(ops.lo)), np.diff(ops.waits_offset))
    for first, then in zip(ops.waits.tolist(), waiting.tolist(), strict=True):
        dependents[first].append(then)
    sizes = np.bincount(ops.pass_, minlength=len(elements.passes)).tolist()
    pass_waits, pass_dependents = _gates(elements, sizes)
    return RankUnits(
        lo=ops.lo.tolist(),
        hi=ops.hi.tolist(),
        reduce=ops.reduce.tolist(),
        pass_=ops.pass_.tolist(),
        waits=np.diff(ops.waits_offset).tolist(),
        dependents=dependents,
        pass_sizes=sizes,
        pass_waits=pass_waits,
        pass_dependents=pass_dependents,
        sends=sends,
        receives=receives,
    )


def _gates(schedule: Schedule, sizes: list[int]) -> tuple[list[int], list[list[int]]]:
    """For every pass the number of passes that it waits for on this rank, and those that wait for it."""
    dependents: list[list[int]] = [[] for _ in schedule.passes]
    waits = []
    for number, one in enumerate(schedule.passes):
        before = {p for p in one.after if sizes[p]} if sizes[number] else set()
        waits.append(len(before))
        for p in before:
            dependents[p].append(number)
    return waits, dependents


def _lanes(binding: Binding) -> dict[Hop, list[tuple[NicPair, float]]]:
    lanes: dict[Hop, list[tuple[NicPair, float]]] = defaultdict(list)
    columns = (binding.channel, binding.src, binding.dst, binding.src_nic, binding.dst_nic, binding.share)
    for channel, src, dst, src_nic, dst_nic, share in zip(*(c.tolist() for c in columns), strict=True):
        lanes[channel, src, dst].append(((src_nic, dst_nic), share))
    return lanes


def _streams(
    ops: RankOps, lanes: dict[Hop, list[tuple[NicPair, float]]], servers: tuple[int, ...], *, send: bool
) -> list[StreamUnits]:
    """The streams of all hops in one direction."""
    of_hop: dict[Hop, list[int]] = defaultdict(list)
    for op in np.nonzero(ops.send == send)[0].tolist():
        peer = int(ops.peer[op])
        ends = (ops.rank, peer) if send else (peer, ops.rank)
        of_hop[int(ops.channel[op]), *ends].append(op)
    streams: list[StreamUnits] = []
    for hop, own in sorted(of_hop.items()):
        if servers[hop[1]] == servers[hop[2]]:
            streams.append(StreamUnits(*hop, 0, None, own))
        elif hop not in lanes:
            raise InputError(f"lab: channel {hop[0]}, rank {hop[1]} to rank {hop[2]}: no NICs are bound to it")
        else:
            sizes = (ops.hi - ops.lo)[own].tolist()
            dealt = deal(own, sizes, [share for _, share in lanes[hop]])
            streams += [
                StreamUnits(*hop, lane, nics, units)
                for lane, ((nics, _), units) in enumerate(zip(lanes[hop], dealt, strict=True))
                if units
            ]
    return streams


def deal(ops: list[int], sizes: list[int], shares: list[float]) -> list[list[int]]:
    """Each operation to the lane that has had the least for its share, the first of equals."""
    had = [0.0] * len(shares)
    dealt: list[list[int]] = [[] for _ in shares]
    for op, size in zip(ops, sizes, strict=True):
        lane = min(range(len(shares)), key=lambda k: had[k] / shares[k])
        had[lane] += size
        dealt[lane].append(op)
    return dealt
