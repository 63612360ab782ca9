"""How far a simulated number may lie from the measured one."""

import pytest

from r2cc_simai.results import check, tolerance_pct

MIB = 1 << 20


@pytest.mark.parametrize(
    ("metric", "size", "allowed"),
    [
        ("time", 4096 * MIB, 1.0),
        ("time", 512 * MIB, 1.0),
        ("time", 256 * MIB, 5.0),
        ("time", 16 * MIB, 5.0),
        ("time", 8 * MIB, 25.0),
        ("time", 8, 25.0),
        ("time_cut", 4096 * MIB, 2.0),
        ("rx_bytes[server0.mlx5_2]", 8, 1.0),
    ],
)
def test_tolerances_against_the_r7525_servers(metric, size, allowed):
    assert tolerance_pct(metric, size) == allowed


def test_a_measured_time_is_judged_in_percent(row):
    assert check(row(simulated=1.009, measured=1.0)).ok
    assert not check(row(simulated=1.011, measured=1.0)).ok


@pytest.mark.parametrize(("backend", "allowed"), [("flow", 1.0), ("chunk", 2.0)])
def test_figure_7_is_judged_in_points_of_overhead(row, backend, allowed):
    judged = check(row(scenario="figure7", backend=backend, simulated=1.587, measured=1.571, ideal=1.0))
    assert judged.deviation == pytest.approx(1.6)
    assert (judged.unit, judged.tolerance, judged.ok) == ("points", allowed, backend == "chunk")


def test_what_was_not_measured_or_is_an_outlier_is_not_judged(row):
    assert check(row(measured=None)) is None
    assert check(row(measured=9.0, source="log 04, outlier")) is None
