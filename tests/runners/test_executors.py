"""Executors: the same table on each, a process that dies costs one case, and nothing that they start stays behind."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyarrow.parquet import read_table

from r2cc_simai.cli.main import run
from r2cc_simai.errors import InputError, MissingComponentError, PartitionedError
from r2cc_simai.runners.case_run import Setup
from r2cc_simai.runners.executors import executor
from r2cc_simai.runners.executors.base import Deaths, Patience, Work
from r2cc_simai.runners.executors.processes import Processes, ProcessOptions
from r2cc_simai.runners.executors.queue import CaseQueue
from r2cc_simai.runners.scenario import load_scenario
from r2cc_simai.runners.sweep import run_case, run_sweep

SMALL: dict[str, Any] = {
    "title": "t",
    "blocks": [
        {
            "scenario": "sizes",
            "clusters": ["r7525", "uniformx3"],
            "sizes": ["1MiB", "4MiB"],
            "failures": ["none", "server0@0"],
            "strategies": ["balance"],
        }
    ],
    "matrix": [
        {
            "scenario": "drawn",
            "clusters": ["h100"],
            "workloads": [{"collective": "all_reduce", "size": "64MiB"}],
            "patterns": ["random-nics:count=2"],
            "strategies": ["balance", "hot-repair"],
            "seeds": 4,
        }
    ],
}
DEADLY = '''
import multiprocessing, os, signal
from pathlib import Path
from r2cc_simai.failures.pattern import Incident, pattern

def kill_worker():
    if multiprocessing.parent_process() is not None or "SUBMITIT_EXECUTOR" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)

@pattern
def deadly(site):
    """Kills the process that runs the case."""
    kill_worker()
    yield Incident("server0.mlx5_2", 0.0)

@pattern
def once(site, file: str):
    """Kills the first process that runs the case."""
    if not Path(file).exists():
        Path(file).touch()
        kill_worker()
    yield Incident("server0.mlx5_2", 0.0)

@pattern
def without(site, name: str):
    """Kills every process that runs the case as long as there is no such file beside this one."""
    if not Path(__file__).with_name(name).exists():
        kill_worker()
    yield Incident("server0.mlx5_2", 0.0)
'''


def scenario_file(folder: Path, content: dict[str, Any]) -> str:
    path = folder / "small.yml"
    path.write_text(yaml.safe_dump(content))
    return str(path)


@pytest.fixture(scope="module")
def deadly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of patterns that kill the process of a worker."""
    path = tmp_path_factory.mktemp("deadly") / "deadly.py"
    path.write_text(DEADLY)
    return path


def deadly_file(folder: Path, deadly: Path, *, once: bool = True) -> str:
    """Six cases; one kills every process that runs it, one (`once`) the first."""
    block = {"clusters": ["r7525"], "sizes": ["1MiB", "4MiB", "16MiB"], "strategies": ["balance"]}
    one = {"clusters": ["r7525"], "sizes": ["1MiB"], "strategies": ["balance"]}
    blocks = [
        {"scenario": "before"} | one,
        {"scenario": "deadly", "failures": ["deadly"]} | one,
        *([{"scenario": "once", "failures": [f"once:file={folder}/once"]} | one] if once else []),
        {"scenario": "after"} | block,
    ]
    (folder / "once").touch()  # the check before the sweep must not be the first
    path = scenario_file(folder, {"title": "t", "pattern_files": [str(deadly)], "blocks": blocks})
    load_scenario(path)
    return path


def table(folder: Path) -> bytes:
    return (folder / "results.csv").read_bytes()


def no_children_left(before: set[int], limit_s: float = 20.0) -> bool:
    """Whether this process has no child that it did not have before, at the latest after `limit_s`."""
    until = time.monotonic() + limit_s
    while children() - before:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def children() -> set[int]:
    found = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return {pid for pid in found if "resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_text()}


def test_slurm_and_processes_give_the_same_bytes(tmp_path: Path) -> None:
    """Jobs of Slurm, here submitit's local ones, send outcomes through the spool; errors are rows there as well."""
    scenario, before = scenario_file(tmp_path, SMALL), children()
    here = run_sweep(scenario, tmp_path / "here", workers=1)
    processes = run_sweep(scenario, tmp_path / "processes", workers=2)
    slurm = run_sweep(scenario, tmp_path / "slurm", where="slurm", options=["cluster=local", "batch=5", "wait_min=2"])
    assert len(here.failures) == 4  # server 0 is down: two clusters, two sizes
    assert table(here.folder) == table(processes.folder) == table(slurm.folder)
    assert no_children_left(before)


def test_ray_gives_the_same_bytes(tmp_path: Path) -> None:
    """In a process of its own, whose end has to be the end of all that Ray started."""
    pytest.importorskip("ray")
    scenario = scenario_file(tmp_path, SMALL)
    here = run_sweep(scenario, tmp_path / "here", workers=1)
    own = ["--executor", "ray", "--executor-option", "cpus=1", "--executor-option", "wait_min=2"]
    command = [sys.executable, "-m", "r2cc_simai.cli.main", "sweep", scenario, "--out", str(tmp_path / "ray"), *own]
    before = ray_processes()
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: 4 of 16 cases failed")
    assert table(tmp_path / "ray") == table(here.folder)
    until = time.monotonic() + 20
    while ray_processes() - before and time.monotonic() < until:
        time.sleep(0.1)
    assert not ray_processes() - before


def ray_processes() -> set[str]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if b"raylet" in command or b"ray::" in command or b"gcs_server" in command:
            found.add(path.parent.name)
    return found


def test_a_process_that_dies_costs_the_case_that_killed_it_alone(tmp_path: Path, deadly: Path) -> None:
    """A case whose process dies is tried once more; the second time it has a row. All others run."""
    scenario, before = deadly_file(tmp_path, deadly), children()
    (tmp_path / "once").unlink()
    cases = list(load_scenario_unchecked(scenario))
    with Processes(2, Setup(None, (deadly,))) as processes:
        outcomes = {one.key: one for found in processes.run(cases) for one in found}
    assert set(outcomes) == {case.key for case in cases}
    failed = [one for one in outcomes.values() if one.error]
    assert [one.rows[0].scenario for one in failed] == ["deadly"]
    assert failed[0].error == "its process died 2 times: killed by SIGKILL"
    assert (tmp_path / "once").exists()
    assert no_children_left(before)


def test_a_slurm_job_that_dies_costs_the_case_that_killed_it_alone(tmp_path: Path, deadly: Path) -> None:
    """All in one job: the first case without an outcome is the suspect and runs alone, the others in a new job."""
    scenario = deadly_file(tmp_path, deadly, once=False)
    result = run_sweep(scenario, tmp_path / "run", where="slurm", options=["cluster=local", "batch=9", "wait_min=2"])
    assert [failure.key.split()[0] for failure in result.failures] == ["1:deadly"]
    assert result.failures[0].reason.startswith("its process died 2 times: job ")
    assert {row.scenario for row in result.rows if row.metric == "time"} == {"before", "after"}


@pytest.mark.parametrize(
    ("where", "options"),
    [("processes", []), ("slurm", ["cluster=local", "wait_min=2"])],
    ids=["processes", "slurm"],
)
def test_failed_cases_run_again_if_asked_for(tmp_path: Path, deadly: Path, where: str, options: list[str]) -> None:
    """`retry_failed`: once the cause is gone the table is that of a sweep that nothing ever hurt."""
    cure = deadly.with_name(f"cure-{where}")  # a file that the scenario names would make it another one
    block = {"clusters": ["r7525"], "sizes": ["1MiB"], "strategies": ["balance"]}
    blocks = [{"scenario": "hurt", "failures": [f"without:name={cure.name}"]} | block, {"scenario": "well"} | block]
    scenario = scenario_file(tmp_path, {"title": "t", "pattern_files": [str(deadly)], "blocks": blocks})
    run = partial(run_sweep, scenario, where=where, options=options, workers=2)
    first = run(tmp_path / "run")
    assert [failure.key.split()[0] for failure in first.failures] == ["0:hurt"]
    cure.touch()
    assert len(run(tmp_path / "run").failures) == 1
    assert run(tmp_path / "run", retry_failed=True).failures == []
    assert run(tmp_path / "fresh").failures == []
    assert table(tmp_path / "run") == table(tmp_path / "fresh")
    written = [read_table(folder / "dataset").to_pylist() for folder in (tmp_path / "run", tmp_path / "fresh")]
    assert sorted(written[0], key=str) == sorted(written[1], key=str)
    assert not (tmp_path / "run" / "errors").exists()


def load_scenario_unchecked(path: str) -> Any:
    """The cases without the check, which draws every pattern."""
    from r2cc_simai.config import validated
    from r2cc_simai.runners.scenario import Scenario
    from r2cc_simai.runners.scenario_file import read_scenario

    return validated(Scenario, read_scenario(Path(path)), path).cases()


def test_what_slurm_jobs_finish_after_the_sweep_is_killed_is_not_lost(tmp_path: Path) -> None:
    """The submitting process is killed when its jobs run; the next sweep takes what they wrote and submits no case of
    them again, neither finished ones nor those that still run."""
    content = {"title": "t", "blocks": [SMALL["blocks"][0]]}
    scenario, folder = scenario_file(tmp_path, content), tmp_path / "run"
    own = ["--executor", "slurm", "--executor-option", "cluster=local", "--executor-option", "batch=100"]
    command = [sys.executable, "-m", "r2cc_simai.cli.main", "sweep", scenario, "--out", str(folder), *own]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as sweep:
        until = time.monotonic() + 60
        while not (folder / "spool" / "jobs.jsonl").is_file() and time.monotonic() < until:
            time.sleep(0.02)
        sweep.send_signal(signal.SIGKILL)
    again = run_sweep(scenario, folder, where="slurm", options=["cluster=local", "batch=100", "wait_min=2"])
    jobs = (folder / "spool" / "jobs.jsonl").read_text().splitlines()
    assert len(jobs) == len({case.cluster for case in load_scenario(scenario)[1].cases()})  # a batch is of one cluster
    whole = run_sweep(scenario, tmp_path / "whole", workers=1)
    assert table(again.folder) == table(whole.folder)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("mpi", [], r"--executor mpi: no such executor \(allowed: processes, slurm, ray\)"),
        ("processes", ["partition=x"], r"--executor-option of processes: partition: unknown key"),
        ("slurm", ["partition"], r"--executor-option 'partition': write key=value"),
        ("slurm", ["cpus=none", "cluster=local"], r"--executor-option of slurm: cpus: .*integer"),
        ("slurm", ["cpus=1", "cpus=2"], r"--executor-option cpus: stands twice"),
        ("ray", ["cpus=0"], r"--executor-option of ray: cpus: .*greater than or equal to 1"),
    ],
)
def test_a_wrong_option_is_one_line(tmp_path: Path, name: str, options: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        executor(name, options, 2, Work(tmp_path, Setup()), run_case)


@pytest.mark.parametrize(("name", "library"), [("slurm", "submitit"), ("ray", "ray")])
def test_a_library_that_is_not_installed_is_exit_code_4(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    library: str,
) -> None:
    """The line says what to install."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingComponentError, match=rf"{library} is not installed; pip install 'r2cc-simai\[{name}\]'"):
        executor(name, [], 2, Work(tmp_path, Setup()), run_case)
    scenario = scenario_file(tmp_path, SMALL)
    assert run(["sweep", scenario, "--out", str(tmp_path / "run"), "--executor", name]) == 4
    assert capsys.readouterr().err.startswith(f"error: {library} is not installed")


def test_slurm_without_sbatch_is_exit_code_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingComponentError, match=r"no Slurm here .*sbatch"):
        executor("slurm", [], 2, Work(tmp_path, Setup()), run_case)


def test_a_wait_ends_and_says_what_it_waited_for() -> None:
    patience = Patience(wait_min=1e-9)
    with pytest.raises(PartitionedError, match=r"no case finished within 1e-09 min while waiting for 3 jobs; "):
        patience.check("3 jobs")


def test_a_case_that_runs_too_long_ends_the_sweep_and_its_process(tmp_path: Path) -> None:
    """`wait_min` without a finished case: the error names the case; its process is gone."""
    content = {
        "title": "t",
        "blocks": [dict(SMALL["blocks"][0], clusters=["h100x128"], sizes=["16GiB"], backends=["chunk"])],
    }
    cases = list(load_scenario_unchecked(scenario_file(tmp_path, content)))
    before = children()
    with Processes(1, Setup(), ProcessOptions(wait_min=0.001)) as processes:
        outcomes = processes.run(cases)
        with pytest.raises(PartitionedError, match="waiting for 1 running cases, among them 0:sizes h100x128"):
            next(outcomes)
    assert no_children_left(before)


def test_a_worker_keeps_to_the_cases_of_one_job(tmp_path: Path) -> None:
    """Each worker takes a group of its own (job and strategy) while there is one, then helps with the largest."""
    cases = [
        case
        for case in load_scenario(scenario_file(tmp_path, {"title": "t", "blocks": SMALL["blocks"]}))[1].cases()
        if not hasattr(case, "workload")
    ]
    queue = CaseQueue(cases)  # type: ignore[arg-type]
    first, second = queue.take(1), queue.take(2)
    assert first is not None
    assert second is not None
    assert (first.cluster, second.cluster) == ("r7525", "uniformx3")  # type: ignore[union-attr]
    taken = [queue.take(1).cluster for _ in range(4)]  # type: ignore[union-attr]
    assert taken == ["r7525", "r7525", "r7525", "uniformx3"]
    queue.give_back([first])
    assert queue.take(2).cluster == "uniformx3"  # type: ignore[union-attr]
    left = [queue.take(2), queue.take(2)]
    assert left[-1] is not None
    assert {task.key for task in left if task} >= {first.key}
    assert queue.take(1) is None
    assert not queue


def test_a_case_is_blamed_for_the_second_death_of_its_process(tmp_path: Path) -> None:
    case = next(iter(load_scenario(scenario_file(tmp_path, SMALL))[1].cases()))
    deaths = Deaths()
    assert deaths.of(case, "killed by SIGKILL") is None  # type: ignore[arg-type]
    blamed = deaths.of(case, "killed by SIGKILL")  # type: ignore[arg-type]
    assert blamed is not None
    assert blamed.error == "its process died 2 times: killed by SIGKILL"
