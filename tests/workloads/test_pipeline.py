"""Orders of a pipeline stage: 1F1B and interleaved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.workloads.pipeline import Step, schedule, warmup_steps

sizes = st.tuples(st.sampled_from([1, 2, 3, 4, 8]), st.integers(1, 4), st.sampled_from([1, 2, 4]))


def word(steps):
    """F and B with the micro-batch, and the chunk behind a dot."""
    return " ".join(f"{'F' if s.forward else 'B'}{s.microbatch}.{s.chunk}" for s in steps)


def test_1f1b_on_a_middle_stage():
    """Stage 1 of 4, 4 micro-batches: two forward passes, then pairs, then what is left (arXiv 2104.04473, figure 4)."""
    assert word(schedule(4, 1, 4)) == "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 B2.0 B3.0"


def test_the_last_stage_turns_each_microbatch_round_at_once():
    assert word(schedule(4, 3, 3)) == "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0"


def test_interleaved_on_the_first_of_four_stages():
    """4 stages, 2 chunks, 8 micro-batches: 2 (4-1) + (2-1) 4 = 10 passes of warm-up, four micro-batches a turn."""
    steps = schedule(4, 0, 8, 2)
    assert warmup_steps(4, 0, 8, 2) == 10
    assert word(steps[:10]) == "F0.0 F1.0 F2.0 F3.0 F0.1 F1.1 F2.1 F3.1 F4.0 F5.0"
    assert word(steps[10:16]) == "F6.0 B0.1 F7.0 B1.1 F4.1 B2.1"


def test_backward_passes_start_with_the_last_chunk():
    steps = [step for step in schedule(2, 1, 2, 3) if not step.forward]
    assert word(steps) == "B0.2 B1.2 B0.1 B1.1 B0.0 B1.0"


@given(sizes)
def test_every_pass_comes_once_and_forward_before_backward(drawn):
    pp, turns, chunks = drawn
    microbatches = turns * pp
    for stage in range(pp):
        steps = schedule(pp, stage, microbatches, chunks)
        assert len(steps) == len(set(steps)) == 2 * microbatches * chunks
        place = {step: k for k, step in enumerate(steps)}
        for m in range(microbatches):
            for c in range(chunks):
                assert place[Step(True, m, c)] < place[Step(False, m, c)]


@given(sizes, st.integers(1, 30))
def test_1f1b_keeps_at_most_pp_minus_stage_microbatches_in_flight(drawn, microbatches):
    """Section 2.2.1 of arXiv 2104.04473: the number of outstanding forward passes is at most pp - stage."""
    pp = drawn[0]
    for stage in range(pp):
        in_flight = most = 0
        for step in schedule(pp, stage, microbatches):
            in_flight += 1 if step.forward else -1
            most = max(most, in_flight)
        assert most == min(pp - stage, microbatches)


@pytest.mark.parametrize("microbatches", [1, 2, 3])
def test_warmup_is_never_longer_than_the_work(microbatches):
    assert warmup_steps(8, 0, microbatches) == microbatches
