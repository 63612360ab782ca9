"""Communicator groups of a PPO job: those of training, of the generation engine on the same ranks, and between both.

Ranks are in Megatron-Core's order. Each part of a tensor in the generation engine is made of neighbouring parts of
training, so that a rank gathers only what it lacks; tensor-parallel ranks of the engine are that far apart.
Source: Sheng et al., HybridFlow, arXiv 2409.19256, section 5.3.
"""

import numpy as np

from r2cc_simai.workloads.layout import GroupTable, ParallelSizes, group_table
from r2cc_simai.workloads.program import NONE, Int
from r2cc_simai.workloads.rlhf_options import RlhfOptions

GENERATION_TP = "generation_tp"
"""Ranks of an engine that share each layer."""
WEIGHTS_TP = "weights_tp"
"""Ranks whose parts of a layer in training make one part of the engine."""
WEIGHTS_PP = "weights_pp"
"""Ranks of all stages of training, where the engine has one stage."""


def rlhf_groups(options: RlhfOptions, sizes: ParallelSizes, tied: bool) -> GroupTable:
    """All groups; those of one rank are left out. `tied`: the actor's output head is its embedding."""
    kinds = ["tp", "dp", *(["embedding"] if tied else []), "model", "world"]
    table = group_table(sizes, kinds)
    apart = options.gathered
    grid = np.arange(sizes.ranks).reshape(sizes.pp, sizes.dp, sizes.tp // apart, apart)
    table = _with(table, GENERATION_TP, grid.transpose(0, 1, 3, 2).reshape(-1, sizes.tp // apart))
    table = _with(table, WEIGHTS_TP, grid.reshape(-1, apart))
    if options.generation_pipeline_parallel_size == 1:
        table = _with(table, WEIGHTS_PP, grid.transpose(1, 2, 3, 0).reshape(-1, sizes.pp))
    return table


def _with(table: GroupTable, kind: str, members: Int) -> GroupTable:
    """The table with groups of another kind, shape (groups, members)."""
    if members.shape[1] == 1:
        return table
    column = np.full((len(table.rank_groups), 1), NONE, dtype=np.int64)
    column[members, 0] = len(table.groups) + np.arange(len(members))[:, None]
    return GroupTable(
        roles=(*table.roles, kind),
        groups=(*table.groups, *map(tuple, members.tolist())),
        kinds=(*table.kinds, *([kind] * len(members))),
        rank_groups=np.hstack((table.rank_groups, column)),
    )
