"""Preludes that are kept from run to run, one for all cells whose failures the cell's rails carry into each other."""

from dataclasses import dataclass, replace
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.view import View
from r2cc_simai.failures.timeline import Event
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Strategy
from r2cc_simai.strategies.hot_repair import HotRepair
from r2cc_simai.strategies.ideal import Ideal
from r2cc_simai.strategies.nccl import Nccl
from r2cc_simai.strategies.nccl_failover import NcclFailover
from r2cc_simai.training.cells import Cell, CellMove, Cells
from r2cc_simai.training.prelude import Prelude, recorded
from r2cc_simai.training.ranks import Ranks
from r2cc_simai.training.situation import Situation

Int = NDArray[np.int64]
MOST_BYTES = 256 << 20
"""About how much memory the preludes of a process may take; those that were not asked for longest go first."""
_ON_ANY_RAIL = (Ideal, HotRepair, NcclFailover, Nccl, Balance)
"""Strategies to whose plans all rails are alike, whatever has failed. To those of the others that is so for messages
and within a server."""


@dataclass(frozen=True, eq=False)
class Seen:
    """A prelude, and by which places in it the ranks and NICs of a cell go."""

    prelude: Prelude
    move: CellMove


@dataclass(frozen=True)
class _Key:
    """All that a prelude depends on: `lost` are NICs by their place in the cell, and what each has left in each view;
    `events` (seconds, place, fraction, component)."""

    kind: int
    strategy: Strategy
    resume_delay_s: float
    known_s: tuple[float, ...]
    lost: tuple[tuple[int, tuple[float, ...]], ...]
    events: tuple[tuple[float, int, float, str], ...]


class PreludeStore:
    """Preludes of jobs, in at most about `most_bytes` of memory, as long as the job is in memory.

    `made` counts those that had to be simulated, `bytes` is what those that are kept take.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[tuple[int, _Key], tuple[ref[Ranks], Prelude]] = {}
        self.bytes = 0
        self.made = 0

    def seen(self, ranks: Ranks, cells: Cells, cell: Cell, situation: Situation) -> Seen:
        """The prelude of a cell.

        Raises:
            PartitionedError: what is known leaves ranks of a group without a path.
        """
        moves = cells.moves[cell.kind]
        if cells.joined[cell.kind] and not isinstance(situation.strategy, _ON_ANY_RAIL):
            moves = moves[:1]
        key, move = _canonical(cell, situation, moves)
        place = id(ranks), key
        known, prelude = self._kept.pop(place, (None, None))
        if known is None or prelude is None or known() is not ranks:  # another job may have had the same number
            first = next(one for one in cells.cells if one.kind == cell.kind)
            self.bytes -= prelude.bytes if prelude is not None else 0
            prelude = recorded(ranks, cells, first, _moved(situation, cell, first, move))
            self.made += 1
            self.bytes += prelude.bytes
            self._forget([old for old, (whose, _) in self._kept.items() if whose() is None])
        self._kept[place] = ref(ranks), prelude  # the last of them
        while self.bytes > self._most_bytes and len(self._kept) > 1:
            self._forget([next(iter(self._kept))])
        return Seen(prelude, move)

    def _forget(self, places: list[tuple[int, _Key]]) -> None:
        for place in places:
            self.bytes -= self._kept.pop(place)[1].bytes


def _canonical(cell: Cell, situation: Situation, moves: tuple[CellMove, ...]) -> tuple[_Key, CellMove]:
    """The least of the keys that moves make of what a cell meets, and the move that makes it."""
    place = {nic: k for k, nic in enumerate(cell.nics.tolist())}
    events = [(e.time_s, place[e.nic], e.fraction, str(e.component)) for e in situation.events if e.nic in place]
    left = np.array([view.fractions[cell.nics] for view in situation.views])
    lost = [(k, tuple(left[:, k].tolist())) for k in np.flatnonzero((left < 1).any(axis=0)).tolist()]
    best = None
    for move in moves if events or lost else moves[:1]:
        to = move.nics.tolist()
        found = (
            tuple(sorted((to[k], fractions) for k, fractions in lost)),
            tuple(sorted((time_s, to[k], fraction, part) for time_s, k, fraction, part in events)),
        )
        if best is None or found < best[0]:
            best = found, move
    assert best is not None
    own = situation.strategy, situation.cluster.resume_delay_s, situation.known_s
    return _Key(cell.kind, *own, *best[0]), best[1]


def _moved(situation: Situation, cell: Cell, first: Cell, move: CellMove) -> Situation:
    """What the cell meets as it would happen to another one of its kind, with nothing elsewhere."""
    to = dict(zip(cell.nics.tolist(), first.nics[move.nics].tolist(), strict=True))
    events = [replace(e, nic=to[e.nic]) for e in situation.events if e.nic in to]
    views = []
    for view in situation.views:
        fraction = np.ones(len(view.fraction))
        fraction[first.nics[move.nics]] = view.fractions[cell.nics]
        views.append(View(view.cluster, tuple(fraction.tolist())))
    return replace(situation, events=tuple(sorted(events, key=_order)), views=tuple(views))


def _order(event: Event) -> tuple[float, int]:
    return event.time_s, event.nic


PRELUDES = PreludeStore()
"""The preludes that this process keeps."""
