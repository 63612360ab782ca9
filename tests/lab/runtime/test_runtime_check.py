"""The check of every element: it must see what it is there to see."""

import numpy as np
import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.lab.reduce import DTYPES, Reduction
from r2cc_simai.lab.verify import PERIOD, Expectation, contribution, fill

N = 50_000


def buffer_of(contributions, reduction):
    total = np.empty(N, dtype=DTYPES[reduction.dtype])
    fill(total, contributions[0])
    for one in contributions[1:]:
        part = np.empty_like(total)
        fill(part, one)
        reduction.into(total, part)
    return total


def judged(expectation, buffer):
    found = [expectation.check(buffer, *block) for block in expectation.blocks()]
    return [one for one in found if one is not None]


@pytest.fixture
def expected(cluster_of, planned):
    """Return a function: what is expected on rank 1 of four after an AllReduce of N elements, iteration 3."""

    def call(dtype, op="sum"):
        item = Reduction(dtype, op).item_bytes
        plan = planned(cluster_of(servers=4), "ideal", size=N * item, dtype=dtype, op=op)
        expectation = Expectation(plan, 1, 4)
        expectation.load(3)
        return expectation

    return call


@pytest.mark.parametrize("op", ["sum", "max", "avg"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_the_result_in_any_order(dtype, op, expected):
    reduction = Reduction(dtype, op)
    own = [contribution(r, 3, reduction, 4) for r in range(4)]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        buffer = buffer_of([own[r] for r in order], reduction)
        reduction.finish(buffer, 4)
        assert judged(expected(dtype, op), buffer) == []


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize(
    ("ranks", "why"),
    [([0, 1, 3], "rank 2 is missing"), ([0, 1, 2, 3, 1], "rank 1 is in it once too often")],
)
def test_losses_and_duplicates_are_told_apart(dtype, ranks, why, expected):
    """A contribution is at least 1 everywhere, so all elements are wrong, by the numbers of that rank."""
    reduction = Reduction(dtype, "sum")
    found = judged(expected(dtype), buffer_of([contribution(r, 3, reduction, 4) for r in ranks], reduction))
    assert sum(one.elements for one in found) == N
    assert why in found[0].first


def test_one_wrong_element_and_the_data_of_another_iteration(expected):
    reduction = Reduction("float32", "sum")
    buffer = buffer_of([contribution(r, 3, reduction, 4) for r in range(4)], reduction)
    buffer[N - 1] += 1
    assert [one.elements for one in judged(expected("float32"), buffer)] == [1]
    old = buffer_of([contribution(r, 2, reduction, 4) for r in range(4)], reduction)
    assert sum(one.elements for one in judged(expected("float32"), old)) > 0.99 * N


def test_units_in_the_wrong_place(expected):
    """Units of powers of two are no multiples of the period, so what is shifted by some of them does not fit."""
    assert all(2**k % PERIOD for k in range(40))
    reduction = Reduction("float32", "sum")
    buffer = buffer_of([contribution(r, 3, reduction, 4) for r in range(4)], reduction)
    shifted = np.roll(buffer, 32768)
    assert sum(one.elements for one in judged(expected("float32"), shifted)) > 0.99 * N


def test_what_a_type_cannot_hold():
    """float16 counts exactly to 2^11: 1,023 ranks bring 2 at most; what can only bring 1 is not told apart."""
    assert contribution(0, 0, Reduction("float16", "sum"), 1023).max() == 2
    with pytest.raises(InputError, match="float16 is too small for exact sums over 1024 ranks"):
        contribution(0, 0, Reduction("float16", "sum"), 1024)


@pytest.mark.parametrize(("dtype", "op"), [("float64", "sum"), ("int32", "mean")])
def test_types_and_operations_that_do_not_exist(dtype, op):
    with pytest.raises(InputError, match="allowed"):
        Reduction(dtype, op)
