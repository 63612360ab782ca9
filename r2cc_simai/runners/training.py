"""Training jobs from traces, and rows of the results table from what a failure did to them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from r2cc_simai.chakra.folder import TraceSet, read_folder
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.results import Row, make_row
from r2cc_simai.training.job import TrainingJob, TrainingResult
from r2cc_simai.training.ranks import ranks_of
from r2cc_simai.workloads.gpus import Gpu

BACKEND = "flow"


def read_job(prefix: Path, cluster: Cluster, gpu: Gpu | None = None) -> TrainingJob:
    """The job of a folder of traces, rank k on GPU k of the cluster; `gpu` times compute nodes without a duration.

    Raises:
        InputError: a file is missing or broken, or makes no sense.
    """
    return job_of(read_folder(prefix), cluster, gpu)


def job_of(traces: TraceSet, cluster: Cluster, gpu: Gpu | None = None) -> TrainingJob:
    """The job of traces that have been read, rank k on GPU k of the cluster."""
    tokens = int((traces.manifest or {}).get("tokens", 0))
    return TrainingJob(traces.prefix.name, cluster, ranks_of(traces, gpu), traces.replica, tokens)


def training_rows(result: TrainingResult, scenario: str) -> list[Row]:
    """Rows of one strategy: `iteration` after the failure, `iteration_cut` of the one that it hit, `tokens_per_s`,
    `exposed_share`, and `stopped` where the job stood still. `ideal` is the healthy job."""
    return list(_rows(result, scenario))


def failure_induced_row(result: TrainingResult, scenario: str, repair_s: float) -> Row:
    """`failure_induced`: seconds that the job needs longer because of the failure, until it is repaired.

    The work is what the healthy job does in `repair_s`. It costs once what the iteration that the failure hits takes
    longer, restarts included, and then overhead * repair_s.
    """
    return _row(result, scenario, "failure_induced", "s", result.hit_extra_s + result.overhead * repair_s, None)


def _row(result: TrainingResult, scenario: str, metric: str, unit: str, simulated: float, ideal: float | None) -> Row:
    return make_row(
        scenario=scenario,
        cluster=result.job.cluster.name,
        workload=result.job.name,
        pattern=result.timeline.pattern,
        strategy=result.strategy.spec,
        backend=BACKEND,
        bytes=0,
        metric=metric,
        unit=unit,
        simulated=simulated,
        ideal=ideal,
    )


def _rows(result: TrainingResult, scenario: str) -> Iterator[Row]:
    job, healthy = result.job, result.job.healthy
    row = partial(_row, result, scenario)
    yield row("iteration", "s", result.after.elapsed_s, healthy.elapsed_s)
    if result.hit_s is not None:
        yield row("iteration_cut", "s", result.hit_s, healthy.elapsed_s)
    if job.tokens:
        yield row("tokens_per_s", "1/s", result.tokens_per_s, job.tokens / healthy.elapsed_s)
    yield row("exposed_share", "1", result.after.exposed_share, healthy.exposed_share)
    if result.stopped_s:
        yield row("stopped", "s", result.stopped_s, None)
    if result.work_factor > 1:
        yield row("work_factor", "1", result.work_factor, 1.0)
