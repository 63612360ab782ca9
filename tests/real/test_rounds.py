"""Any schedule as rounds of batched sends and receives: right, at both ends alike, and free of deadlock.

The rounds are executed here by a library of ours that has nothing but them: a rank posts a round, and posts the next
when every message of it has met its other end.
"""

from dataclasses import replace

import numpy as np
import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.real.exact_data import exact_data
from r2cc_simai.real.rounds import Rounds
from r2cc_simai.real.torch_job import TorchJob, plan_job
from r2cc_simai.real.verify import count_wrong

BASE = TorchJob("uniformx4", "balance", "all_reduce", 4096, (), 0, "float32", "sum", 1, 0, "gloo", 10.0)
LOST = ("server1.mlx5_2@0",)


def job(cluster="uniformx4", **keys):
    return replace(BASE, cluster=cluster, **keys)


def execute(one, factor=1):
    """Runs all rounds and returns the wrong elements; the first message that rank 2 receives counts `factor` times."""
    planned = plan_job(one)
    rounds = Rounds(planned.schedule, one.element_bytes)
    n = planned.schedule.n_ranks
    data = exact_data(n, one.dtype)
    elements = planned.schedule.bytes // one.element_bytes
    memory = [data.of_rank(rank, 0, elements, 0) for rank in range(n)]
    ranks = [rounds.of_rank(rank) for rank in range(n)]
    at = [0] * n
    in_flight = {}
    while any(at[rank] < ranks[rank].count for rank in range(n)):
        moved = False
        for rank in range(n):  # a round's sends leave when it is posted
            own = ranks[rank]
            if at[rank] == own.count:
                continue
            span = range(own.offset[at[rank]], own.offset[at[rank] + 1])
            for k in span:
                if own.send[k]:
                    key = (rank, int(own.peer[k]), int(own.tag[k]))
                    in_flight.setdefault(key, memory[rank][own.lo[k] : own.hi[k]].copy())
            wanted = [(int(own.peer[k]), rank, int(own.tag[k])) for k in span if not own.send[k]]
            posted = all(_posted(ranks, at, int(own.peer[k]), int(own.tag[k])) for k in span if own.send[k])
            if not posted or not all(key in in_flight for key in wanted):
                continue
            for k in span:
                if not own.send[k]:
                    value = in_flight[int(own.peer[k]), rank, int(own.tag[k])]
                    view = memory[rank][own.lo[k] : own.hi[k]]
                    assert len(view) == len(value)
                    if rank == 2:
                        value, factor = factor * value, 1
                    view[:] = view + value if own.reduce[k] else value
            at[rank] += 1
            moved = True
        assert moved, "nobody can go on"
    wrong = 0
    for rank in range(n):
        result = memory[rank]
        wrong += count_wrong(result, rank, planned.wanted, rounds.cuts, data, one.element_bytes, one.op, iteration=0)
    return wrong


def _posted(ranks, at, peer, tag):
    """Whether the other end has posted the receive, now or before."""
    other = ranks[peer]
    k = int(np.flatnonzero((other.tag == tag) & ~other.send)[0])
    return k < other.offset[min(at[peer], other.count - 1) + 1]


CASES = {
    "the ring": job("r7525"),
    "Balance with a NIC lost": job("r7525", strategy="balance", fail=LOST),
    "R2CC-AllReduce": job("r7525", strategy="r2cc-allreduce", fail=LOST, bytes=1 << 20),
    "OptCC": job("uniformx6", strategy="optcc:k=2", fail=("server0.nic0=0.5@0",), bytes=1 << 16),
    "all_gather": job("r7525", collective="all_gather"),
    "reduce_scatter": job("r7525", collective="reduce_scatter"),
    "all_to_all": job(collective="all_to_all"),
    "broadcast": job("r7525", collective="broadcast", root=2),
    "reduce": job("r7525", collective="reduce", root=1),
    "send_recv": job("r7525", collective="send_recv"),
    "send": job("r7525", collective="send"),
    "elements that sections cut": job("r7525", bytes=4 * 1001),
    "fewer elements than ranks": job("r7525", bytes=4),
    "half precision": job("r7525", dtype="float16", bytes=2 * 999),
    "whole numbers": job("r7525", dtype="int32"),
}


@pytest.mark.parametrize("one", CASES.values(), ids=CASES)
def test_every_element_is_right(one):
    assert execute(one) == 0


@pytest.mark.parametrize(("factor", "what"), [(2, "comes twice"), (0, "is lost")])
def test_a_contribution_that(factor, what):
    """Its section, one of 18, of at least 4096/4/18 - 1 elements, is wrong on all six ranks."""
    assert execute(job("r7525"), factor) >= 6 * 55, what


def test_both_ends_post_a_message_in_one_round_of_the_whole():
    """Levels: every message has its two ends at one level, and waits for lower ones alone."""
    planned = plan_job(job("r7525", strategy="r2cc-allreduce", fail=LOST, bytes=1 << 20))
    rounds = Rounds(planned.schedule, 4)
    sends, receives = {}, {}
    for rank in range(6):
        own = rounds.of_rank(rank)
        for k in range(len(own.tag)):
            ends = sends if own.send[k] else receives
            ends[int(own.tag[k])] = (int(own.lo[k]), int(own.hi[k]))
    assert sends == receives


def test_the_room_for_what_is_added_fits_the_largest_round():
    own = Rounds(plan_job(job("r7525")).schedule, 4).of_rank(0)
    sums = [
        sum(int(own.hi[k] - own.lo[k]) for k in range(a, b) if own.reduce[k])
        for a, b in zip(own.offset[:-1], own.offset[1:], strict=True)
    ]
    assert own.staging == max(sums)


BAD = {
    "no whole number of elements": (job(bytes=4098), "multiple of the 4 bytes"),
    "nothing": (job(bytes=0), "multiple of the 4 bytes"),
    "an unknown reduction": (job(op="prod"), "sum, max, avg"),
    "an unknown type": (job(dtype="int8"), "float16, float32, int32"),
    "a failure that comes later": (job("r7525", fail=("server0.mlx5_2@1",)), "write @0"),
}


@pytest.mark.parametrize(("one", "named"), BAD.values(), ids=BAD)
def test_jobs_that_make_no_sense(one, named):
    with pytest.raises(InputError, match=named):
        plan_job(one)
