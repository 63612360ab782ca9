"""Data-parallel training over schedules: what a failure does to the bits, and what it does not.

Let the NIC fail in the AllReduce of step t. That collective goes on with its own schedule; the first one that is
planned anew is that of step t + 1, which shows in the parameters after step t + 1 and in the loss of step t + 2.
"""

from functools import cache

import numpy as np
import pytest

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.operations import default_group
from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.errors import MismatchError
from r2cc_simai.lab.training.history import History, history_of
from r2cc_simai.lab.training.in_process import execute, train
from r2cc_simai.lab.training.replica import Replica, Step
from r2cc_simai.lab.training.settings import load_training
from r2cc_simai.strategies.base import Plan, Request
from r2cc_simai.strategies.registry import parse_strategy

_, SPEC, LAB = load_training("ci")
CLUSTER = LAB.cluster("ci")
FAILED_NIC = 4  # server1.nic1
FAILED_IN = SPEC.failure.step
STRATEGIES = ("hot-repair", "balance", "r2cc-allreduce:smallest_mib=0")


def plan(strategy: str, failed: bool, size: int = LAB.bytes) -> Plan:
    fractions = tuple(0.0 if failed and nic.index == FAILED_NIC else 1.0 for nic in CLUSTER.nics)
    request = Request("all_reduce", default_group("all_reduce", CLUSTER), size)
    return parse_strategy(strategy).plan(request, View(CLUSTER, fractions))


@cache
def history(strategy: str | None) -> History:
    """Of a job under a strategy; None: without a failure."""
    before = plan("ideal", failed=False).schedule
    after = plan(strategy, failed=True).schedule if strategy else before
    return train(SPEC, CLUSTER.n_ranks, lambda step: after if step > FAILED_IN else before)


def ring(size: int, order: list[int]) -> Schedule:
    from r2cc_simai.collectives.schedule import ScheduleBuilder

    builder = ScheduleBuilder(len(order), size, size)
    builder.ring(builder.new_channel(), builder.route(order), 0, size)
    return builder.build()


def test_a_ring_adds_in_the_order_of_its_ranks() -> None:
    """Section i starts at position i of the ring and each rank adds its own to what comes: for ranks a, b, c
    section 0 is (x_a + x_b) + x_c. With 2^24, 1 and 1 in float32: (2^24 + 1) + 1 = 2^24, but (1 + 1) + 2^24 is more."""
    values = [np.float32(2**24), np.float32(1), np.float32(1)]
    buffers = [np.full(3, value, dtype=np.float32) for value in values]
    execute(ring(12, [0, 1, 2]), buffers)
    assert buffers[0].tolist() == [2**24, 2**24 + 2, 2**24]  # sections start at ranks 0, 1, 2
    for buffer in buffers[1:]:
        assert buffer.tobytes() == buffers[0].tobytes()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("failed", [False, True])
def test_every_schedule_sums_exactly_once(strategy: str, failed: bool) -> None:
    """Whole numbers below 2^24 have exact sums in whatever order: all ranks must hold sum_r x_r."""
    rng = np.random.default_rng(1)
    buffers = [rng.integers(-1000, 1000, LAB.bytes // 4).astype(np.float32) for _ in range(CLUSTER.n_ranks)]
    total = np.sum(buffers, axis=0)
    execute(plan(strategy, failed).schedule, buffers)
    for buffer in buffers:
        np.testing.assert_array_equal(buffer, total)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_ranks_hold_the_same_bits(strategy: str) -> None:
    """A sum is made once and copied: rounding cannot drive replicas apart."""
    rng = np.random.default_rng(2)
    buffers = [rng.standard_normal(LAB.bytes // 4).astype(np.float32) for _ in range(CLUSTER.n_ranks)]
    execute(plan(strategy, failed=True).schedule, buffers)
    assert len({buffer.tobytes() for buffer in buffers}) == 1


def test_loss_falls() -> None:
    healthy = history(None)
    assert healthy.losses[0] == pytest.approx(np.log(27), abs=0.1)
    assert healthy.losses[-1] < 2.5
    assert healthy.perplexity < 12


def test_two_jobs_agree_bit_for_bit() -> None:
    again = train(SPEC, CLUSTER.n_ranks, lambda step: plan("ideal", failed=False).schedule)  # noqa: ARG005
    assert again == history(None)


def test_hot_repair_stays_bit_identical_to_the_end() -> None:
    """Hot repair changes the binding alone: the same schedule, the same additions, the same bits."""
    assert history("hot-repair") == history(None)


@pytest.mark.parametrize("strategy", ["balance", "r2cc-allreduce:smallest_mib=0"])
def test_replanning_changes_bits_from_the_first_replanned_collective_on(strategy: str) -> None:
    """Two channels in place of three: other sections, other ranks that begin, another order of additions. The loss of
    the next step is the first that can differ; where it does not, one soon after it does."""
    own, healthy = history(strategy), history(None)
    assert own.same_parameters(healthy) == FAILED_IN
    assert FAILED_IN + 1 <= own.same_losses(healthy) <= FAILED_IN + 4


@pytest.mark.parametrize("strategy", ["balance", "r2cc-allreduce:smallest_mib=0"])
def test_perplexity_differs_by_less_than_a_thousandth(strategy: str) -> None:
    """R2CC paper (arXiv 2512.25059), Figure 22 and Table 3."""
    difference = history(strategy).perplexity_difference_pct(history(None))
    assert 0 < abs(difference) < 0.1


def test_a_section_that_does_not_arrive_shows() -> None:
    """Negative control: a schedule that misses its last hop leaves unequal replicas, which the history refuses."""
    from dataclasses import replace

    whole = plan("ideal", failed=False).schedule
    passes = (replace(whole.passes[0], copy_hops=whole.passes[0].copy_hops - 1), *whole.passes[1:])
    with pytest.raises(MismatchError, match=r"step 1: the ranks' parameters differ \(rank 0"):
        train(SPEC, CLUSTER.n_ranks, lambda step: replace(whole, passes=passes))  # noqa: ARG005


def test_ranks_train_on_different_parts_of_the_batch_and_hold_out_different_parts() -> None:
    gradients = []
    for rank in (0, 1):
        replica = Replica(SPEC, rank, 2)
        gradients.append(np.empty(replica.size, dtype=np.float32))
        replica.gradient(1, gradients[-1])
        assert replica.parameters.tobytes() == Replica(SPEC, 0, 2).parameters.tobytes()
    assert (gradients[0] != gradients[1]).any()


def test_perplexity_is_that_of_all_held_out_tokens() -> None:
    """exp(sum of losses / number of tokens) over all ranks, which may hold different numbers of them."""
    told = [[Step(0, 1, 2.0, 5, held_out_loss=3.0, held_out_tokens=2), Step(1, 1, 3.0, 5, 9.0, 4)]]
    assert history_of(told) == History((2.5,), (5,), float(np.exp(12 / 6)))
