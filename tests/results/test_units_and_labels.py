"""Numbers and names as readers of a report see them."""

import pytest

from r2cc_simai.results.report import labels, units


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (2.028, "2.028 s"),
        (0.07823, "78.23 ms"),
        (3.845e-5, "38.45 µs"),
        (0.9999999, "1 s"),
        (127.4, "127.4 s"),
    ],
)
def test_times_have_four_digits_and_a_fitting_unit(seconds, text):
    assert units.time(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (8, "8 B"), (1 << 28, "256 MiB"), (4 << 30, "4 GiB"), (2424307712, "2.258 GiB")],
)
def test_sizes_are_binary(count, text):
    assert units.size(count) == text


def test_table_values_keep_their_zeros_so_that_columns_align():
    assert units.value(3.04, "s") == "3.040 s"
    assert units.value(8.0, "B") == "8 B"
    assert units.value(3.53e9, "B/s") == "3.530 GB/s"
    assert units.value(None, "s") == "–"


def test_percentages_far_below_one_keep_two_digits():
    """What a month of failures costs may be a thousandth of a percent; below 0.0001% it is rounding."""
    values = (0.001874, 0.0096, -0.00123, 0.00012, 1e-12, 0.0104)
    assert [units.percent(v) for v in values] == ["0.0019%", "0.0096%", "−0.0012%", "0.00012%", "0%", "0.01%"]


def test_percentages_and_errors():
    assert [units.percent(v) for v in (0.0, 0.71, 57.14, 4340.2, None)] == [
        "0%",
        "0.71%",
        "57.1%",
        "4340%",
        "–",
    ]
    assert [units.error(v) for v in (0.266, -0.031, 0.001)] == ["+0.27%", "−0.03%", "0%"]
    assert units.more(8.22) == "+8.2%"


def test_lost_fractions_read_as_fractions():
    assert [units.fraction(x) for x in (0.125, 0.375, 1 / 3, 0.1234)] == ["1/8", "3/8", "1/3", "0.1234"]


@pytest.mark.parametrize(
    ("pattern", "x"),
    [
        ("server0.nic0=0.875@0", 0.125),
        ("server0.nic0=0.5@0.0", 0.5),
        ("server0.nic0@0", None),
        ("server0.nic0=0.5@1.5", None),
        ("server0.nic0=0.5@0..2", None),
        ("", None),
    ],
)
def test_x_is_what_a_pattern_takes_away_from_the_start_on(pattern, x):
    assert labels.lost_fraction(pattern) == x


def test_names_of_clusters_strategies_metrics_and_patterns():
    assert (labels.servers("uniformx128"), labels.servers("r7525")) == (128, None)
    assert labels.strategy_name("r2cc-allreduce:k=4,y=opt") == "R2CC-AllReduce k=4 y=opt"
    assert labels.metric_name("rx_bytes[server0.mlx5_2]") == "received on server0.mlx5_2"
    assert labels.short_pattern("server0.mlx5_2@bytes:630194176") == "server0.mlx5_2 after 601 MiB"


def test_strategies_are_ordered_from_simple_to_elaborate_and_options_by_value():
    given = ["mine", "r2cc-allreduce:k=16", "balance", "r2cc-allreduce:k=2", "ideal", "hot-repair"]
    assert sorted(given, key=labels.strategy_order) == [
        "ideal",
        "hot-repair",
        "balance",
        "r2cc-allreduce:k=2",
        "r2cc-allreduce:k=16",
        "mine",
    ]
