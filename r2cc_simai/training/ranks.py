"""Which ranks take part in a job, what each does, and in which groups: the simulation's view of a trace.

The tables are those of `chakra.folder.TraceSet` and of `workloads.program.Workload`: a rank's groups and peers by role.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.chakra.folder import TraceSet
from r2cc_simai.chakra.schema import NodeType
from r2cc_simai.engine._core import Trace
from r2cc_simai.workloads.gpus import Gpu

Int = NDArray[np.int64]
NONE = -1


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of a job. `rank` maps a row of the tables to a GPU of the cluster, shape (n,).

    `traces` has one entry per class, `trace_of` (n,) says which is whose. `groups` (n, roles) and `peers` (n, roles)
    are numbers of `members` and rows of these tables, -1 where the role is not there. `gpu` times compute nodes
    that have no duration; None: they take no time.
    """

    traces: tuple[Trace, ...]
    trace_of: Int
    groups: Int
    peers: Int
    members: tuple[Int, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    rank: Int
    gpu: Gpu | None = None

    def __len__(self) -> int:
        return len(self.rank)

    @cached_property
    def group_sizes(self) -> Int:
        """Members of each group, shape (n_groups,)."""
        return np.array([len(m) for m in self.members], dtype=np.int64)

    def without(self, dropped: NDArray[np.bool_]) -> "Ranks":
        """The job when some of its ranks are gone; groups shrink, and a message to a rank that is gone is an error.

        Raises:
            ValueError: a rank that stays sends to one that does not, or receives from it.
        """
        keep = np.flatnonzero(~dropped)
        row = np.full(len(self) + 1, NONE, dtype=np.int64)
        row[keep] = np.arange(len(keep))
        peers = np.where(self.peers[keep] == NONE, NONE, row[self.peers[keep]])
        if ((peers == NONE) & (self.peers[keep] != NONE)).any():
            raise ValueError("a rank that stays exchanges messages with one that is dropped")
        members = tuple(row[m][row[m] != NONE] for m in self.members)
        return replace(
            self,
            trace_of=self.trace_of[keep],
            groups=self.groups[keep],
            peers=peers,
            members=members,
            rank=self.rank[keep],
        )

    @cached_property
    def untimed(self) -> int:
        """Compute nodes of all traces that have no duration."""
        return sum(int(((t.type == NodeType.COMP) & (t.duration_s == 0)).sum()) for t in self.traces)


def as_wholes(before: Int, after: Int) -> bool:
    """Whether groups become groups of the same role as wholes where ranks with the groups `before` (n, roles) become
    ranks with the groups `after`."""
    for a, b in zip(before.T, after.T, strict=True):
        pairs = np.unique(np.column_stack((a, b)), axis=0)
        if not len(pairs) == len(np.unique(a)) == len(np.unique(b)):
            return False
    return True


def ranks_of(traces: TraceSet, gpu: Gpu | None = None) -> Ranks:
    """All ranks of a trace, rank k on GPU k."""
    return Ranks(
        traces=traces.classes,
        trace_of=traces.rank_class,
        groups=traces.rank_groups,
        peers=traces.rank_peers,
        members=tuple(np.array(group, dtype=np.int64) for group in traces.groups),
        names=tuple(str(number) for number in traces.group_ids),
        kinds=traces.group_kind,
        rank=np.arange(traces.n_ranks, dtype=np.int64),
        gpu=gpu,
    )
