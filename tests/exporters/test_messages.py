"""Messages of a schedule: what a rank sends, receives and waits for."""

import numpy as np
import pytest

from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.exporters.messages import Messages


def lines(ops):
    """A rank's operations as text, each with the operations that it waits for."""
    kinds = np.where(ops.send, "send", np.where(ops.reduce, "add", "take"))
    return [
        f"{kinds[i]} {ops.lo[i]}..{ops.hi[i]} {ops.peer[i]} after {ops.waits_of(i).tolist()}"
        for i in range(len(ops.send))
    ]


def test_rank_0_of_a_ring_of_three():
    """AllReduce of 9 bytes: rank 0 sends its section, adds and sends on what comes, then takes the sums."""
    builder = ScheduleBuilder(n_ranks=3, bytes=9, chunk_bytes=9)
    builder.ring(0, builder.route([0, 1, 2]), 0, 9)
    assert lines(Messages(builder.build()).of_rank(0)) == [
        "send 0..3 1 after []",
        "add 6..9 2 after []",
        "send 6..9 1 after [1]",
        "add 3..6 2 after []",
        "send 3..6 1 after [3]",
        "take 0..3 2 after [0]",
        "send 0..3 1 after [5]",
        "take 6..9 2 after [2]",
    ]


def test_two_sends_of_the_same_bytes_do_not_wait_for_each_other_but_a_write_waits_for_both():
    """Rank 0 gives its bytes to ranks 1 and 2, then takes what rank 1 sends."""
    builder = ScheduleBuilder(n_ranks=3, bytes=4, chunk_bytes=4)
    one = builder.chain(0, builder.route([0, 1]), 0, 4, 0, 1)
    two = builder.chain(1, builder.route([0, 2]), 0, 4, 0, 1)
    builder.chain(2, builder.route([1, 0]), 0, 4, 0, 1, after=[one, two])
    assert lines(Messages(builder.build()).of_rank(0)) == [
        "send 0..4 1 after []",
        "send 0..4 2 after []",
        "take 0..4 1 after [0, 1]",
    ]


def test_a_later_pass_waits_where_its_bytes_meet_earlier_ones():
    """Rank 1 takes bytes 0..4 and 4..8 from rank 0 in two passes and hands 2..6 on to rank 2."""
    builder = ScheduleBuilder(n_ranks=3, bytes=8, chunk_bytes=8)
    first = [builder.chain(0, builder.route([0, 1]), lo, lo + 4, 0, 1) for lo in (0, 4)]
    builder.chain(1, builder.route([1, 2]), 2, 6, 0, 1, after=first)
    assert lines(Messages(builder.build()).of_rank(1))[-1] == "send 2..6 2 after [0, 1]"


@pytest.mark.parametrize(("piece_bytes", "sizes"), [(None, [3, 3, 4]), (4, [3, 3, 4]), (5, [5, 5]), (0, [10])])
def test_pieces(piece_bytes, sizes):
    """A section of 10 bytes in the schedule's chunks (at most 4 bytes), in pieces of at most 4 or 5, or whole."""
    builder = ScheduleBuilder(n_ranks=2, bytes=10, chunk_bytes=4)
    builder.chain(0, builder.route([0, 1]), 0, 10, 0, 1)
    ops = Messages(builder.build(), piece_bytes).of_rank(0)
    assert (ops.hi - ops.lo).tolist() == sizes


@pytest.mark.parametrize("strategy", ["ideal", "r2cc-allreduce:k=3", "optcc:k=2"])
def test_both_ends_of_a_message_agree_and_tags_are_unique(strategy, schedule_for):
    messages = Messages(schedule_for("uniformx5", strategy, 17_000_003))
    ends: dict[bool, set[tuple[int, ...]]] = {True: set(), False: set()}
    for rank in range(5):
        ops = messages.of_rank(rank)
        for send in (True, False):
            mine, peer = (np.full(len(ops.tag), rank), ops.peer) if send else (ops.peer, np.full(len(ops.tag), rank))
            rows = np.column_stack([ops.tag, mine, peer, ops.lo, ops.hi])[ops.send == send]
            ends[send] |= {tuple(row) for row in rows.tolist()}
    assert ends[True] == ends[False]
    assert sorted(row[0] for row in ends[True]) == list(range(messages.count))
