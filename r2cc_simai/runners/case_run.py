"""One case of a sweep: its rows, or where it fails the row that says why."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import MissingComponentError, SimaiError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.registry import load_pattern_file
from r2cc_simai.results import ERROR, Row, error_row
from r2cc_simai.runners.collective import Job
from r2cc_simai.runners.matrix_cases import MatrixCase, MatrixTask
from r2cc_simai.runners.matrix_rows import matrix_rows
from r2cc_simai.runners.references import with_references
from r2cc_simai.runners.rows import job_rows, simulate
from r2cc_simai.runners.scenario import Case
from r2cc_simai.runners.training import BACKEND
from r2cc_simai.runners.training_cases import training_case_rows
from r2cc_simai.runners.training_scenario import TrainingCase, failures_of
from r2cc_simai.runners.training_workload import label_of
from r2cc_simai.strategies.registry import parse_strategy

if TYPE_CHECKING:
    from r2cc_simai.runners.courses import CostCache

AnyCase = Case | TrainingCase | MatrixCase
Task = Case | TrainingCase | MatrixTask
"""A case as it goes to whoever runs it."""


@dataclass(frozen=True)
class Setup:
    """What a process needs beside its cases: the folder of costs that processes share (None: memory alone), the files
    of patterns that `blocks` and `training` name, and the folder of timelines (None: none are kept)."""

    costs: Path | None = None
    pattern_files: tuple[Path, ...] = ()
    timelines: Path | None = None


ALONE = Setup()


@dataclass(frozen=True)
class Outcome:
    """What became of a case. `wall_s`: seconds that it took; `lookups`, `hits`: of the cache of states; `trace`: the
    traceback of an exception that nobody foresaw."""

    key: str
    rows: list[Row] = field(repr=False)
    wall_s: float
    lookups: int = 0
    hits: int = 0
    trace: str = field(default="", repr=False)

    @property
    def error(self) -> str | None:
        """Why the case failed; None if it did not."""
        return self.rows[0].error if self.rows and self.rows[0].metric == ERROR else None


RunCase = Callable[[Task, Setup], tuple[list[Row], float]]


def run_case(task: Task, setup: Setup = ALONE) -> tuple[list[Row], float]:
    """The rows of one case and the seconds that it took.

    Raises:
        PartitionedError: the failures leave ranks without a path, or the job cannot go on.
        InputError: the strategy does not apply to such a job.
    """
    began = time.perf_counter()
    if isinstance(task, MatrixTask):
        rows = matrix_rows(task, partial(cost_cache, setup.costs))
    else:
        _load_patterns(setup.pattern_files)
        rows = _block_rows(task, setup)
    return rows, time.perf_counter() - began


def attempt(task: Task, setup: Setup, run: RunCase = run_case) -> Outcome:
    """Runs a case; one that fails has a row of metric `error`.

    Raises:
        MissingComponentError: something is not installed, which no other case will mend.
    """
    cache = cost_cache(setup.costs) if isinstance(task, MatrixTask) and task.case.hours is not None else None
    before = (cache.lookups, cache.hits) if cache else (0, 0)
    began = time.perf_counter()
    trace = ""
    try:
        rows, _ = run(task, setup)
    except MissingComponentError:
        raise
    except SimaiError as error:
        rows = [_failed_here(task, str(error))]
    except Exception as error:  # a fault of the program: the sweep goes on, the traceback is kept
        trace = traceback.format_exc()
        rows = [_failed_here(task, f"{type(error).__name__}: {error}")]
    after = (cache.lookups, cache.hits) if cache else (0, 0)
    wall_s = time.perf_counter() - began
    return Outcome(task.key, rows, wall_s, after[0] - before[0], after[1] - before[1], trace)


def case_of(task: Task) -> AnyCase:
    """The case of a task."""
    return task.case if isinstance(task, MatrixTask) else task


def _failed_here(task: Task, reason: str) -> Row:
    """The row of a case that failed where its training job can be built: its workload is called as in other rows."""
    case = case_of(task)
    row = failed_row(case, reason)
    try:
        if isinstance(case, TrainingCase):
            return replace(row, workload=case.block.job_on(case.cluster).job().name)
        if isinstance(case, MatrixCase) and not case.workload.is_collective:
            return replace(row, workload=case.workload.training_job(case.cluster).job().name + _length(case))
    except Exception:  # the reason may be that the job cannot be built
        return row
    return row


def failed_row(case: AnyCase, reason: str) -> Row:
    """The row of a case that failed."""
    own = _of_matrix(case) if isinstance(case, MatrixCase) else _of_block(case)
    return error_row(cluster=case.cluster, strategy=case.strategy, error=" ".join(reason.split()), **own)  # type: ignore[arg-type]


def _of_matrix(case: MatrixCase) -> dict[str, object]:
    own: dict[str, object] = {"scenario": case.scenario, "pattern": case.pattern, "seed": case.seed}
    own["backend"] = case.backend.value
    workload = case.workload.collective or case.workload.label
    return own | {"workload": workload + _length(case), "bytes": case.workload.bytes}


def _length(case: MatrixCase) -> str:
    """What rows of a course say behind the workload."""
    from r2cc_simai.runners.courses import Course

    return "" if case.hours is None else f" {Course(case.hours, case.checkpoint_min).label}"


def _of_block(case: Case | TrainingCase) -> dict[str, object]:
    own: dict[str, object] = {"scenario": case.block.scenario, "pattern": case.failure}
    if isinstance(case, Case):
        return own | {"workload": case.block.collective, "backend": case.backend.value, "bytes": case.bytes}
    return own | {"workload": label_of(case.block), "backend": BACKEND, "bytes": 0}


def affinity(task: Task) -> tuple[object, ...]:
    """Cases with the same value share a job and what is kept in memory of it."""
    case = case_of(task)
    if isinstance(case, MatrixCase):
        return (case.index, case.cluster, case.workload.label, case.strategy, case.backend)
    return (type(case).__name__, case.index, case.cluster)


@lru_cache(maxsize=4)
def cost_cache(folder: Path | None) -> "CostCache":
    """The costs of states that this process has in memory, and beside them those of a folder, where it can have one: a
    node of a cluster need not see the run folder."""
    from r2cc_simai.runners.courses import CostCache

    try:
        return CostCache(folder)
    except OSError:
        return CostCache()


@lru_cache(maxsize=4)
def _load_patterns(files: tuple[Path, ...]) -> None:
    for file in files:
        load_pattern_file(file)


def _block_rows(case: Case | TrainingCase, setup: Setup) -> list[Row]:
    return training_case_rows(case, setup.timelines) if isinstance(case, TrainingCase) else _collective_rows(case)


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
