"""Rows of the results table from a training job of a scenario file."""

from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.results import Row
from r2cc_simai.runners.references import with_references
from r2cc_simai.runners.training import failure_induced_row, training_rows
from r2cc_simai.runners.training_day import day_rows
from r2cc_simai.runners.training_scenario import TrainingCase, failures_of
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training.job import run_training


def training_case_rows(case: TrainingCase) -> list[Row]:
    """The rows of one case, published figures beside them.

    Raises:
        PartitionedError: the failures leave ranks without a path, or the job cannot go on.
        InputError: the strategy does not apply to such a job.
    """
    block = case.block
    job = block.job_on(case.cluster).job()
    strategy = parse_strategy(case.strategy)
    if block.day is not None:
        return day_rows(job, strategy, block.day, block.scenario)
    timeline = parse_failures(failures_of(case.failure), job.cluster)
    result = run_training(job, strategy, timeline)
    rows = training_rows(result, block.scenario)
    if block.repair_h is not None:
        rows.append(failure_induced_row(result, block.scenario, 3600.0 * block.repair_h))
    return with_references(rows, block.references, job.cluster, timeline)
