"""The language model: gradients are those of finite differences, the loss falls, and equal seeds give equal bits."""

import math

import numpy as np
import pytest

from r2cc_simai.lab.training import layers
from r2cc_simai.lab.training.model import Transformer
from r2cc_simai.lab.training.optimizer import Adam
from r2cc_simai.lab.training.parameters import Layout, initial

TINY = Transformer(vocabulary=11, context=6, layers=2, width=8, heads=2)
RNG = np.random.default_rng(7)
SEQUENCES = RNG.integers(0, 11, (3, 7))


def tiny_parameters() -> layers.Array:
    """Far from the start, so that no gradient is small by chance."""
    start = initial(TINY.layout, seed=3, residual_layers=4, dtype=np.float64)
    return start + 0.1 * np.random.default_rng(4).standard_normal(len(start))


@pytest.mark.parametrize("name", list(TINY.layout.shapes))
def test_gradient_is_the_slope_of_the_loss(name: str) -> None:
    """dL/dx_i = (L(x + h e_i) - L(x - h e_i)) / 2h + O(h^2), for elements of every parameter, in float64."""
    parameters, step = tiny_parameters(), 1e-5
    gradient = np.empty_like(parameters)
    TINY.gradient(parameters, SEQUENCES, gradient)
    found, view = (TINY.layout.views(flat)[name].reshape(-1) for flat in (gradient, parameters))
    some = np.random.default_rng(len(name)).choice(len(view), min(12, len(view)), replace=False)
    slopes = []
    for i in some:
        ends = []
        for sign in (1, -1):
            before = view[i]
            view[i] += sign * step
            ends.append(float(TINY.losses(parameters, SEQUENCES).mean()))
            view[i] = before
        slopes.append((ends[0] - ends[1]) / (2 * step))
    np.testing.assert_allclose(found[some], slopes, rtol=1e-6, atol=1e-9)
    assert np.abs(found[some]).max() > 1e-4


def test_gradient_replaces_what_was_in_the_buffer() -> None:
    parameters = tiny_parameters()
    clean, dirty = np.zeros_like(parameters), np.full_like(parameters, 5.0)
    for out in (clean, dirty):
        TINY.gradient(parameters, SEQUENCES, out)
    np.testing.assert_array_equal(clean, dirty)


def test_mean_of_two_halves_is_the_gradient_of_the_whole_batch() -> None:
    """Data parallelism: for equal parts of a batch, the gradient of the mean loss is the mean of the gradients."""
    parameters, sequences = tiny_parameters(), RNG.integers(0, 11, (4, 7))
    whole, first, second = (np.empty_like(parameters) for _ in range(3))
    for out, part in ((whole, sequences), (first, sequences[:2]), (second, sequences[2:])):
        TINY.gradient(parameters, part, out)
    np.testing.assert_allclose((first + second) / 2, whole, rtol=1e-12, atol=1e-15)


def test_a_token_depends_on_no_later_one() -> None:
    """Causality: losses[t] is a function of tokens 0..t+1."""
    parameters = tiny_parameters()
    changed = SEQUENCES.copy()
    changed[:, 5] = (changed[:, 5] + 1) % 11
    before, after = (TINY.losses(parameters, s) for s in (SEQUENCES, changed))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert np.all(before[:, 4:] != after[:, 4:])


def test_untrained_model_knows_nothing() -> None:
    """With embeddings near 0 all V tokens are about equally likely: the loss is ln V."""
    flat = np.zeros(TINY.layout.size)
    np.testing.assert_allclose(TINY.losses(flat, SEQUENCES), math.log(11), rtol=1e-12)


def test_softmax_of_large_numbers() -> None:
    """softmax(x + c) = softmax(x), also where exp(x + c) is infinite."""
    x = np.array([[1.0, 2.0, 4.0]])
    np.testing.assert_allclose(layers.softmax(x + 1e4), np.exp(x) / np.exp(x).sum(), rtol=1e-12)


def test_layout_covers_the_buffer_once() -> None:
    layout = Layout({"a": (2, 3), "b": (4,)})
    flat = np.arange(10.0)
    views = layout.views(flat)
    views["b"][...] = -1
    assert layout.size == 10
    assert flat.tolist() == [0, 1, 2, 3, 4, 5, -1, -1, -1, -1]
    assert views["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_first_steps_of_adam() -> None:
    """m = (1 - b1) g and v = (1 - b2) g^2 make the first step rate g / (|g| + eps); a constant gradient keeps it so.
    With a warm-up of 4 steps the rates are 1/4, 2/4, ... of the whole."""
    gradient = np.array([3.0, -0.01])
    x = np.zeros(2)
    adam = Adam(2, rate=0.5, dtype=np.float64)
    for step in (1, 2):
        adam.update(x, gradient)
        np.testing.assert_allclose(x, [-0.5 * step, 0.5 * step], rtol=1e-5)
    x, adam = np.zeros(2), Adam(2, rate=0.5, warmup=4, dtype=np.float64)
    adam.update(x, gradient)
    adam.update(x, gradient)
    np.testing.assert_allclose(x, [-0.375, 0.375], rtol=1e-5)


def trained(steps: int) -> tuple[list[float], layers.Array]:
    """A memorised batch."""
    model = Transformer(vocabulary=11, context=6, layers=1, width=16, heads=2)
    parameters = initial(model.layout, seed=5, residual_layers=2)
    gradient = np.empty_like(parameters)
    adam = Adam(len(parameters), rate=0.01)
    losses = []
    for _ in range(steps):
        losses.append(float(model.gradient(parameters, SEQUENCES, gradient).mean()))
        adam.update(parameters, gradient)
    return losses, parameters


def test_loss_falls_and_two_runs_agree_bit_for_bit() -> None:
    first, second = trained(60), trained(60)
    assert first[0][0] == pytest.approx(math.log(11), abs=0.1)
    assert first[0][-1] < 0.2
    assert first[0] == second[0]
    assert first[1].dtype == np.float32
    assert first[1].tobytes() == second[1].tobytes()
