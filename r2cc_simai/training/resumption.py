"""Cuts an iteration in two: what cells do for themselves, known from their preludes, and what follows.

The second part begins for each cell at the last time at which none of its transfers was under way before ranks of two
cells can first have met, or the job was aborted. So nothing that the first part holds can depend on another cell. Cells
of which no such time is kept start with the iteration.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.engine import _core
from r2cc_simai.training.cells import Cells, cells_of
from r2cc_simai.training.execute import Execution, Start
from r2cc_simai.training.plan_store import is_local
from r2cc_simai.training.prelude_store import PRELUDES, Seen
from r2cc_simai.training.ranks import Ranks

Floats = NDArray[np.float64]
FEW = 64
"""Classes that are simulated sooner than it is found out what might be known of them."""


@dataclass(frozen=True, eq=False)
class Resumption:
    """Where the classes of an execution go on, and what lies behind them.

    `classes` (classes, 5 + roles) has the times of each class so far, in the order of the columns of `Iteration`;
    `nics` (NICs, 4) the bytes of each NIC: on the wire out and in, and payload.
    """

    start: Start
    classes: Floats
    nics: Floats
    notes: tuple[str, ...]


def resumption_of(execution: Execution) -> Resumption | None:
    """Where an execution can go on from the preludes of its cells; None: they would not make it shorter, or not exact.

    Raises:
        PartitionedError: what is known leaves ranks of a group without a path.
    """
    ranks, situation = execution.ranks, execution.situation
    cluster = situation.views[0].cluster
    count = len(execution.classes.first_rank)
    if count <= FEW or cluster.draws_detection or not is_local(situation.strategy):
        return None
    cells = cells_of(ranks, cluster)
    if cells is None or count <= max(len(cell.rows) for cell in cells.cells):
        return None
    seen = [PRELUDES.seen(ranks, cells, cell, situation) for cell in cells.cells]
    if not _alike(execution, cells, seen):
        return None
    until_s = min(_first_meeting(ranks, cells, seen), *(one.prelude.stopped_s for one in seen))
    points = [int(np.searchsorted(one.prelude.quiet_s, until_s, side="right")) - 1 for one in seen]
    return _resumption(execution, cells, seen, points)


def _alike(execution: Execution, cells: Cells, seen: list[Seen]) -> bool:
    """Whether all ranks of a class did the same, and so go on at the same time."""
    number = {id(prelude): k for k, prelude in enumerate(dict.fromkeys(one.prelude for one in seen))}
    did = np.empty((len(execution.ranks), 2), dtype=np.int64)
    for cell, one in zip(cells.cells, seen, strict=True):
        did[cell.rows, 0] = number[id(one.prelude)]
        did[cell.rows, 1] = one.prelude.class_of[one.move.places]
    classes = execution.classes
    return bool((did == did[classes.first_rank][classes.of_rank]).all())


def _first_meeting(ranks: Ranks, cells: Cells, seen: list[Seen]) -> float:
    """When all members of a held group have first come to a collective of it."""
    met = np.empty(ranks.groups.shape)
    for cell, one in zip(cells.cells, seen, strict=True):
        met[cell.rows] = one.prelude.met_s[one.move.places]
    rows, roles = np.nonzero(cells.meets)
    last = np.full(len(ranks.members), -np.inf)
    np.maximum.at(last, ranks.groups[rows, roles], met[rows, roles])
    return float(last[last > -np.inf].min())


def _resumption(execution: Execution, cells: Cells, seen: list[Seen], points: list[int]) -> Resumption:
    roles = execution.ranks.groups.shape[1] + execution.ranks.peers.shape[1]
    rows = execution.classes.first_rank.tolist()
    pasts: list[_core.Past | None] = []
    resume_s, behind = np.zeros(len(rows)), np.zeros((len(rows), 5 + roles))
    for k, row in enumerate(rows):
        number = int(cells.of_rank[row])
        prelude, move, point = seen[number].prelude, seen[number].move, points[number]
        own = int(prelude.class_of[move.places[cells.place[row]]])
        pasts.append(prelude.pasts[own] if point >= 0 else None)
        if point >= 0:
            resume_s[k], behind[k] = prelude.quiet_s[point], prelude.quiet_classes[point, own]
    nics = np.zeros((len(execution.situation.cluster.nics), 4))
    for cell, one, point in zip(cells.cells, seen, points, strict=True):
        if point >= 0:
            nics[cell.nics] = one.prelude.quiet_nics[point, one.move.nics]
    notes = dict.fromkeys(note for one in seen for note in one.prelude.notes)
    return Resumption(Start(tuple(pasts), resume_s), behind, nics, tuple(notes))
