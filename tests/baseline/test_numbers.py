"""What of a results table is watched."""

import random

from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.baseline.numbers import WATCHED, seed_ranges, watched
from r2cc_simai.results import error_row

CASE = {
    "scenario": "demo",
    "cluster": "uniformx4",
    "workload": "all_reduce",
    "pattern": "server0.nic0=0.5@0",
    "strategy": "balance",
    "backend": "flow",
    "bytes": 1 << 30,
}


def test_times_are_watched_and_counters_of_bytes_are_not(row):
    found = watched([row(metric=m) for m in ("time", "tx_bytes[nic0]", "algbw", "tokens[3.5]", "time_cut")], WATCHED)
    assert [number.key.metric for number in found] == ["time", "time_cut"]


def test_other_metrics_are_asked_for_by_pattern(row):
    found = watched([row(metric=m) for m in ("time", "tx_bytes[nic0]", "rx_bytes[nic0]")], ("?x_bytes*",))
    assert [number.key.metric for number in found] == ["rx_bytes[nic0]", "tx_bytes[nic0]"]


def test_a_number_is_the_simulated_value_and_its_overhead_with_12_digits(row):
    (number,) = watched([row(simulated=1 / 3, ideal=0.3, measured=0.34, source="a log")], WATCHED)
    assert (number.value, number.overhead_pct) == (0.333333333333, 11.1111111111)
    assert (number.measured, number.source, number.seeds) == (0.34, "a log", "")


def test_what_is_drawn_is_kept_as_its_mean_over_the_seeds(row):
    """mean = sum over seeds / number of seeds, of the value and of the overhead."""
    drawn = [row(seed=seed, simulated=1.0 + seed, ideal=1.0) for seed in (0, 1, 2, 5)]
    (number,) = watched(drawn, WATCHED)
    assert (number.value, number.overhead_pct, number.seeds) == (3.0, 200.0, "0-2 5")


def test_seeds_are_written_as_ranges():
    assert seed_ranges([7, 0, 1, 2, 5, 6, 1]) == "0-2 5-7"
    assert seed_ranges([]) == ""


def test_a_case_that_failed_is_watched_whatever_the_metrics():
    (number,) = watched([error_row(**CASE, error="no NIC is left")], ("time",))
    assert (number.key.metric, number.value, number.error) == ("error", 1.0, "no NIC is left")


def test_of_drawn_cases_that_failed_the_seeds_are_counted(row):
    failed = [error_row(**CASE, seed=seed, error="no NIC is left") for seed in (3, 4)]
    error, time = watched([*failed, row(seed=5, simulated=2.0)], WATCHED)
    assert (error.value, error.seeds) == (2.0, "3-4")
    assert (time.value, time.seeds) == (2.0, "5")


def test_rows_that_nothing_tells_apart_are_told_apart_by_value(row):
    first, second = watched([row(simulated=2.0), row(simulated=1.0)], WATCHED)
    assert (first.value, first.key.repeat, second.value, second.key.repeat) == (1.0, 0, 2.0, 1)


def test_a_row_without_a_value_is_no_number(row):
    assert watched([row(simulated=None)], WATCHED) == []


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_drawn_rows_does_not_matter(row, values: list[float], shuffler: random.Random):
    """Sums are rounded once, so that the mean is the same to the last digit in any order."""
    drawn = [row(seed=seed, simulated=value) for seed, value in enumerate(values)]
    mixed = list(drawn)
    shuffler.shuffle(mixed)
    assert watched(mixed, WATCHED) == watched(drawn, WATCHED)
