"""Continuous batching: what an engine computes in each step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.workloads.engine_batches import Piece, Requests, engine_batches, pipelined, virtual_engines


def requests(input_len=10, output_len=3, max_num_seqs=4, max_num_batched_tokens=16, prefilled=False):
    return Requests(input_len, output_len, max_num_seqs, max_num_batched_tokens, prefilled)


def test_prompts_are_cut_where_the_budget_ends():
    """16 tokens a step, prompts of 10: the second prompt gets 6 tokens, and 4 in the next step, beside a decoded one.

    A sequence samples a token where its prompt ends, and one in each step after that.
    """
    first, second, third, fourth = engine_batches(requests(), range(2))
    assert first.pieces == (Piece(1, 10, 10, False, True), Piece(1, 6, 6, False, False))
    assert second.pieces == (Piece(1, 1, 11, True, True), Piece(1, 4, 10, False, True))
    assert third.pieces == (Piece(1, 1, 12, True, True), Piece(1, 1, 11, True, True))
    assert fourth.pieces == (Piece(1, 1, 12, True, True),)
    assert [step.prompts for step in (first, second, third, fourth)] == [(0,), (1,), (), ()]
    assert [step.sampled for step in (first, second, third, fourth)] == [1, 2, 2, 1]


def test_equal_sequences_are_one_piece():
    """A batch that decodes: one token each, contexts of 11 and 12 after prompts of 10."""
    steps = engine_batches(requests(prefilled=True), range(4))
    assert [step.pieces for step in steps] == [(Piece(4, 1, 11, True, True),), (Piece(4, 1, 12, True, True),)]
    assert all(step.decoding for step in steps)


def test_no_more_sequences_run_than_allowed():
    """Two at a time, one token each: six sequences take three turns of two steps."""
    steps = engine_batches(requests(max_num_seqs=2, prefilled=True), range(6))
    assert [step.tokens for step in steps] == [2] * 6


@given(st.integers(1, 30), st.integers(1, 8), st.integers(1, 6), st.integers(6, 40), st.integers(1, 12))
def test_every_token_is_computed_once_and_no_budget_exceeded(input_len, output_len, seqs, budget, count):
    """Tokens: sequences x (input + output - 1), the last one is never an input; samples: sequences x output."""
    steps = engine_batches(requests(input_len, output_len, seqs, budget), range(count))
    assert sum(step.tokens for step in steps) == count * (input_len + output_len - 1)
    assert sum(step.sampled for step in steps) == count * output_len
    assert sorted(number for step in steps for number in step.prompts) == list(range(count))
    for step in steps:
        assert 0 < step.tokens <= budget
        assert sum(piece.sequences for piece in step.pieces) <= seqs


@given(st.integers(1, 20), st.integers(1, 6), st.integers(1, 20))
def test_engines_of_a_pipeline_share_its_sequences(sequences, pp, max_num_seqs):
    engines = virtual_engines(sequences, pp, max_num_seqs)
    assert sorted(number for numbers, _ in engines for number in numbers) == list(range(sequences))
    assert sum(at_a_time for _, at_a_time in engines) == max_num_seqs
    assert len(engines) <= pp


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_step_gets_the_tokens_of_its_engines_step_before(count):
    """Engines take turns, so the step before lies as many steps back as there are engines."""
    batches = [engine_batches(requests(prefilled=True), range(2)) for _ in range(count)]
    steps = pipelined(batches)
    assert [step.before for step in steps] == [-1] * count + list(range(count))
    assert [(step.awaited, step.returned) for step in steps] == [(0, 2)] * count + [(2, 0)] * count
