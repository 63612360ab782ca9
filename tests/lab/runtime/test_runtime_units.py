"""Units: both ends of a stream agree on them, lanes get their shares, elements stay whole."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.errors import InputError
from r2cc_simai.lab.operations import Operations
from r2cc_simai.lab.units import deal, in_elements, units_of_rank


@pytest.mark.parametrize("strategy", ["ideal", "balance:split=weighted", "r2cc-allreduce:k=3", "optcc:k=2"])
def test_both_ends_of_a_stream_agree(strategy, cluster_of, planned):
    """Sender and receiver number the units without a word between them: same bytes, same order, same lanes."""
    cluster = cluster_of(servers=4, nics=3, gpus=2)
    collective = planned(cluster, strategy, size=1_000_004, lost={1: 0.0, 4: 0.5})
    elements = in_elements(collective.schedule, 4)
    servers = tuple(s.index for s in cluster.servers for _ in s.ranks)
    ends = [{}, {}]
    for rank in range(cluster.n_ranks):
        units = units_of_rank(elements, collective.binding, servers, rank, 5000)
        for side, streams in enumerate((units.sends, units.receives)):
            for s in streams:
                key = s.channel, s.src, s.dst, s.lane, s.nics
                assert key not in ends[side]
                ends[side][key] = [(units.lo[op], units.hi[op]) for op in s.ops]
                assert all(0 < units.hi[op] - units.lo[op] <= 5000 for op in s.ops)
    assert ends[0] == ends[1]


@settings(max_examples=12)
@given(data=st.data())
def test_everything_ends_in_whatever_order_units_are_sent_and_written(data, cluster_of, planned):
    """A unit may be sent when its sender's operation is ready, and written when it has come and its receiver's is.

    A stream runs at most one unit ahead of its first that has not come, so that none waits for what may not be sent.
    """
    strategy = data.draw(st.sampled_from(["ideal", "r2cc-allreduce:k=2", "optcc:k=3", "optcc:k=2,form=four"]))
    cluster = cluster_of(servers=4, nics=2, gpus=2)
    collective = planned(cluster, strategy, size=40_000, lost={1: 0.0})
    elements = in_elements(collective.schedule, 4)
    servers = tuple(s.index for s in cluster.servers for _ in s.ranks)
    ranks = [units_of_rank(elements, collective.binding, servers, r, 500) for r in range(cluster.n_ranks)]
    choice = data.draw(st.randoms(use_true_random=False))
    ready = []  # (rank, operation) that may run as far as its rank knows
    states = [Operations(units) for units in ranks]
    peers, sends, before = {}, {}, {}
    for r, units in enumerate(ranks):
        states[r].load()
        states[r].wake = [partial(ready.append, (r, op)) for op in range(len(units.lo))]
        ready += [(r, op) for op in range(len(units.lo)) if states[r].ready(op)]
        for side, streams in enumerate((units.sends, units.receives)):
            for s in streams:
                for k, op in enumerate(s.ops):
                    sends[r, op] = side == 0
                    before[r, op] = [(r, one) for one in s.ops[: max(0, k - 1)]]
                    peers.setdefault((s.channel, s.src, s.dst, s.lane, k), [None, None])[side] = (r, op)
    feeds = {ends[0]: ends[1] for ends in peers.values()}
    come, waiting = set(), set()

    def may_go(at):
        return not sends[at] or all(feeds[one] in come for one in before[at])

    while now := [at for at in ready if may_go(at)]:
        at = choice.choice(now)
        ready.remove(at)
        if sends[at]:
            come.add(feeds[at])
            states[at[0]].complete(at[1])
            if feeds[at] in waiting:
                ready.append(feeds[at])
        elif at in come:
            states[at[0]].complete(at[1])
        else:
            waiting.add(at)
    assert [state.left for state in states] == [0] * len(ranks)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=200), st.lists(st.floats(0.05, 1), min_size=1, max_size=4))
def test_lanes_get_their_shares(sizes, shares):
    """No lane is ahead of what its share of all that was dealt says by more than one unit (the engine's rule)."""
    dealt = deal(list(range(len(sizes))), sizes, shares)
    assert sorted(op for lane in dealt for op in lane) == list(range(len(sizes)))
    total = sum(sizes)
    for lane, share in zip(dealt, shares, strict=True):
        assert lane == sorted(lane)
        assert sum(sizes[op] for op in lane) <= total * share / sum(shares) + max(sizes)


@given(st.lists(st.integers(0, 400), min_size=2, max_size=12), st.sampled_from([1, 2, 4, 8]))
def test_sections_that_share_an_edge_share_it_as_elements(edges, item):
    """An element is in a section if its last byte is: byte e*item + item - 1."""
    edges = sorted(edges)
    builder = ScheduleBuilder(n_ranks=2, bytes=400, chunk_bytes=400)
    route = builder.route([0, 1])
    for lo, hi in pairwise(edges):
        builder.chain(0, route, lo, hi, 0, 1)
    passes = in_elements(builder.build(), item).passes
    for one, (lo, hi) in zip(passes, pairwise(edges), strict=True):
        inside = {e for e in range(400 // item) if lo <= e * item + item - 1 < hi}
        assert set(range(int(one.lo[0]), int(one.hi[0]))) == inside


def test_a_buffer_that_is_no_whole_number_of_elements():
    builder = ScheduleBuilder(n_ranks=2, bytes=10, chunk_bytes=10)
    with pytest.raises(InputError, match="10 bytes is no whole number of elements of 4"):
        in_elements(builder.build(), 4)


def test_a_pass_waits_for_the_rank_s_own_part_of_earlier_ones():
    """Ranks 0 and 1 exchange bytes 0..4, then rank 1 sends 4..8 to rank 2 `after` it: rank 1 waits, rank 2 does not."""
    builder = ScheduleBuilder(n_ranks=3, bytes=8, chunk_bytes=8)
    first = builder.chain(0, builder.route([0, 1]), 0, 4, 0, 1)
    builder.chain(1, builder.route([1, 2]), 4, 8, 0, 1, after=[first])
    schedule = builder.build()
    one, two = (units_of_rank(schedule, _nothing_bound(), (0, 0, 0), rank, 8) for rank in (1, 2))
    assert (one.pass_waits, one.pass_dependents, one.waits) == ([0, 1], [[1], []], [0, 0])
    assert (two.pass_waits, two.pass_dependents) == ([0, 0], [[], []])


def _nothing_bound():
    from r2cc_simai.collectives.binding import Binding

    none = np.zeros(0, dtype=np.int64)
    return Binding(none, none, none, none, none, np.zeros(0))
