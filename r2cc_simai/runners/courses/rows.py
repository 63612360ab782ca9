"""Rows of the results table from courses of jobs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from r2cc_simai.failures.incident import Incident
from r2cc_simai.results import Row, make_row
from r2cc_simai.runners.collective import Job
from r2cc_simai.runners.courses.cache import CostCache
from r2cc_simai.runners.courses.collective import collective_job
from r2cc_simai.runners.courses.costs import CourseJob
from r2cc_simai.runners.courses.course import HOUR_S, Course
from r2cc_simai.runners.courses.covers import covers_of
from r2cc_simai.runners.courses.outcome import NOBODY, Outcome
from r2cc_simai.runners.courses.prices import Prices
from r2cc_simai.runners.courses.training import training_job
from r2cc_simai.runners.courses.walk import walk
from r2cc_simai.runners.training import BACKEND
from r2cc_simai.runners.training_workload import JobSpec
from r2cc_simai.strategies.registry import parse_strategy

NO_CAUSE = "none"
"""The cause of what a strategy loses where nothing has failed."""


@dataclass(frozen=True)
class _Case:
    """What all rows of a course have in common."""

    scenario: str
    cluster: str
    workload: str
    pattern: str
    seed: int | None
    strategy: str
    backend: str
    bytes: int

    def row(self, metric: str, unit: str, simulated: float, ideal: float | None = None) -> Row:
        return make_row(**vars(self), metric=metric, unit=unit, simulated=simulated, ideal=ideal)


def training_course_rows(
    spec: JobSpec,
    strategy: str,
    incidents: tuple[Incident, ...],
    pattern: str,
    seed: int | None,
    course: Course,
    scenario: str,
    cache: CostCache,
) -> list[Row]:
    """Rows of a training job over a course in which these incidents happen.

    Raises:
        InputError: options that do not fit together, or a component that the cluster lacks.
    """
    job = training_job(spec, strategy)
    workload = f"{job.job.name} {course.label}"
    case = _Case(scenario, job.cluster.name, workload, pattern, seed, parse_strategy(strategy).spec, BACKEND, 0)
    return list(_rows(case, job, incidents, course, cache))


def collective_course_rows(
    cluster_name: str,
    job: Job,
    strategy: str,
    incidents: tuple[Incident, ...],
    pattern: str,
    seed: int | None,
    course: Course,
    scenario: str,
    cache: CostCache,
) -> list[Row]:
    """Rows of one collective after another over a course in which these incidents happen.

    Raises:
        InputError: no such cluster, a collective that the strategy does not know, or an unknown component.
    """
    made = collective_job(cluster_name, job, strategy)
    workload = f"{job.op} {course.label}"
    spec = parse_strategy(strategy).spec
    case = _Case(scenario, made.cluster.name, workload, pattern, seed, spec, job.backend.value, job.bytes)
    return list(_rows(case, made, incidents, course, cache))


def run_course(job: CourseJob, incidents: Sequence[Incident], course: Course, cache: CostCache) -> Outcome:
    """What becomes of a job in a course.

    Raises:
        InputError: a component that the cluster lacks.
    """
    covers = covers_of(incidents, job.cluster, job.strategy)
    return walk(covers, Prices(job, cache), course)


def _rows(
    case: _Case, job: CourseJob, incidents: Sequence[Incident], course: Course, cache: CostCache
) -> Iterator[Row]:
    outcome = run_course(job, incidents, course, cache)
    gpu_h = float(course.hours * job.cluster.n_ranks)
    per_s = job.cluster.n_ranks / HOUR_S
    met = [one for one in incidents if one.begin_s < course.horizon_s and one.end_s > 0]
    causes = sorted({one.counts_as for one in met})
    lost = dict.fromkeys(causes, 0.0)
    for number, seconds in outcome.lost_s.items():
        cause = NO_CAUSE if number == NOBODY else incidents[number].counts_as
        lost[cause] = lost.get(cause, 0.0) + seconds
    yield case.row("effective_time", "1", outcome.effective_time, 1.0)
    yield case.row("lost_gpu_h", "h", outcome.lost_total_s * per_s)
    for cause, seconds in sorted(lost.items()):
        yield case.row(f"lost_gpu_h[{cause}]", "h", seconds * per_s)
    yield case.row("incidents", "1", float(len(met)))
    for cause in causes:
        yield case.row(f"incidents[{cause}]", "1", float(sum(one.counts_as == cause for one in met)))
    yield case.row("gpu_h", "h", gpu_h)
    yield case.row("hours", "h", float(course.hours))
