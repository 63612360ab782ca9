"""A schedule as rounds of batched sends and receives, for a library that has nothing else.

Every message has a level: one more than the highest level of what must have ended before it, at either end. Both ends
post it in the round of its level, and a rank posts a round when the one before has ended on it. No message waits for
one of its own level or a higher one, so that whatever the order in which ranks get there, the lowest level that has
not ended can end: no deadlock. Pieces of a section at different hops share a level, which is the pipeline.

Bounds are in elements. Where a schedule cuts inside of one, the element goes with its last byte, everywhere alike.
"""

from dataclasses import dataclass

import numpy as np

from r2cc_simai.collectives.schedule import Int, Schedule
from r2cc_simai.errors import InputError
from r2cc_simai.exporters.messages import Bool, Messages, RankOps


@dataclass(frozen=True, eq=False)
class RankRounds:
    """The messages of one rank, sorted by round and then by tag; arrays have one entry per message.

    Round k is `offset[k]:offset[k + 1]`. A message holds elements `lo:hi`; a receive that is `reduce` is added to the
    rank's own, any other replaces them.
    """

    rank: int
    offset: Int
    send: Bool
    reduce: Bool
    lo: Int
    hi: Int
    peer: Int
    tag: Int

    @property
    def count(self) -> int:
        """Rounds."""
        return len(self.offset) - 1

    @property
    def staging(self) -> int:
        """Elements of the largest round's receives that are to be added."""
        size = np.where(self.reduce, self.hi - self.lo, 0)
        sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(size)))
        return int((sums[self.offset[1:]] - sums[self.offset[:-1]]).max(initial=0))


class Rounds:
    """The rounds of all ranks of a schedule, for elements of some bytes."""

    def __init__(self, schedule: Schedule, element_bytes: int, piece_bytes: int | None = None) -> None:
        """Levels every message. Messages are the schedule's chunks, or pieces of at most `piece_bytes`.

        Raises:
            InputError: the buffer is no whole number of elements.
        """
        if schedule.bytes % element_bytes:
            raise InputError(f"{schedule.bytes} bytes: no whole number of elements of {element_bytes} bytes")
        self.schedule = schedule
        self.element_bytes = element_bytes
        messages = Messages(schedule, piece_bytes)
        self.cuts: Int = messages.cuts
        self._ops = [messages.of_rank(rank) for rank in range(schedule.n_ranks)]
        self._level = _levels(self._ops, messages.count)

    def of_rank(self, rank: int) -> RankRounds:
        """The messages of one rank; those without an element are left out, at both ends alike."""
        ops = self._ops[rank]
        lo, hi = ops.lo // self.element_bytes, ops.hi // self.element_bytes
        kept = np.flatnonzero(hi > lo)
        level = self._level[ops.tag[kept]]
        order = kept[np.lexsort((ops.tag[kept], level))]
        bounds = np.searchsorted(np.sort(level), np.unique(level)).astype(np.int64)
        return RankRounds(
            rank=rank,
            offset=np.append(bounds, len(order)) if len(order) else np.zeros(1, dtype=np.int64),
            send=ops.send[order],
            reduce=ops.reduce[order],
            lo=lo[order],
            hi=hi[order],
            peer=ops.peer[order],
            tag=ops.tag[order],
        )


def _levels(ranks: list[RankOps], count: int) -> Int:
    """The level of each message, by tag: the longest chain of messages that must have ended before it."""
    waits: list[list[int]] = [[] for _ in range(count)]
    for ops in ranks:
        tags = ops.tag.tolist()
        offsets, positions = ops.waits_offset.tolist(), ops.waits.tolist()
        for op, tag in enumerate(tags):
            waits[tag] += [tags[one] for one in positions[offsets[op] : offsets[op + 1]]]
    missing = [len(before) for before in waits]
    after: list[list[int]] = [[] for _ in range(count)]
    for tag, before in enumerate(waits):
        for one in before:
            after[one].append(tag)
    level = np.zeros(count, dtype=np.int64)
    ready = [tag for tag in range(count) if not missing[tag]]
    for tag in ready:  # grows while it is read
        for then in after[tag]:
            level[then] = max(level[then], level[tag] + 1)
            missing[then] -= 1
            if not missing[then]:
                ready.append(then)
    if len(ready) < count:
        raise InputError("the schedule's messages wait for each other in a circle; run its checker")
    return level
