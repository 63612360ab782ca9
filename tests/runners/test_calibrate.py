"""`calibrate`: a few named parameters from one healthy sweep."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from r2cc_simai.cli.main import run
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.runners import calibrate as module
from r2cc_simai.runners.calibrate import HealthyTimes, Point, calibrate, fit
from r2cc_simai.runners.calibrated import LL_CHOICES_KIB, as_file, parameters_of, preset_of, with_values

MIB, GIB = 2**20, 2**30
SIZES = [2**k for k in range(3, 33)]
TRUE = {
    "rate_gbps": 9.8,
    "line_rate_gbps": 14.0,
    "burst_kb": 180.0,
    "base_latency_us": 8.0,
    "step_latency_us": 6.0,
    "intra_server.latency_us": 3.0,
    "ll_threshold_kib": 256.0,
}


@pytest.fixture
def quick(monkeypatch):
    """Make the search shorter than a user would want it."""
    monkeypatch.setattr(module, "SCREENING", 40)
    monkeypatch.setattr(module, "RESTARTS", 1)
    monkeypatch.setattr(module, "EVALUATIONS", 60)


@pytest.fixture(scope="module")
def recovered():
    """Return the fit of r7525 to a sweep that the simulator made with the parameters TRUE."""
    preset = load_cluster("r7525")
    model = HealthyTimes(preset, [Point(size, 1.0, True) for size in SIZES])
    times = model.times(with_values(preset.spec, TRUE))
    points = [Point(size, float(time_s), True) for size, time_s in zip(SIZES, times, strict=True)]
    return fit(preset, points, "made by the simulator")


def test_a_sweep_of_the_simulator_is_met_far_within_the_tolerances(recovered):
    assert recovered.ok
    misses = [
        100 * abs(time_s / point.time_s - 1) / point.tolerance_pct
        for point, time_s in zip(recovered.points, recovered.after_s, strict=True)
    ]
    assert max(misses) < 0.2


def test_the_parameters_that_a_sweep_can_tell_are_found_again(recovered):
    found = {p.name: p.after for p in recovered.parameters}
    assert found["rate_gbps"] == pytest.approx(TRUE["rate_gbps"], rel=0.002)
    assert found["ll_threshold_kib"] == TRUE["ll_threshold_kib"]
    # Ten steps round six ranks, of which each round has three over the network: the sum is what times can tell.
    assert _latency(found) == pytest.approx(_latency(TRUE), rel=0.05)


def _latency(values):
    return values["base_latency_us"] + 5 * (values["step_latency_us"] + values["intra_server.latency_us"])


def test_at_most_eight_parameters_and_none_of_a_strategy_or_size(recovered):
    assert {p.name for p in recovered.parameters} == set(TRUE)
    assert len(recovered.parameters) <= 8


@pytest.mark.usefixtures("quick")
def test_the_same_sweep_gives_the_same_parameters(write_sweep):
    log = write_sweep(SIZES, factor=1.02)
    first, second = (calibrate(log, None) for _ in range(2))
    assert first.parameters == second.parameters


@pytest.mark.usefixtures("quick")
def test_a_size_that_a_disturbance_spoilt_is_left_out(write_sweep):
    found = calibrate(write_sweep(SIZES, spoilt=128 * MIB), None)
    assert [point.bytes for point in found.points if not point.judged] == [128 * MIB]
    assert found.ok


@pytest.mark.usefixtures("quick")
def test_progress_goes_from_nothing_to_done(write_sweep):
    parts: list[float] = []
    calibrate(write_sweep(SIZES), None, parts.append)
    assert parts == sorted(parts)
    assert parts[-1] == 1.0


def test_bounds_are_physical():
    """10 Gb/s is a limit on ports of 25 Gb/s: the burst goes no faster than the port, no slower than the limit."""
    by_name = {p.name: p for p in parameters_of(load_cluster("r7525").spec)}
    rate, line = by_name["rate_gbps"], by_name["line_rate_gbps"]
    assert line.low >= rate.value
    assert line.high == 25.0
    assert all(p.low <= p.value <= p.high for p in by_name.values())


def test_a_nic_without_a_token_bucket_has_no_burst_to_fit():
    names = [p.name for p in parameters_of(load_cluster("h100").spec)]
    assert names == ["rate_gbps", "base_latency_us", "step_latency_us", "intra_server.latency_us"]


def test_thresholds_are_powers_of_two():
    assert all(kib == 0 or np.log2(kib).is_integer() for kib in LL_CHOICES_KIB)


def test_the_file_that_it_writes_is_the_calibrated_cluster(tmp_path):
    spec = with_values(load_cluster("r7525").spec, TRUE)
    path = tmp_path / "mine.yml"
    path.write_text(as_file(spec, "r7525", "made by a test"))
    assert yaml.safe_load(path.read_text())["preset"] == "r7525"
    assert load_cluster(str(path)).spec == spec


def test_a_cluster_from_a_file_is_written_whole(tmp_path):
    spec = with_values(load_cluster("h100").spec, {"rate_gbps": 390.0})
    path = tmp_path / "mine.yml"
    path.write_text(as_file(spec, None, "made by a test"))
    assert "preset" not in yaml.safe_load(path.read_text())
    assert load_cluster(str(path)).spec == spec


def test_the_preset_of_a_name():
    assert (preset_of("h100"), preset_of("h100x16"), preset_of("my.yml")) == ("h100", "h100", None)


def test_nics_keep_the_ratio_of_their_rates():
    spec = load_cluster("r7525").spec
    slow, fast = spec.server.nics[0], spec.server.nics[1].model_copy(update={"rate_gbps": 2 * 9.0})
    mixed = spec.model_copy(update={"server": spec.server.model_copy(update={"nics": [slow, fast]})})
    one, two = with_values(mixed, {"rate_gbps": 0.9 * slow.rate_gbps}).server.nics
    assert two.rate_gbps / one.rate_gbps == pytest.approx(18.0 / slow.rate_gbps)


def test_a_log_without_a_healthy_sweep_is_refused(write_sweep, write_series):
    with pytest.raises(InputError, match="3 sizes; a sweep of at least 8 is wanted"):
        calibrate(write_sweep([MIB, GIB, 2 * GIB]), None)
    with pytest.raises(InputError, match="no healthy AllReduce sweep"):
        calibrate(write_sweep(SIZES, "balance"), None)
    with pytest.raises(InputError, match="no healthy AllReduce sweep"):
        calibrate(write_series(), None)


@pytest.mark.usefixtures("quick")
def test_the_command_prints_before_and_after_and_writes_the_cluster(write_sweep, tmp_path: Path, capsys):
    out = tmp_path / "mine.yml"
    assert run(["calibrate", str(write_sweep(SIZES)), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*TRUE, "before", "after", "tolerance (%)"))
    assert run(["compare", str(write_sweep(SIZES)), "--cluster", str(out)]) == 0


@pytest.mark.usefixtures("quick")
def test_json_holds_the_times_before_and_after(write_sweep, capsys):
    assert run(["calibrate", "--json", str(write_sweep(SIZES))]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    times = [row for row in rows if row["workload"] == "all_reduce"]
    assert [row["scenario"] for row in times] == ["calibrate before"] * len(SIZES) + ["calibrate"] * len(SIZES)
    assert {row["metric"] for row in rows if row["workload"] == "parameter"} >= {"rate_gbps", "base_latency_us"}


@pytest.mark.usefixtures("quick")
def test_a_sweep_that_no_cluster_of_the_kind_shows_is_a_mismatch(write_sweep, capsys):
    log = write_sweep(SIZES, spoilt=4 * GIB)  # the last size takes half as long again: no parameter does that
    assert run(["calibrate", str(log)]) == 1
    assert "NO" in capsys.readouterr().out
