"""Estimators and their intervals: equations, what too few or equal values tell, coverage."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.results.statistics import (
    Interval,
    draws_needed,
    mean_interval,
    quantile,
    quantile_interval,
    summarise,
)

Values = st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=2, max_size=30).map(np.array)


def test_the_numbers_of_a_summary() -> None:
    """mean = 12 / 4 = 3; s^2 = (4 + 1 + 0 + 9) / 3; stderr = s / 2; p50 is the 2nd, p90 and p99 the 4th."""
    one = summarise(np.array([6.0, 1.0, 3.0, 2.0]))
    assert (one.n, one.mean, one.least, one.largest) == (4, 3.0, 1.0, 6.0)
    assert one.stderr == pytest.approx(math.sqrt(14 / 3) / 2)
    assert (one.p50, one.p90, one.p99) == (2.0, 6.0, 6.0)


@given(Values, st.floats(0.01, 0.99))
def test_a_quantile_is_the_least_value_that_so_many_do_not_exceed(values: np.ndarray, q: float) -> None:
    """F(x) >= q and F(y) < q for every smaller value y."""
    found = float(quantile(values, q))
    assert found in values
    assert (values <= found).mean() >= q - 1e-12
    assert (values < found).mean() < q + 1e-12


@settings(deadline=None, max_examples=20)
@given(Values)
def test_an_interval_is_within_the_values_and_repeats(values: np.ndarray) -> None:
    """No resampled mean is beyond the values; equal values, the order aside from nothing, give equal intervals."""
    found = mean_interval(values)
    assert found is not None
    slack = 1e-9 * float(np.abs(values).max())
    assert values.min() - slack <= found.low <= found.high <= values.max() + slack
    assert mean_interval(values.copy()) == found


def test_what_one_draw_and_equal_draws_tell() -> None:
    """One value has no interval; equal values one without width."""
    assert mean_interval(np.array([3.0])) is None
    assert summarise(np.array([3.0])).stderr is None
    assert mean_interval(np.full(40, 3.0)) == Interval(3.0, 3.0)
    assert quantile_interval(np.full(5, 3.0), 0.99) == Interval(3.0, 3.0)


def test_an_infinite_overhead_has_quantiles_and_no_mean() -> None:
    """Three draws of 1 and one in which nothing was done: p50 = 1, p99 = inf."""
    one = summarise(np.array([1.0, 1.0, math.inf, 1.0]))
    assert (one.p50, one.p99) == (1.0, math.inf)
    assert (one.mean, one.stderr, one.mean_interval, one.p99_interval) == (None, None, None, None)


@pytest.mark.parametrize(("draws", "known"), [(367, False), (368, True)])
def test_p99_has_an_interval_once_the_largest_draw_bounds_it(draws: int, known: bool) -> None:
    """P(all draws are below p99) = 0.99^n <= 0.025 from n = 368 on."""
    values = np.random.default_rng(1).exponential(size=draws)
    found = quantile_interval(values, 0.99)
    assert (found is not None) is known
    assert found is None or found.holds(float(quantile(values, 0.99)))


def test_values_of_which_few_differ_have_an_interval() -> None:
    """One loss in thirty draws: the interval reaches from 0, and warns nobody."""
    found = mean_interval(np.array([1.0] + [0.0] * 29))
    assert found is not None
    assert found.low <= 1 / 30 < found.high


@pytest.mark.parametrize("size", [400, 2500])
def test_many_values_of_little_skew_have_the_interval_of_the_normal_distribution(size: int) -> None:
    """Half width = 1.96 s / sqrt(n), within what 2,000 resamples leave open; BCa and percentiles alike."""
    values = np.random.default_rng(2).normal(10, 2, size)
    found = mean_interval(values)
    assert found is not None
    assert found.half_width == pytest.approx(1.96 * values.std(ddof=1) / math.sqrt(size), rel=0.08)


def test_the_last_bit_of_the_values_decides_nothing() -> None:
    """Draws of three distinct values: many resampled means equal that of the sample, rounding apart. Noise of 1e-13
    changes which of them seem to be below it, and must not move the interval by more than itself."""
    values = np.random.default_rng(9).choice([0.1, 0.2, 0.7], size=40)
    noisy = values * (1 + 1e-13 * np.random.default_rng(10).normal(size=40))
    exact, other = mean_interval(values), mean_interval(noisy)
    assert exact is not None
    assert other is not None
    assert (other.low, other.high) == pytest.approx((exact.low, exact.high), rel=1e-9)


def _exponential(random: np.random.Generator, n: int) -> np.ndarray:
    return random.exponential(size=n)


def _mostly_nothing(random: np.random.Generator, n: int) -> np.ndarray:
    return random.exponential(size=n) * (random.random(n) < 0.2)


@pytest.mark.parametrize(("draw", "mean"), [(_exponential, 1.0), (_mostly_nothing, 0.2)])
def test_the_95_percent_interval_holds_the_mean_in_95_percent_of_all_samples(draw, mean) -> None:  # type: ignore[no-untyped-def]
    """120 samples of 200 draws: hits are binomial with p = 0.95, so within 3 sqrt(0.95 * 0.05 / 120) = 6 points."""
    random = np.random.default_rng(4)
    hits = 0
    for _ in range(120):
        found = mean_interval(draw(random, 200))
        assert found is not None
        hits += found.holds(mean)
    assert abs(hits / 120 - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 120)


def test_draws_needed_is_the_square_of_spread_over_width() -> None:
    """n = (1.96 s / (0.05 mean))^2; s = mean for exponential losses: (1.96 / 0.05)^2 = 1,537."""
    values = np.random.default_rng(3).exponential(size=100_000)
    assert draws_needed(values, 5.0) == pytest.approx(1537, rel=0.02)
    assert draws_needed(values, 10.0) == pytest.approx(1537 / 4, rel=0.02)


@pytest.mark.parametrize("values", [[1.0], [0.0, 0.0], [1.0, math.inf]])
def test_draws_needed_is_unknown_without_anything_to_go_by(values: list[float]) -> None:
    assert draws_needed(np.array(values), 5.0) is None


def test_equal_draws_need_no_more() -> None:
    assert draws_needed(np.full(10, 2.0), 5.0) == 1
