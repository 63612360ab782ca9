"""A matrix with `hours`: courses, whose states are simulated once for all processes and seeds."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from r2cc_simai.errors import InputError
from r2cc_simai.results import Row
from r2cc_simai.runners import sweep
from r2cc_simai.runners.case_run import RunCase, Setup, Task, cost_cache
from r2cc_simai.runners.matrix_cases import MatrixCase, MatrixTask, task_of
from r2cc_simai.runners.scenario import load_scenario
from r2cc_simai.runners.sweep import run_sweep

COURSE: dict[str, Any] = {
    "scenario": "days",
    "clusters": ["r7525"],
    "workloads": [{"collective": "all_reduce", "size": "1GiB"}],
    "patterns": ["mttf:table=llama3,scale=4000", "server0.mlx5_2@1h..2h", "none"],
    "strategies": ["hot-repair", "balance"],
    "seeds": 6,
    "hours": 24,
}


def scenario_file(folder: Path, **change: Any) -> str:
    path = folder / "own.yml"
    path.write_text(yaml.safe_dump({"title": "t", "matrix": [COURSE | change]}))
    return str(path)


def test_courses_are_the_same_on_any_number_of_processes(tmp_path: Path) -> None:
    """Processes share the costs of states through the run folder; the last line says how many were known.

    What was not known was simulated, and is a file; two processes may simulate the same at the same time.
    """
    scenario = scenario_file(tmp_path)
    one = run_sweep(scenario, tmp_path / "one", workers=1)
    two = run_sweep(scenario, tmp_path / "two", workers=2)
    assert not one.failures
    assert (one.folder / "results.csv").read_bytes() == (two.folder / "results.csv").read_bytes()
    assert {"effective_time", "lost_gpu_h", "incidents", "gpu_h", "hours"} <= {row.metric for row in one.rows}
    known, simulated, kept = looked_up(one)
    assert known > 0
    assert simulated == kept
    known, simulated, kept_by_two = looked_up(two)
    assert known > 0
    assert kept_by_two == kept <= simulated <= 2 * kept


def looked_up(result: sweep.SweepResult) -> tuple[int, int, int]:
    """Costs that were known, and that were not, by the last line; and those in the folder."""
    said = re.fullmatch(
        r"16 cases in [\d.]+ s; state cache: ([\d,]+) of ([\d,]+) looked-up costs were there \(([\d.]+)%\)",
        result.summary,
    )
    assert said is not None
    hits, lookups = (int(text.replace(",", "")) for text in said.groups()[:2])
    return hits, lookups - hits, len(list((result.folder / "costs").glob("*.json")))


def test_what_fails_in_a_course_is_drawn_over_its_hours(tmp_path: Path) -> None:
    cases = [case for case in load_scenario(scenario_file(tmp_path))[1].cases() if isinstance(case, MatrixCase)]
    incidents = {case.seed: task_of(case, None).failures for case in cases if case.pattern.startswith("mttf")}
    assert set(incidents) == set(range(6))
    assert any(incidents.values())
    assert all(0 <= one.begin_s < 24 * 3600 for found in incidents.values() for one in found)  # type: ignore[union-attr]


def test_a_course_that_fails_is_called_like_its_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of the error has workload, pattern and seed as the rows of the strategy that does not fail."""

    def broken(task: Task, setup: Setup, real: RunCase = sweep.run_case) -> tuple[list[Row], float]:
        if isinstance(task, MatrixTask) and task.case.strategy == "balance":
            raise InputError("balance does not apply")
        return real(task, setup)

    monkeypatch.setattr(sweep, "run_case", broken)
    rows = run_sweep(scenario_file(tmp_path, seeds=2, checkpoint_min=10), tmp_path / "run", workers=1).rows
    failed = {(row.workload, row.pattern, row.seed) for row in rows if row.metric == "error"}
    fine = {(row.workload, row.pattern, row.seed) for row in rows if row.strategy == "hot-repair"}
    assert failed == fine
    assert {workload for workload, _, _ in failed} == {"all_reduce hours=24 checkpoint_min=10"}


def test_costs_stay_in_memory_where_there_can_be_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = cost_cache(Setup(tmp_path / "file" / "costs").costs)
    assert cache.lookups == 0
    with pytest.raises(OSError, match="file"):
        (tmp_path / "file" / "costs").mkdir(parents=True)
