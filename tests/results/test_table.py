"""The results table's rows and the percentages that follow from their values."""

import math

import pytest

from r2cc_simai.results import COLUMNS, to_json


def test_columns_are_those_that_every_command_prints():
    expected = (
        "scenario cluster workload pattern seed strategy backend bytes metric unit simulated ideal overhead_pct "
        "bound bound_gap_pct measured error_pct source error"
    )
    assert " ".join(COLUMNS) == expected


def test_percentages_of_a_time_compare_it_with_ideal_bound_and_measured(row):
    made = row(metric="time", simulated=3.0, ideal=2.0, bound=2.5, measured=4.0)
    assert made.overhead_pct == pytest.approx(50.0)
    assert made.bound_gap_pct == pytest.approx(20.0)
    assert made.error_pct == pytest.approx(-25.0)


@pytest.mark.parametrize("metric", ["algbw", "busbw"])
def test_a_bandwidth_that_is_lower_than_ideal_is_an_overhead(row, metric):
    made = row(metric=metric, unit="B/s", simulated=2.0, ideal=3.0, bound=4.0, measured=4.0)
    assert made.overhead_pct == pytest.approx(50.0)
    assert made.bound_gap_pct == pytest.approx(100.0)
    assert made.error_pct == pytest.approx(-50.0)


@pytest.mark.parametrize("reference", [None, 0.0])
def test_without_something_to_compare_with_there_is_no_percentage(row, reference):
    made = row(ideal=reference, bound=reference, measured=reference)
    assert (made.overhead_pct, made.bound_gap_pct, made.error_pct) == (None, None, None)


def test_bytes_that_a_counter_saw_and_the_simulation_did_not_are_an_error_of_minus_100_percent(row):
    assert row(metric="rx_bytes[server0.mlx5_2]", unit="B", simulated=0.0, measured=601.0).error_pct == -100.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_row_holds_finite_numbers_only(row, value):
    with pytest.raises(ValueError, match="simulated is"):
        row(simulated=value)


def test_json_is_one_object_whose_rows_have_the_tables_columns(row):
    (printed,) = to_json([row(simulated=2.5)])["rows"]
    assert tuple(printed) == COLUMNS
    assert printed["simulated"] == 2.5
