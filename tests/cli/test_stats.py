"""`stats`: tables and JSON of drawn failures, and what is no such run."""

import json
from pathlib import Path

import pytest

from r2cc_simai.results import make_row
from r2cc_simai.results.files import write_csv

NUMBERS = {"lost_gpu_h": 1.0, "lost_gpu_h[cable]": 1.0, "incidents": 2.0, "incidents[cable]": 2.0}


def _rows(seeds):
    for seed in seeds:
        for strategy, factor in (("nccl", 8.0), ("balance", 2.0)):
            lost = factor * (1 + seed % 2)
            values = {m: n * (lost if m.startswith("lost") else 1.0) for m, n in NUMBERS.items()}
            values |= {"gpu_h": 7300.0, "hours": 730.0, "effective_time": 1 - lost / 7300}
            for metric, value in values.items():
                yield make_row(
                    scenario="month",
                    cluster="h100x2",
                    workload="gpt",
                    pattern="mttf:table=mine",
                    seed=seed,
                    strategy=strategy,
                    backend="flow",
                    bytes=0,
                    metric=metric,
                    unit="h",
                    simulated=value,
                    ideal=1.0 if metric == "effective_time" else None,
                )


@pytest.fixture
def run(tmp_path: Path) -> str:
    """Return a results table of ten drawn months."""
    path = tmp_path / "results.csv"
    write_csv(_rows(range(10)), path)
    return str(path)


def test_four_tables(cli, run):
    """Losses of 8 and 16 GPU-hours a month under NCCL: 12 of 7,300."""
    printed = cli("stats", run).out
    assert "10 draws of 730 h; in brackets the 95% interval" in printed
    for title in (
        "Overhead over the healthy job, of effective_time (%)",
        "GPU-hours lost a month of 730 h, of 7,300",
        "Which failures cost most",
        "On the same draws (GPU-h a month)",
    ):
        assert title in printed
    (lost,) = [line.split() for line in printed.splitlines() if line.startswith("nccl  ") and "0.1644" in line][-1:]
    assert (lost[1], lost[-1]) == ("12", "0.1644")
    assert "Draws for a mean within ±5% of itself, about: nccl" in printed


def test_json_has_every_number(cli, run):
    told = json.loads(cli("stats", run, "--json", "--confidence", "0.9").out)
    assert told["confidence"] == 0.9
    (case,) = told["cases"]
    assert (case["draws"], case["hours"], case["pattern"]) == (10, 730.0, "mttf:table=mine")
    nccl = case["strategies"][0]
    assert nccl["lost_per_month"]["gpu_h"] == pytest.approx(12.0)
    assert nccl["overhead_pct"]["effective_time"]["n"] == 10
    assert nccl["causes"][0]["gpu_h_per_incident"] == pytest.approx(6.0)
    assert nccl["metrics"]["lost_gpu_h"]["p99"] == 16.0
    assert nccl["metrics"]["lost_gpu_h"]["p99_interval"] is None
    (pair,) = case["differences"]
    assert (pair["better"], pair["first_minus_second_gpu_h_per_month"]) == ("balance", pytest.approx(-9.0))


def test_draws_needed_follow_the_width_asked_for(cli, run):
    """n is proportional to 1 / width^2."""
    counts = [
        json.loads(cli("stats", run, "--json", "--half-width-pct", width).out)["cases"][0]["strategies"][0][
            "draws_needed"
        ]
        for width in ("2", "4")
    ]
    assert counts[0] == pytest.approx(4 * counts[1], abs=4)


def test_a_run_without_drawn_failures_is_one_line(cli, tmp_path):
    path = tmp_path / "results.csv"
    write_csv([], path)
    ended = cli("stats", str(path))
    assert ended.code == 2
    assert ended.error.startswith(f"{path}: no rows of drawn failures; ")


@pytest.mark.parametrize(
    "arguments", [("nowhere",), ("x.csv", "--confidence", "1"), ("x.csv", "--half-width-pct", "0")]
)
def test_bad_input_is_one_line(cli, arguments):
    ended = cli("stats", *arguments)
    assert ended.code == 2
    assert ended.error
