"""Ranks and groups in the order of Megatron-Core."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.workloads.layout import (
    KINDS,
    NEXT_CONTEXT,
    NEXT_STAGE,
    PREVIOUS_CONTEXT,
    PREVIOUS_STAGE,
    ParallelSizes,
    group_table,
    groups_of_kind,
    peer_table,
    replica_of_rank,
    stage_of_rank,
)


def as_sets(groups):
    return {tuple(group) for group in groups.tolist()}


def test_the_example_in_megatrons_own_documentation():
    """16 GPUs, tensor size 2, pipeline size 4 (docstring of megatron.core.parallel_state.initialize_model_parallel)."""
    sizes = ParallelSizes(tp=2, pp=4, dp=2)
    assert as_sets(groups_of_kind(sizes, "tp")) == {(k, k + 1) for k in range(0, 16, 2)}
    assert as_sets(groups_of_kind(sizes, "dp")) == {
        (0, 2), (1, 3), (4, 6), (5, 7), (8, 10), (9, 11), (12, 14), (13, 15)
    }  # fmt: skip
    assert stage_of_rank(sizes).tolist() == [k // 4 for k in range(16)]
    assert as_sets(groups_of_kind(sizes, "model")) == {
        (0, 1, 4, 5, 8, 9, 12, 13), (2, 3, 6, 7, 10, 11, 14, 15)
    }  # fmt: skip
    assert as_sets(groups_of_kind(sizes, "embedding")) == {(0, 12), (1, 13), (2, 14), (3, 15)}


def test_context_ranks_lie_between_tensor_and_data_ranks():
    """tp fastest, then cp, then dp: rank = tp + 2 (cp + 2 dp) with sizes of 2."""
    sizes = ParallelSizes(tp=2, cp=2, dp=2)
    assert as_sets(groups_of_kind(sizes, "cp")) == {(0, 2), (1, 3), (4, 6), (5, 7)}
    assert as_sets(groups_of_kind(sizes, "dp")) == {(0, 4), (1, 5), (2, 6), (3, 7)}
    assert as_sets(groups_of_kind(sizes, "dp_cp")) == {(0, 2, 4, 6), (1, 3, 5, 7)}
    assert replica_of_rank(sizes).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_experts_divide_a_stage_anew():
    """8 ranks, tensor size 2 for all but the experts, 4-way expert parallel: neighbours share experts, 2 replicas."""
    sizes = ParallelSizes(tp=2, dp=4, ep=4, expert_tp=1)
    assert as_sets(groups_of_kind(sizes, "ep")) == {(0, 1, 2, 3), (4, 5, 6, 7)}
    assert as_sets(groups_of_kind(sizes, "expert_dp")) == {(0, 4), (1, 5), (2, 6), (3, 7)}


sizes_of_two = st.sampled_from([1, 2, 4])
layouts = st.builds(ParallelSizes, tp=sizes_of_two, cp=sizes_of_two, dp=sizes_of_two, pp=sizes_of_two)


@given(layouts, st.data())
def test_the_groups_of_a_kind_divide_the_ranks(sizes, data):
    stage = sizes.stage_ranks
    ep = data.draw(st.sampled_from([d for d in (1, 2, 4) if stage % d == 0]))
    expert_tp = data.draw(st.sampled_from([d for d in (1, 2) if stage % (ep * d) == 0]))
    sizes = ParallelSizes(sizes.tp, sizes.cp, sizes.dp, sizes.pp, ep, expert_tp)
    for kind in KINDS:
        groups = groups_of_kind(sizes, kind)
        assert groups.shape[1] == sizes.group_size(kind)
        assert (np.diff(groups, axis=1) > 0).all()
        ends = stage if sizes.pp == 1 else 2 * stage  # the embedding's groups: first and last stage only
        assert len(np.unique(groups)) == groups.size == (ends if kind == "embedding" else sizes.ranks)


@given(layouts)
def test_a_rank_is_a_member_of_the_group_that_its_role_means(sizes):
    table = group_table(sizes, ("tp", "dp_cp", "embedding", "world"))
    assert "tp" not in table.roles or sizes.tp > 1
    for role, kind in enumerate(table.roles):
        for rank, group in enumerate(table.rank_groups[:, role]):
            assert (group < 0) == (kind == "embedding" and 0 < rank // sizes.stage_ranks < sizes.pp - 1)
            assert group < 0 or (rank in table.groups[group] and table.kinds[group] == kind)


def test_groups_of_one_rank_are_left_out():
    table = group_table(ParallelSizes(tp=2, dp=1), ("tp", "dp", "world"))
    assert table.roles == ("tp", "world")
    assert table.groups == ((0, 1), (0, 1))


@given(layouts)
def test_neighbours_are_mutual(sizes):
    peers, ranks = peer_table(sizes), np.arange(sizes.ranks)
    for ahead, behind, size in ((NEXT_STAGE, PREVIOUS_STAGE, sizes.pp), (NEXT_CONTEXT, PREVIOUS_CONTEXT, sizes.cp)):
        if size == 1:
            assert (peers[:, [ahead, behind]] == -1).all()
        else:
            assert (peers[peers[:, ahead], behind] == ranks).all()


@pytest.mark.parametrize(("pp", "stage_ranks"), [(4, 2), (2, 8)])
def test_the_next_stage_is_one_stage_of_ranks_further(pp, stage_ranks):
    peers = peer_table(ParallelSizes(tp=stage_ranks, pp=pp))
    assert peers[:, NEXT_STAGE].tolist() == [(r + stage_ranks) % (pp * stage_ranks) for r in range(pp * stage_ranks)]
