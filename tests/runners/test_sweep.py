"""Sweeps: the same table whatever the number of processes, and nothing that is finished runs twice."""

import re
from pathlib import Path

import pytest
import yaml

from r2cc_simai.cli.main import run
from r2cc_simai.errors import InputError
from r2cc_simai.results.table import Row
from r2cc_simai.runners import sweep
from r2cc_simai.runners.case_run import Setup
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

    def counting(case: Case, setup: Setup, real=sweep.run_case) -> tuple[list[Row], float]:  # type: ignore[no-untyped-def]
        if len(ran) == 4:
            raise KeyboardInterrupt
        ran.append(case.key)
        return real(case, setup)

    monkeypatch.setattr(sweep, "run_case", counting)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(scenario, tmp_path / "killed", workers=1)
    monkeypatch.undo()
    again: list[str] = []

    def recording(case: Case, setup: Setup, real=sweep.run_case) -> tuple[list[Row], float]:  # type: ignore[no-untyped-def]
        again.append(case.key)
        return real(case, setup)

    monkeypatch.setattr(sweep, "run_case", recording)
    resumed = run_sweep(scenario, tmp_path / "killed", workers=1)
    assert not set(ran) & set(again)
    assert len(ran) + len(again) == len(list(load_scenario(scenario)[1].cases()))
    assert (resumed.folder / "results.csv").read_bytes() == (whole.folder / "results.csv").read_bytes()


def with_a_partition(folder: Path) -> str:
    """All NICs of server 1 are down in three of eleven cases."""
    cut = dict(SMALL["blocks"][1], failures=["server1@0"])  # type: ignore[call-overload]
    return scenario_file(folder, {"title": "t", "blocks": [SMALL["blocks"][0], cut]})


def test_a_case_that_fails_is_a_row_with_its_reason_and_the_others_run(tmp_path: Path) -> None:
    result = run_sweep(with_a_partition(tmp_path), tmp_path / "run", workers=1)
    failed = [row for row in result.rows if row.metric == "error"]
    assert len(failed) == len(result.failures) == 3
    assert {row.scenario for row in failed} == {"cut"}
    assert all(re.search(r"no NIC is left between .*server1", row.error) for row in failed)
    assert {row.scenario for row in result.rows if row.metric == "time"} == {"figure7"}
    assert not (result.folder / "errors").exists()  # nothing that the program did not foresee


def test_failed_cases_are_told_in_one_line_with_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table and the report are there all the same."""
    code = run(["sweep", with_a_partition(tmp_path), "--out", str(tmp_path / "run"), "--workers", "1"])
    said = capsys.readouterr()
    assert code == 3
    (error,) = (line for line in said.err.splitlines() if line.startswith("error: "))
    assert error.startswith(
        "error: 3 of 11 cases failed, the first is 1:cut r7525 1048576 server1@0 hot-repair flow: no "
    )
    assert "rows in" in said.out
    assert (tmp_path / "run" / "report.html").is_file()


def test_an_exception_that_nobody_foresaw_is_a_row_and_its_traceback_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`type: message` in the row; the traceback goes to errors/, after the key of its case."""

    def broken(case: Case, setup: Setup, real=sweep.run_case) -> tuple[list[Row], float]:  # type: ignore[no-untyped-def]
        if case.strategy == "balance" and case.cluster == "uniformx3":
            raise ZeroDivisionError("by nothing")
        return real(case, setup)

    monkeypatch.setattr(sweep, "run_case", broken)
    result = run_sweep(scenario_file(tmp_path, SMALL), tmp_path / "run", workers=1)
    assert [failure.reason for failure in result.failures] == ["ZeroDivisionError: by nothing"] * 2
    kept = [path.read_text() for path in sorted((result.folder / "errors").iterdir())]
    assert sorted(text.splitlines()[0] for text in kept) == sorted(failure.key for failure in result.failures)
    assert all("Traceback" in text for text in kept)


def test_a_file_that_the_scenario_names_belongs_to_what_the_run_folder_is_for(tmp_path: Path) -> None:
    """A cluster file that has changed makes it another sweep."""
    cluster = tmp_path / "own.yml"
    cluster.write_text("preset: uniform\nservers: 2\n")
    block = dict(SMALL["blocks"][0], clusters=[str(cluster)], references=[])  # type: ignore[call-overload]
    scenario = scenario_file(tmp_path, {"title": "t", "blocks": [block]})
    run_sweep(scenario, tmp_path / "run", workers=1)
    cluster.write_text("preset: uniform\nservers: 3\n")
    with pytest.raises(InputError, match="belongs to another scenario"):
        run_sweep(scenario, tmp_path / "run", workers=1)


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
