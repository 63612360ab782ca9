"""A sweep that is killed (SIGKILL) at drawn points and resumed each time loses no row and has none twice."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path

import numpy as np
import pytest
import yaml

from r2cc_simai.results import read_rows
from r2cc_simai.results.table import COLUMNS, Row
from r2cc_simai.runners.scenario import load_scenario
from r2cc_simai.runners.sweep import run_sweep

KILLS = 20
MOST_CASES_BETWEEN, MOST_DELAY_S = 8, 0.03
LIMIT_S = 60.0
SWEEP = {
    "title": "t",
    "blocks": [
        {
            "scenario": "many",
            "clusters": ["uniformx2", "uniformx3", "uniformx4"],
            "sizes": {"from": "1KiB", "to": "512KiB", "factor": 2},
            "failures": ["none", "server0.nic0=0.5@0", "server1.nic0=0.25@0", "server1@0"],
            "strategies": ["balance", "hot-repair", "nccl"],
        }
    ],
}


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    """Return a context whose processes start quickly: the program has been imported in a server that forks them."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["r2cc_simai.runners.sweep", "r2cc_simai.results.dataset"])
    return made


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """Return a file of 360 quick cases; a quarter of them fail."""
    path = tmp_path / "many.yml"
    path.write_text(yaml.safe_dump(SWEEP))
    return str(path)


def sweep(scenario: str, out: Path) -> None:
    """What each process does: one part of the dataset every three cases, so that kills meet the writing of parts."""
    from r2cc_simai.results import store
    from r2cc_simai.runners import sweep as sweeps

    store.CASES_PER_PART = 3
    sweeps.inputs_digest = lambda: "of this test"  # nothing but the kills
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    run_sweep(scenario, out, workers=1)


def finished(folder: Path) -> int:
    log = folder / "rows.jsonl"
    return log.read_bytes().count(b"\n") if log.is_file() else 0


def wait_for(condition, what: str) -> None:  # type: ignore[no-untyped-def]
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until, f"waited {LIMIT_S:g} s for {what}"
        time.sleep(0.002)


def dataset_rows(folder: Path) -> list[tuple[object, ...]]:
    """The dataset as a reader finds it, in the order of its parts; an empty cell is None."""
    import duckdb
    import pandas as pd

    frame = pd.read_parquet(folder / "dataset")
    counted = duckdb.sql(f"select count(*) from read_parquet('{folder}/dataset/*.parquet')").fetchall()
    assert counted == [(len(frame),)]
    assert list(frame.columns) == list(COLUMNS)
    whole = frame.astype(object).where(frame.notna(), None)
    return list(whole.itertuples(index=False, name=None))


def as_tuples(rows: list[Row]) -> list[tuple[object, ...]]:
    return [tuple(getattr(row, column) for column in COLUMNS) for row in rows]


def in_order(rows: list[tuple[object, ...]]) -> list[tuple[str, ...]]:
    return sorted(tuple(repr(cell) for cell in row) for row in rows)


def test_a_sweep_killed_at_twenty_drawn_points_loses_and_repeats_nothing(
    tmp_path: Path, scenario: str, context: ForkServerContext
) -> None:
    """Kill k comes when a drawn number of further cases is finished, and a drawn delay after that. In the end table and
    dataset are those of a sweep that nobody killed; after each kill the dataset can be read and has finished rows."""
    random, folder = np.random.default_rng(7), tmp_path / "killed"
    for _ in range(KILLS):
        wanted = finished(folder) + int(random.integers(MOST_CASES_BETWEEN))
        process = context.Process(target=sweep, args=(scenario, folder))
        process.start()
        wait_for(lambda p=process, n=wanted: finished(folder) >= n or not p.is_alive(), f"{wanted} cases")
        time.sleep(float(random.uniform(0, MOST_DELAY_S)))
        assert process.is_alive(), "the sweep must not end before it is killed"
        process.kill()
        process.join(LIMIT_S)
        assert process.exitcode == -signal.SIGKILL
        if (folder / "dataset").is_dir() and any((folder / "dataset").iterdir()):
            assert len(dataset_rows(folder)) <= len(read_rows(folder))
    assert 0 < finished(folder) < 360
    last = context.Process(target=sweep, args=(scenario, folder))
    last.start()
    last.join(LIMIT_S)
    assert last.exitcode == 0

    whole = run_sweep(scenario, tmp_path / "whole", workers=1)
    assert (folder / "results.csv").read_bytes() == (whole.folder / "results.csv").read_bytes()
    assert in_order(dataset_rows(folder)) == in_order(dataset_rows(whole.folder))
    assert in_order(as_tuples(read_rows(folder / "results.parquet"))) == in_order(dataset_rows(folder))
    keys = [case.key for case in load_scenario(scenario)[1].cases()]
    assert finished(folder) == len(set(keys)) == 360
    assert not list((folder / "dataset").glob("[!p]*"))  # nothing torn lies about


def test_workers_end_when_the_sweep_is_killed(tmp_path: Path, scenario: str) -> None:
    """The command with two workers is killed; they notice, end, and the next sweep finishes the table."""
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "r2cc_simai.cli.main", "sweep", scenario, "--out", str(folder), "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: finished(folder) >= 20, "20 cases")
        workers = [
            int(pid)
            for task in Path(f"/proc/{process.pid}/task").iterdir()
            for pid in (task / "children").read_text().split()
        ]
        process.kill()
    assert len(workers) >= 2
    wait_for(lambda: not any(runs(pid) for pid in workers), "the workers' end")
    again = run_sweep(scenario, folder, workers=1)
    whole = run_sweep(scenario, tmp_path / "whole", workers=1)
    assert (again.folder / "results.csv").read_bytes() == (whole.folder / "results.csv").read_bytes()


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
