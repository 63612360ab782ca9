"""Drawing: labels keep apart, bars stay readable, the same plot gives the same bytes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.results.report import palette, plotting


@given(st.lists(st.floats(-100, 100), max_size=12), st.floats(0.01, 20))
def test_labels_are_moved_apart_by_at_least_the_gap_and_keep_their_order(positions, gap):
    moved = plotting.spread(positions, gap)
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    in_order = [moved[i] for i in order]
    assert all(b - a >= gap - 1e-9 for a, b in itertools.pairwise(in_order))


def test_labels_that_do_not_collide_stay_where_they_are():
    assert plotting.spread([5.0, 0.0, 10.0], 2.0) == [5.0, 0.0, 10.0]


@pytest.mark.parametrize(
    ("values", "limit"),
    [([10, 14, 4340], 14), ([10, 14, 60], 60), ([0, 0], 1.0), ([], 1.0), ([7], 7), ([100, 8, 1], 100)],
)
def test_one_bar_far_longer_than_the_others_does_not_set_the_scale(values, limit):
    assert plotting.fair_limit(values) == limit


def test_the_same_plot_is_the_same_svg():
    def paint(figure):
        axes = figure.subplots()
        axes.plot([1, 2, 3], [1, 4, 9], "o-", color=palette.SIMULATED)
        axes.set_xlabel("size")

    first = plotting.draw(2.0, paint)
    assert first == plotting.draw(2.0, paint)
    assert "dc:date" not in first


def test_every_colour_of_a_plot_has_a_dark_form():
    strategies = [
        "ideal",
        "balance",
        "hot-repair",
        "r2cc-allreduce",
        "optcc",
        "nccl",
        "nccl-failover",
        "auto",
        "x",
        "y",
    ]
    assert set(palette.strategy_colors(strategies).values()) <= set(palette.DARK)
