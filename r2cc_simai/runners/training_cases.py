"""Rows of the results table from a training job of a scenario file."""

import hashlib
import re
from pathlib import Path

from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.results import Row
from r2cc_simai.runners.references import with_references
from r2cc_simai.runners.training import failure_induced_row, training_rows
from r2cc_simai.runners.training_day import day_rows
from r2cc_simai.runners.training_scenario import TrainingCase, failures_of
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training.job import TrainingResult, run_training
from r2cc_simai.training.timeline import ranks_beside, write_timeline

LONGEST_NAME = 120
"""Characters of a timeline's file, without what makes it unique."""


def training_case_rows(case: TrainingCase, timelines: Path | None = None) -> list[Row]:
    """The rows of one case, published figures beside them; its timeline goes to the folder `timelines` if it has one.

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
    record = ranks_beside(job, timeline) if block.timelines and timelines else ()
    result = run_training(job, strategy, timeline, record=record)
    if record and timelines:
        _write_timeline(case, result, timelines)
    rows = training_rows(result, block.scenario)
    if block.repair_h is not None:
        rows.append(failure_induced_row(result, block.scenario, 3600.0 * block.repair_h))
    return with_references(rows, block.references, job.cluster, timeline)


def _write_timeline(case: TrainingCase, result: TrainingResult, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9_.=-]+", "_", f"{case.block.scenario}-{case.cluster}-{case.failure}-{case.strategy}")
    own = hashlib.sha256(case.key.encode()).hexdigest()[:8]  # names may be equal where keys are not
    nics = [nic.full_name for nic in result.job.cluster.nics]
    write_timeline(result.hit or result.after, nics, folder / f"{name[:LONGEST_NAME]}-{own}.json")
