"""Data whose sums are exact in float16, float32 and int32, and in which a lost or doubled contribution shows."""

import numpy as np
import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.real.exact_data import PRECISION_BITS, averaged, exact_data


@pytest.mark.parametrize("dtype", PRECISION_BITS)
@pytest.mark.parametrize("n_ranks", [2, 3, 6, 16, 64])
def test_sums_are_exact_in_every_order(n_ranks, dtype):
    """m sum(w) <= 2^P, so that no partial sum is rounded."""
    data = exact_data(n_ranks, dtype)
    ranks = tuple(range(n_ranks))
    total = np.zeros(1000, dtype=dtype)
    for rank in reversed(ranks):
        total = total + data.of_rank(rank, 0, 1000, 3)
    exact = sum(data.of_rank(rank, 0, 1000, 3).astype(np.int64) for rank in ranks)
    assert np.array_equal(total.astype(np.int64), exact)
    assert np.array_equal(total, data.reduced(ranks, "sum", 0, 1000, 3))


def test_six_ranks_of_float32_take_powers_of_four():
    """251 (4^6 - 1)/3 = 342,615 < 2^24; in float16 only r + 1 fits: 61 * 21 = 1,281 <= 2^11."""
    assert exact_data(6, "float32").weights == (1, 4, 16, 64, 256, 1024)
    assert exact_data(6, "float32").period == 251
    assert exact_data(6, "float16").weights == (1, 2, 3, 4, 5, 6)
    assert exact_data(6, "float16").period == 61


@pytest.mark.parametrize("dtype", PRECISION_BITS)
def test_a_lost_or_doubled_contribution_changes_every_element(dtype):
    data = exact_data(6, dtype)
    right = data.reduced(tuple(range(6)), "sum", 0, 500, 1)
    for rank in range(6):
        assert np.all(right - data.of_rank(rank, 0, 500, 1) != right)
        assert np.all(right + data.of_rank(rank, 0, 500, 1) != right)


def test_data_differ_from_iteration_to_iteration_and_from_place_to_place():
    data = exact_data(6, "float32")
    assert not np.any(data.of_rank(0, 0, 100, 0) == data.of_rank(0, 0, 100, 1))
    assert not np.any(data.of_rank(0, 0, 100, 0) == data.of_rank(0, 1, 101, 0))


def test_averages_and_maxima():
    data = exact_data(3, "int32")
    assert np.array_equal(data.reduced((0, 1, 2), "avg", 0, 3, 0), np.array([21 // 3, 42 // 3, 63 // 3]))
    assert np.array_equal(data.reduced((0, 1), "max", 0, 3, 0), data.of_rank(1, 0, 3, 0))
    assert averaged(np.array([7], dtype=np.int32), 2)[0] == 3


def test_types_and_numbers_of_ranks_that_cannot_be_exact():
    with pytest.raises(InputError, match="float16, float32, int32"):
        exact_data(2, "double")
    with pytest.raises(InputError, match="not exact"):
        exact_data(512, "float16")
