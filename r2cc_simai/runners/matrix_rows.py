"""Rows of the results table from a case of a matrix."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.results import Row
from r2cc_simai.runners.matrix_cases import MatrixCase, MatrixTask
from r2cc_simai.runners.rows import job_rows, simulate
from r2cc_simai.runners.training import training_rows
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training.job import run_training

if TYPE_CHECKING:
    from r2cc_simai.runners.courses import CostCache


def matrix_rows(task: MatrixTask, costs: "Callable[[], CostCache]") -> list[Row]:
    """The rows of one case: those of a course where the job goes on for hours, else those of `coll` or `sim`.

    `costs` gives what is known of the states of courses.

    Raises:
        PartitionedError: the failures leave ranks without a path, or the job cannot go on.
        InputError: the strategy does not apply to such a job.
    """
    case = task.case
    if isinstance(task.failures, Timeline):
        rows = _short_job(case, task.failures)
    else:
        rows = _course(case, task.failures, costs())
    return [replace(row, pattern=case.pattern, seed=case.seed) for row in rows]


def _short_job(case: MatrixCase, timeline: Timeline) -> Sequence[Row]:
    strategy = parse_strategy(case.strategy)
    if case.workload.is_collective:
        job = case.workload.collective_job(case.backend)
        result = simulate(load_cluster(case.cluster), strategy, timeline, job)
        return job_rows(result, case.scenario, nic_bytes=False)
    training = case.workload.training_job(case.cluster).job()
    return training_rows(run_training(training, strategy, timeline), case.scenario)


def _course(case: MatrixCase, incidents: tuple[Incident, ...], costs: "CostCache") -> Sequence[Row]:
    from r2cc_simai.runners.courses import Course, collective_course_rows, training_course_rows

    assert case.hours is not None
    course = Course(hours=case.hours, checkpoint_min=case.checkpoint_min)
    named = (case.strategy, incidents, case.pattern, case.seed, course, case.scenario, costs)
    if case.workload.is_collective:
        return collective_course_rows(case.cluster, case.workload.collective_job(case.backend), *named)
    return training_course_rows(case.workload.training_job(case.cluster), *named)
