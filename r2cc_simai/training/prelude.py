"""What the ranks of a cell do until they meet those of others: simulated once for all cells that have lost the same."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.engine import _core
from r2cc_simai.training.cells import Cell, Cells, TraceColumns
from r2cc_simai.training.execute import Execution
from r2cc_simai.training.ranks import Ranks
from r2cc_simai.training.situation import Situation

Int = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prelude:
    """The run of a cell for itself, in which collectives of held groups never start.

    `class_of` (places,) is the class of each place, `pasts` what each class did. `met_s` (places, group roles) is when
    a rank came to its first collective of a held group, infinite where it never did. No transfer was under way at
    `quiet_s` (q,); by then each class had the times and roles of `quiet_classes` (q, classes, 5 + roles) behind it, in
    the order of the columns of `Iteration`, and each NIC the bytes of `quiet_nics` (q, nics, 4). At `stopped_s` the run
    was aborted, or ranks were left without a path; infinite where neither happened.
    """

    class_of: Int
    pasts: tuple[_core.Past, ...]
    met_s: Floats
    quiet_s: Floats
    quiet_classes: Floats
    quiet_nics: Floats
    notes: tuple[str, ...]
    stopped_s: float

    @property
    def bytes(self) -> int:
        """About what it takes in memory, with the engine's part."""
        tables = sum(table.nbytes for table in (self.met_s, self.quiet_classes, self.quiet_nics))
        return tables + sum(past.bytes for past in self.pasts)


def recorded(ranks: Ranks, cells: Cells, cell: Cell, situation: Situation) -> Prelude:
    """Simulates the prelude of a cell.

    Raises:
        PartitionedError: what is known leaves ranks of a group without a path.
    """
    mine = np.zeros(len(ranks), dtype=bool)
    mine[cell.rows] = True
    own = ranks.without(~mine)
    execution = Execution.of(situation, own)
    out = execution.run(record=tuple(range(len(own))), held=cells.held, quiet_nics=tuple(cell.nics.tolist()))
    times, classes, counts = out.quiet_points()
    # Nothing is left to happen once all wait for the held groups: "unfinished".
    stopped = out.network.status not in (_core.Status.DONE, _core.Status.UNFINISHED)
    first_s = float(times[0]) if len(times) else 0.0
    class_of = execution.classes.of_rank[np.argsort(own.rank, kind="stable")]
    deeds = _deeds(execution, cells, out.spans())
    met = np.array([one.met_s(own.groups.shape[1]) for one in deeds])
    return Prelude(
        class_of=class_of,
        pasts=tuple(one.past(first_s, situation.known_s) for one in deeds),
        met_s=np.where(cells.meets[cell.rows], met[class_of], np.inf),
        quiet_s=times,
        quiet_classes=classes,
        quiet_nics=counts,
        notes=tuple(execution.planner.notes),
        stopped_s=out.network.elapsed_s if stopped else np.inf,
    )


@dataclass(frozen=True, eq=False)
class _Deeds:
    """When the nodes of a class began and ended, NaN where they did not."""

    trace: TraceColumns
    start_s: Floats
    end_s: Floats

    def met_s(self, roles: int) -> Floats:
        """When all that the first collective of a role waits for had ended, (roles,)."""
        met = np.full(roles, np.inf)
        deps, at = self.trace.deps, self.trace.dep_offsets
        for role, node in self.trace.first_collective.items():
            ended = self.end_s[deps[at[node] : at[node + 1]]]
            met[role] = np.inf if np.isnan(ended).any() else ended.max(initial=0.0)
        return met

    def past(self, first_s: float, known_s: tuple[float, ...]) -> _core.Past:
        """What the engine has to know to go on at `first_s` or later."""
        ended = self.end_s <= first_s
        kept = ~ended
        kept[self.trace.deps[~ended[self.trace.waiting]]] = True  # how long what is ready has waited
        if known_s:  # which plans have been used
            moved = np.flatnonzero(ended & self.trace.communicates & (self.start_s >= known_s[0]))
            epoch = np.searchsorted(known_s, self.start_s[moved], side="right")
            looks = np.column_stack([*(look[moved] for look in self.trace.looks), epoch])
            kept[moved[np.unique(looks, axis=0, return_index=True)[1]]] = True
        nodes = np.flatnonzero(kept & ~np.isnan(self.end_s))
        return _core.Past(ended=ended, nodes=nodes, start_s=self.start_s[nodes], end_s=self.end_s[nodes])


def _deeds(execution: Execution, cells: Cells, spans: Floats) -> list[_Deeds]:
    """What each class did; `spans` are those of all."""
    traces = execution.ranks.trace_of[execution.classes.first_rank].tolist()
    lengths = [len(execution.ranks.traces[trace]) for trace in traces]
    first = np.cumsum([0, *lengths])
    node = first[spans[:, 0].astype(np.int64)] + spans[:, 1].astype(np.int64)
    start, end = (np.full(first[-1], np.nan) for _ in range(2))
    start[node], end[node] = spans[:, 2], spans[:, 3]
    return [
        _Deeds(cells.traces[trace], start[a:b], end[a:b])
        for trace, (a, b) in zip(traces, pairwise(first.tolist()), strict=True)
    ]
