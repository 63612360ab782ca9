"""Sweeps: the same table whatever the number of processes, and nothing that is finished runs twice."""

from pathlib import Path

import pytest
import yaml

from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.results.table import Row
from r2cc_simai.runners import sweep
from r2cc_simai.runners.scenario import Case, load_scenario
from r2cc_simai.runners.sweep import run_sweep

SMALL = {
    "title": "A small sweep",
    "blocks": [
        {
            "scenario": "figure7",
            "clusters": ["uniformx3", "uniformx4"],
            "zero_latency": True,
            "sizes": ["1GiB"],
            "failures": ["server0.nic0=0.5@0"],
            "strategies": ["balance", "r2cc-allreduce:k=128"],
            "backends": ["flow", "chunk"],
            "references": [
                {"table": "figure7_r2cc", "metric": "time", "value": "overhead_pct", "strategy": "r2cc-allreduce"}
            ],
        },
        {
            "scenario": "cut",
            "clusters": ["r7525"],
            "sizes": {"from": "1MiB", "to": "16MiB", "factor": 4},
            "failures": ["none", "server0.mlx5_2@0.001 server1.mlx5_3@0.002"],
            "strategies": ["hot-repair"],
            "nic_bytes": True,
        },
    ],
}


def scenario_file(folder: Path, content: dict[str, object]) -> str:
    path = folder / "small.yml"
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_one_or_two_processes_give_the_same_bytes(tmp_path: Path) -> None:
    """results.csv is byte-identical on one and on two workers; wall times are in another file."""
    scenario = scenario_file(tmp_path, SMALL)
    one = run_sweep(scenario, tmp_path / "one", workers=1)
    two = run_sweep(scenario, tmp_path / "two", workers=2)
    assert (one.folder / "results.csv").read_bytes() == (two.folder / "results.csv").read_bytes()
    assert one.report.html.read_text().lower().startswith("<!doctype html>")
    # No run beats the lower bound of its state.
    gaps = [row.bound_gap_pct for row in one.rows if row.bound_gap_pct is not None]
    assert gaps
    assert min(gaps) >= 0


def test_published_figures_stand_beside_the_rows_they_speak_of(tmp_path: Path) -> None:
    """R2CC-AllReduce at n = 4, X = 1/2: 66.7% for K -> infinity (R2CC paper); K = 128 costs (1 + 1/128) of stage 2."""
    rows = run_sweep(scenario_file(tmp_path, SMALL), tmp_path / "run", workers=1).rows
    compared = [r for r in rows if r.measured is not None]
    assert {r.strategy for r in compared} == {"r2cc-allreduce:k=128"}
    for row in (r for r in compared if r.cluster == "uniformx4"):
        assert row.ideal is not None
        assert row.measured == pytest.approx(row.ideal * 1.667)
        assert row.overhead_pct == pytest.approx(66.7 * (1 + 1 / 128), abs=1.0)


def test_a_killed_sweep_resumes_without_repeating_a_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenario_file(tmp_path, SMALL)
    whole = run_sweep(scenario, tmp_path / "whole", workers=1)
    ran: list[str] = []

    def counting(case: Case, real=sweep.run_case) -> tuple[list[Row], float]:  # type: ignore[no-untyped-def]
        if len(ran) == 4:
            raise KeyboardInterrupt
        ran.append(case.key)
        return real(case)

    monkeypatch.setattr(sweep, "run_case", counting)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(scenario, tmp_path / "killed", workers=1)
    monkeypatch.undo()
    again: list[str] = []

    def recording(case: Case, real=sweep.run_case) -> tuple[list[Row], float]:  # type: ignore[no-untyped-def]
        again.append(case.key)
        return real(case)

    monkeypatch.setattr(sweep, "run_case", recording)
    resumed = run_sweep(scenario, tmp_path / "killed", workers=1)
    assert not set(ran) & set(again)
    assert len(ran) + len(again) == len(list(load_scenario(scenario)[1].cases()))
    assert (resumed.folder / "results.csv").read_bytes() == (whole.folder / "results.csv").read_bytes()


def test_a_case_that_cannot_end_is_reported_and_keeps_the_others(tmp_path: Path) -> None:
    """All NICs of a server down: exit code 3's error, with the finished cases in the folder."""
    content = {"title": "t", "blocks": [SMALL["blocks"][0], dict(SMALL["blocks"][1], failures=["server1@0"])]}
    with pytest.raises(PartitionedError, match=r"no NIC is left between .*server1"):
        run_sweep(scenario_file(tmp_path, content), tmp_path / "run", workers=1)
    assert len((tmp_path / "run" / "rows.jsonl").read_text().splitlines()) == 8


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cluster": ["r7525"]}, r"blocks.0.cluster: unknown key; clusters was meant\?"),
        ({"clusters": ["r7526"]}, "no such cluster"),
        ({"strategies": ["balanced"]}, r"balance was meant\?"),
        ({"failures": ["server9.nic0@0"]}, "no such component"),
        ({"sizes": ["4 gibs"]}, "not a size"),
        ({"backends": ["packet"]}, "backends"),
        ({"references": [{"table": "table9", "metric": "time", "value": "x"}]}, "no table 'table9'"),
        ({"strategies": ["balance", "balance"]}, "stands twice"),
    ],
)
def test_a_mistake_shows_before_anything_runs(tmp_path: Path, change: dict[str, object], said: str) -> None:
    """One line that names the file, the block and what is allowed."""
    block = {k: v for k, v in SMALL["blocks"][0].items() if k != "clusters" or "cluster" not in change} | change
    with pytest.raises(InputError, match=said) as caught:
        run_sweep(scenario_file(tmp_path, {"title": "t", "blocks": [block]}), tmp_path / "run")
    assert "small.yml" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_the_shipped_scenario_is_valid() -> None:
    name, scenario = load_scenario("paper")
    assert name == "paper"
    assert {block.scenario for block in scenario.blocks} >= {
        "figure7",
        "table1",
        "table4",
        "r7525-healthy",
        "r7525-cut",
    }
