"""Which rank of a serving deployment does what: vLLM's rank order, communicator groups and neighbours.

Tensor-parallel neighbours have consecutive ranks, then come pipeline stages, and replicas are farthest apart
("dp-pp-tp"). Experts are divided over the tensor-parallel ranks of a stage in all replicas.
Source: vLLM, vllm/distributed/parallel_state.py, initialize_model_parallel; fused_moe/config.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from r2cc_simai.workloads.layout import GroupTable
from r2cc_simai.workloads.program import NONE, Int

Layers = range
"""Layers, counted from 0, of a pipeline stage."""


@dataclass(frozen=True)
class ServingSizes:
    """A set of replicas that serve one model; those of a mixture-of-experts model share their experts."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    expert_parallel: bool = False

    @property
    def ranks(self) -> int:
        """Ranks of all replicas."""
        return self.tp * self.pp * self.dp

    @property
    def ep(self) -> int:
        """Ranks among which experts are divided; each has whole ones."""
        return self.tp * self.dp if self.expert_parallel else 1

    @property
    def expert_tp(self) -> int:
        """Ranks that share every expert."""
        return 1 if self.expert_parallel else self.tp * self.dp

    @property
    def routes(self) -> bool:
        """Whether copies of tokens travel to the ranks of their experts.

        Within one replica they do not: its ranks all have the tokens, and their results are summed.
        """
        return self.expert_parallel and self.dp > 1

    def group_size(self, kind: str) -> int:
        """Ranks of a communicator group: "tp", "dp" (over replicas), or "ep"."""
        return {"tp": self.tp, "dp": self.dp, "ep": self.tp * self.dp}[kind]


def stage_layers(layers: int, pp: int) -> tuple[Layers, ...]:
    """Layers of each stage; what is left over goes to the stages before the last, as in vLLM (get_pp_indices)."""
    counts = [layers // pp] * pp
    for k in range(layers % pp):
        counts[-2 - k] += 1
    starts = [sum(counts[:k]) for k in range(pp + 1)]
    return tuple(range(starts[k], starts[k + 1]) for k in range(pp))


def group_kinds(sizes: ServingSizes, has_experts: bool) -> tuple[str, ...]:
    """Kinds of groups that the replicas communicate in."""
    if not has_experts or sizes.dp == 1:
        return ("tp",)
    return ("tp", "ep") if sizes.routes else ("tp", "dp")


def rank_grid(sizes: ServingSizes, first: int = 0) -> Int:
    """Rank of each (replica, stage, tensor-parallel rank); `first` is the lowest."""
    return first + np.arange(sizes.ranks).reshape(sizes.dp, sizes.pp, sizes.tp)


def groups_of_kind(grid: Int, kind: str) -> Int:
    """All groups of a kind, shape (groups, members), members ascending."""
    dp, pp, tp = grid.shape
    if kind == "tp":
        return grid.reshape(-1, tp)
    if kind == "dp":
        return grid.transpose(1, 2, 0).reshape(-1, dp)
    return grid.transpose(1, 0, 2).reshape(pp, -1)


def serving_groups(n_ranks: int, grids: Sequence[Int], kinds: Sequence[str]) -> GroupTable:
    """The groups of several sets of replicas, one role for each kind; groups of one rank are left out."""
    found = [(kind, groups_of_kind(grid, kind)) for kind in kinds for grid in grids]
    found = [(kind, members) for kind, members in found if members.shape[1] > 1]
    roles = tuple(dict.fromkeys(kind for kind, _ in found))
    table = np.full((n_ranks, len(roles)), NONE, dtype=np.int64)
    groups: list[tuple[int, ...]] = []
    names: list[str] = []
    for kind, members in found:
        table[members, roles.index(kind)] = len(groups) + np.arange(len(members))[:, None]
        groups += map(tuple, members.tolist())
        names += [kind] * len(members)
    return GroupTable(roles, tuple(groups), tuple(names), table)


def stage_peers(grid: Int) -> tuple[Int, Int]:
    """Ranks of the next and the previous stage for each rank of a grid, cyclic; -1 where there is one stage."""
    if grid.shape[1] == 1:
        return np.full_like(grid, NONE), np.full_like(grid, NONE)
    return np.roll(grid, -1, axis=1), np.roll(grid, 1, axis=1)
