"""Rows of the results table from jobs trained in the lab.

`measured` is what the lab gave, `simulated` the same job in one process, `ideal` the healthy job in the lab; so the
overhead of a perplexity is its difference from the healthy one in percent.
"""

from collections.abc import Iterator
from dataclasses import asdict
from statistics import median
from typing import Any

from r2cc_simai.lab.record import environment
from r2cc_simai.lab.rows import BACKEND
from r2cc_simai.lab.spec import LabSpec
from r2cc_simai.lab.training.job import Job, Verdict
from r2cc_simai.lab.training.settings import TrainingSpec
from r2cc_simai.results import Row, make_row

PREFIX = "training-lab-"
"""Before the training file's name in a row's scenario."""

FAULTS = "faults"


def job_rows(
    name: str, spec: TrainingSpec, lab: LabSpec, job: Job, healthy: Job, verdict: Verdict, raw: str
) -> list[Row]:
    """All rows of a job; `raw` is its raw file, relative to the run folder."""
    machine = ", ".join(f"{key} {value}" for key, value in environment().items())
    first = f"; {verdict.faults[0]}" if verdict.faults else ""
    common: dict[str, Any] = {
        "scenario": PREFIX + name,
        "cluster": spec.lab,
        "workload": f"{lab.bytes // lab.element_bytes} parameters, {spec.steps} steps",
        "pattern": f"step {spec.failure.step}: {' '.join(job.case.script)}" if job.case.script else "none",
        "strategy": job.case.strategy,
        "backend": BACKEND,
        "bytes": lab.bytes,
        "source": f"{raw}{first}; {machine}",
    }
    counts = {
        "identical_losses": verdict.same_losses,
        "identical_parameters": verdict.same_parameters,
        "replanned_in": job.replanned or 0,
        "recoveries": job.recoveries,
        FAULTS: len(verdict.faults),
    }
    own, same, ideal = job.history, job.reference, healthy.history
    rows = [
        make_row(
            **common,
            metric="perplexity",
            unit="1",
            simulated=same.perplexity,
            ideal=ideal.perplexity,
            measured=own.perplexity,
        )
    ]
    for step, losses in enumerate(zip(same.losses, ideal.losses, own.losses, strict=True), 1):
        simulated, base, measured = losses
        rows.append(
            make_row(**common, metric=f"loss[{step}]", unit="nat", simulated=simulated, ideal=base, measured=measured)
        )
    rows += [
        make_row(**common, metric=metric, unit="1", simulated=None, measured=float(value))
        for metric, value in counts.items()
    ]
    return rows + [
        make_row(**common, metric=metric, unit="s", simulated=None, measured=value)
        for metric, value in _times(job, spec.failure.step)
    ]


def record(job: Job, verdict: Verdict) -> dict[str, Any]:
    """A job as its raw file holds it."""
    parts = {
        "strategy": job.case.strategy,
        "script": job.case.script,
        "replanned_in_step": job.replanned,
        "notes": job.notes,
        "verdict": asdict(verdict),
        "history": asdict(job.history),
        "reference": asdict(job.reference),
        "done": [asdict(one) for one in job.done],
        "iterations": [asdict(one) for one in job.iterations],
    }
    return {"environment": environment(), **parts}


def _times(job: Job, failure: int) -> Iterator[tuple[str, float]]:
    """Seconds of an AllReduce: median before the step of the failure, in that step, median after it."""
    times = [one.time_s for one in job.iterations]
    if failure > 1:
        yield "time_before", median(times[: failure - 1])
    yield "time_cut", times[failure - 1]
    yield "time_after", median(times[failure:])
