"""Segments and what the assembler makes of their marks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.chakra.schema import CommType
from r2cc_simai.workloads.assemble import Instance, assemble
from r2cc_simai.workloads.segment import ONE_BEFORE, PENDING, Cost, Names, SegmentBuilder

SECOND = Cost(10**9, 1, 1)
NAMES = Names()


def builder(roles=("tp",)):
    """An empty segment of ranks that have these groups."""
    return SegmentBuilder(NAMES, roles)


def dependencies(*segments):
    """What each node of the segments, one after the other, waits for."""
    program = assemble(tuple(NAMES.known), [Instance(segment) for segment in segments])
    return [d.tolist() for d in np.split(program.deps, program.dep_offsets[1:-1])]


def compute():
    """A segment of one compute node."""
    b = builder()
    b.compute("work", SECOND)
    return b.build()


def test_compute_of_consecutive_segments_is_a_chain():
    assert dependencies(compute(), compute(), compute()) == [[], [0], [1]]


def test_a_collective_of_the_stream_comes_between():
    b = builder()
    b.compute("work", SECOND)
    b.collective("sum", CommType.ALL_REDUCE, "tp", 8)
    b.compute("more", SECOND)
    assert dependencies(b.build(), compute()) == [[], [0], [1], [2]]


def test_a_collective_beside_the_stream_holds_up_only_who_waits():
    b = builder()
    b.compute("work", SECOND)
    handle = b.start("sum", CommType.ALL_REDUCE, "tp", 8)
    b.compute("meanwhile", SECOND)
    b.wait(handle)
    assert dependencies(b.build(), compute()) == [[], [0], [0], [1, 2]]


def test_groups_of_one_rank_have_no_collectives():
    b = builder(roles=())
    b.compute("work", SECOND)
    b.collective("sum", CommType.ALL_REDUCE, "tp", 8)
    assert len(b.build()) == 1


def test_a_node_with_nothing_to_do_is_left_out():
    b = builder()
    b.compute("nothing", Cost(0, 0, 0))
    assert len(b.build()) == 0


def test_a_receive_is_posted_when_the_segment_before_starts():
    b = builder()
    b.wait(b.receive("in", 0, 8, 0, (ONE_BEFORE,)))
    b.compute("work", SECOND)
    assert dependencies(compute(), compute(), b.build()) == [[], [0], [0], [1, 2]]


def test_the_end_waits_for_what_was_left_pending():
    b = builder()
    b.compute("work", SECOND)
    b.leave_pending(b.start("sum", CommType.ALL_REDUCE, "tp", 8))
    end = builder()
    end.wait((PENDING,))
    end.compute("step", SECOND)
    assert dependencies(b.build(), compute(), end.build()) == [[], [0], [0], [1, 2]]


def test_a_segment_without_nodes_passes_the_stream_on():
    assert dependencies(compute(), builder().build(), compute()) == [[], [0]]


def test_tags_of_an_instance_are_moved():
    b = builder()
    b.send("out", 0, 8, 3)
    b.compute("work", SECOND)
    program = assemble(tuple(NAMES.known), [Instance(b.build(), 100)])
    assert program.tag.tolist() == [103, -1]


@given(st.integers(0, 10**12), st.integers(1, 16))
def test_shares_of_a_cost_add_up_to_it(whole, parts):
    cost = Cost(whole, whole + 1, whole // 3)
    shares = [cost.share(k, parts) for k in range(parts)]
    assert Cost(sum(s.duration_ns for s in shares), sum(s.flops for s in shares), sum(s.bytes for s in shares)) == cost
