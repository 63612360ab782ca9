"""The closed forms that stand beside simulated numbers, against the published digits."""

import pytest

from r2cc_simai.results.report import closed_form


@pytest.mark.parametrize(
    ("n", "x", "gap"),
    [
        (4, 1 / 8, "0.470"),
        (4, 1 / 4, "0.833"),
        (4, 1 / 2, "1.190"),
        (16, 1 / 8, "0.02419"),
        (16, 1 / 4, "0.04419"),
        (16, 1 / 2, "0.06783"),
        (64, 1 / 8, "0.00145"),
        (64, 1 / 4, "0.00265"),
        (64, 1 / 2, "0.00411"),
    ],
)
def test_table_1_of_the_r2cc_paper_to_every_digit(n, x, gap):
    assert f"{closed_form.split_gap_pct(n, x):.{len(gap) - 2}f}" == gap


@pytest.mark.parametrize(
    ("n", "overheads"),
    [
        (3, (10.7, 25.0, 45.0, 75.0)),
        (4, (9.5, 22.2, 40.0, 66.7)),
        (8, (8.2, 19.0, 34.3, 57.1)),
        (16, (7.6, 17.8, 32.0, 53.3)),
        (64, (7.3, 16.9, 30.5, 50.8)),
    ],
)
def test_overhead_of_r2cc_allreduce_with_y_equal_to_x(n, overheads):
    """T/T0 = 1 + nX/(2(n-1)(1-X))."""
    for x, overhead in zip((1 / 8, 1 / 4, 3 / 8, 1 / 2), overheads, strict=True):
        ratio = closed_form.r2cc_time(n, x, x) / closed_form.healthy_time(n)
        assert 100 * (ratio - 1) == pytest.approx(overhead, abs=0.051)


def test_at_half_the_bandwidth_the_bound_is_1_over_n_minus_1_above_the_healthy_ring():
    for n in (4, 8, 64):
        assert closed_form.bound_time(n, 0.5) / closed_form.healthy_time(n) == pytest.approx(1 + 1 / (n - 1))


def test_the_best_split_is_no_worse_than_any_other():
    for n, x in ((4, 0.125), (8, 0.25), (16, 0.5)):
        best = closed_form.r2cc_time(n, x, closed_form.best_split(n, x))
        assert all(best <= closed_form.r2cc_time(n, x, y / 100) + 1e-12 for y in range(101))
