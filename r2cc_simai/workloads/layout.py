"""Which rank does what: parallel coordinates and communicator groups in Megatron-Core's rank order.

The order is "tp-cp-ep-dp-pp": tensor-parallel neighbours have consecutive ranks, then come context-parallel ones, then
data-parallel ones, and pipeline stages are farthest apart. Experts divide the ranks of a stage anew: expert tensor
parallelism fastest, then expert parallelism, and what is left are replicas of the experts.
Source: Megatron-LM, megatron/core/parallel_state.py, RankGenerator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from r2cc_simai.workloads.program import NONE, Int

KINDS = (
    "tp",  # tensor parallel
    "cp",  # context parallel
    "dp",  # data parallel: the same parameters, the same part of the sequence
    "dp_cp",  # data and context parallel together: all replicas of a dense parameter
    "ep",  # expert parallel: tokens go to the experts' ranks
    "expert_tp",  # tensor parallel within an expert
    "expert_dp",  # all replicas of an expert parameter
    "embedding",  # first and last stage: both hold the tied embedding
    "model",  # tensor and pipeline parallel together: one replica of the model
    "world",  # all ranks
)


@dataclass(frozen=True)
class ParallelSizes:
    """Sizes of the parallel dimensions of a job; `expert_tp` x `ep` has to divide `tp` x `cp` x `dp`."""

    tp: int = 1
    cp: int = 1
    dp: int = 1
    pp: int = 1
    ep: int = 1
    expert_tp: int = 1

    @property
    def ranks(self) -> int:
        """Ranks of the job."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def stage_ranks(self) -> int:
        """Ranks of one pipeline stage."""
        return self.tp * self.cp * self.dp

    @property
    def expert_dp(self) -> int:
        """Replicas of an expert."""
        return self.stage_ranks // (self.expert_tp * self.ep)

    def group_size(self, kind: str) -> int:
        """Ranks of a communicator group of this kind (see KINDS)."""
        sizes = {
            "tp": self.tp,
            "cp": self.cp,
            "dp": self.dp,
            "dp_cp": self.dp * self.cp,
            "ep": self.ep,
            "expert_tp": self.expert_tp,
            "expert_dp": self.expert_dp,
            "embedding": min(self.pp, 2),
            "model": self.tp * self.pp,
            "world": self.ranks,
        }
        return sizes[kind]


@dataclass(frozen=True)
class GroupTable:
    """Communicator groups, and which of them each rank means by "my k-th group"."""

    roles: tuple[str, ...]
    """Kind of each role."""
    groups: tuple[tuple[int, ...], ...]
    """Members of each group, ascending."""
    kinds: tuple[str, ...]
    """Kind of each group."""
    rank_groups: Int
    """Shape (ranks, roles): index into `groups`, or -1."""


def stage_of_rank(sizes: ParallelSizes) -> Int:
    """Pipeline stage of every rank; shape (ranks,)."""
    return np.arange(sizes.ranks) // sizes.stage_ranks


def replica_of_rank(sizes: ParallelSizes) -> Int:
    """Data-parallel coordinate of every rank; shape (ranks,)."""
    return np.arange(sizes.ranks) // (sizes.tp * sizes.cp) % sizes.dp


def groups_of_kind(sizes: ParallelSizes, kind: str) -> Int:
    """All groups of a kind; shape (groups, members), members ascending."""
    pp, dp, cp, tp = range(4)
    grid = np.arange(sizes.ranks).reshape(sizes.pp, sizes.dp, sizes.cp, sizes.tp)
    dense = {"tp": (tp,), "cp": (cp,), "dp": (dp,), "dp_cp": (dp, cp), "model": (pp, tp), "world": (pp, dp, cp, tp)}
    if kind in dense:
        return _along(grid, dense[kind])
    if kind == "embedding":
        return _along(grid[[0, -1]] if sizes.pp > 1 else grid, (pp,))
    experts = np.arange(sizes.ranks).reshape(sizes.pp, sizes.expert_dp, sizes.ep, sizes.expert_tp)
    return _along(experts, {"expert_dp": (1,), "ep": (2,), "expert_tp": (3,)}[kind])


def _along(grid: Int, axes: tuple[int, ...]) -> Int:
    """The groups of ranks that differ along `axes` only; axes in descending distance of ranks."""
    others = tuple(axis for axis in range(grid.ndim) if axis not in axes)
    members = int(np.prod([grid.shape[axis] for axis in axes]))
    return grid.transpose(*others, *axes).reshape(-1, members)


def group_table(sizes: ParallelSizes, kinds: Sequence[str]) -> GroupTable:
    """The groups of `kinds`, one role for each kind; a kind whose groups have one member has neither."""
    roles = tuple(kind for kind in kinds if sizes.group_size(kind) > 1)
    table = np.full((sizes.ranks, len(roles)), NONE, dtype=np.int64)
    groups: list[tuple[int, ...]] = []
    names: list[str] = []
    for role, kind in enumerate(roles):
        members = groups_of_kind(sizes, kind)
        table[members, role] = len(groups) + np.arange(len(members))[:, None]
        groups += map(tuple, members.tolist())
        names += [kind] * len(members)
    return GroupTable(roles, tuple(groups), tuple(names), table)


NEXT_STAGE, PREVIOUS_STAGE, NEXT_CONTEXT, PREVIOUS_CONTEXT = range(4)
"""Roles of peers."""


def peer_table(sizes: ParallelSizes) -> Int:
    """Neighbours of every rank, cyclic; shape (ranks, 4), a column for each role above, -1 where it has none."""
    grid = np.arange(sizes.ranks).reshape(sizes.pp, sizes.dp, sizes.cp, sizes.tp)
    columns = [np.roll(grid, shift, axis).ravel() for axis in (0, 2) for shift in (-1, 1)]
    table = np.stack(columns, axis=1)
    table[table == np.arange(sizes.ranks)[:, None]] = NONE
    return table
