"""Sweeps: every case of a scenario, over several processes, into a run folder with a table and a report."""

import hashlib
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import r2cc_simai
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.paths import clusters_dir, published_dir
from r2cc_simai.results import Row, RunFolder
from r2cc_simai.results.report import ReportPaths, build_report
from r2cc_simai.runners.collective import Job
from r2cc_simai.runners.references import with_references
from r2cc_simai.runners.rows import job_rows, simulate
from r2cc_simai.runners.scenario import Case, Scenario, load_scenario
from r2cc_simai.runners.training_cases import training_case_rows
from r2cc_simai.runners.training_scenario import TrainingCase, failures_of
from r2cc_simai.strategies.registry import parse_strategy

DEFAULT = "paper"


@dataclass(frozen=True)
class SweepResult:
    """All rows of a finished sweep in the order of the scenario, where they lie, and the report."""

    rows: list[Row]
    folder: Path
    report: ReportPaths


def run_sweep(scenario: str | None = None, out: Path | None = None, workers: int = 0) -> SweepResult:
    """Runs a scenario, or what is missing of it in its run folder.

    Without `out` the folder is `runs/NAME-HASH`; the hash covers the scenario and everything that a result depends on,
    so that an interrupted sweep resumes and a changed one starts anew. `workers` is the number of processes (0: one per
    core); results do not depend on it.

    Raises:
        InputError: the scenario is wrong, or the folder belongs to another one.
        PartitionedError: a case leaves ranks without a path; finished cases stay in the folder.
    """
    name, content = load_scenario(scenario or DEFAULT)
    manifest = {"name": name, "inputs_sha256": _inputs_digest(), "content": content.model_dump(mode="json")}
    folder = RunFolder(out or Path("runs") / f"{name}-{_short(manifest)}", manifest)
    cases = list(content.cases())
    _run_missing(cases, folder, workers or os.cpu_count() or 1)
    order = [case.key for case in cases]
    folder.finish(order)
    done = folder.done()
    rows = [row for key in order for row in done[key]]
    return SweepResult(rows, folder.path, build_report(rows, folder.path, content.title, folder.timings()))


def run_case(case: Case | TrainingCase) -> tuple[list[Row], float]:
    """The rows of one case and the seconds that it took."""
    began = time.perf_counter()
    rows = training_case_rows(case) if isinstance(case, TrainingCase) else _collective_rows(case)
    return rows, time.perf_counter() - began


def _collective_rows(case: Case) -> list[Row]:
    block = case.block
    cluster = load_cluster(case.cluster)
    if block.zero_latency:
        cluster = cluster.zero_latency()
    timeline = parse_failures(failures_of(case.failure), cluster)
    job = Job(
        bytes=case.bytes,
        op=block.collective,
        iterations=block.iterations,
        warmup=block.warmup,
        graph=block.graph,
        backend=case.backend,
        root=block.root,
    )
    result = simulate(cluster, parse_strategy(case.strategy), timeline, job)
    rows = job_rows(result, block.scenario, nic_bytes=block.nic_bytes)
    return with_references(rows, block.references, cluster, timeline)


def _run_missing(cases: list[Case | TrainingCase], folder: RunFolder, workers: int) -> None:
    done = folder.done()
    missing = [case for case in cases if case.key not in done]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("sweep", total=len(cases), completed=len(cases) - len(missing))
        for case, rows, wall_s in _results(missing, workers):
            folder.append(case.key, rows, wall_s)
            progress.update(task, advance=1, description=case.block.scenario)


def _results(cases: list[Case | TrainingCase], workers: int) -> Iterator[tuple[Case | TrainingCase, list[Row], float]]:
    """Results as they come; one process runs the cases in their order."""
    if workers == 1 or len(cases) < 2:
        for case in cases:
            yield case, *run_case(case)
        return
    # Fresh processes, not forks: the parent has threads (the progress bar).
    pool = ProcessPoolExecutor(min(workers, len(cases)), mp_context=multiprocessing.get_context("spawn"))
    try:
        futures: dict[Future[tuple[list[Row], float]], Case | TrainingCase] = {
            pool.submit(run_case, case): case for case in cases
        }
        for future in as_completed(futures):
            yield futures[future], *future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _short(manifest: object) -> str:
    return hashlib.sha256(repr(manifest).encode()).hexdigest()[:10]


def _inputs_digest() -> str:
    """A hash over what a result depends on beside its scenario: code, engine, presets, models, published figures."""
    digest = hashlib.sha256(r2cc_simai.__version__.encode())
    package = Path(r2cc_simai.__file__).parent
    import r2cc_simai.engine._core as core

    files = [*sorted(package.rglob("*.py")), Path(core.__file__)]
    files += [path for kind in ("clusters", "models", "gpus") for path in sorted(_data(kind).glob("*.yml"))]
    files += sorted(published_dir().glob("*.csv"))
    for path in files:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _data(kind: str) -> Path:
    return clusters_dir().parent / kind


__all__ = ["Scenario", "SweepResult", "run_case", "run_sweep"]
