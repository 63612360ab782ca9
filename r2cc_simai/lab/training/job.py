"""Training jobs in the lab: once without a failure, and once under each strategy with a NIC that fails in the middle.

What is judged follows from the schedules alone (`in_process`). Let c be the first step whose AllReduce runs by another
schedule than that of the healthy job (none with hot repair). Then the losses of steps 1..c and the parameters after
steps 1..c-1 are those of the healthy job bit for bit, and the final perplexity differs by less than a tolerance. Beside
that every job is trained again in one process, with the same schedules: all its bits must be the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.errors import PartitionedError
from r2cc_simai.lab.cuts import Done
from r2cc_simai.lab.record import Iteration
from r2cc_simai.lab.runner import CaseRun, running_lab
from r2cc_simai.lab.spec import HEALTHY, LabCase, LabSpec
from r2cc_simai.lab.training.history import History, history_of
from r2cc_simai.lab.training.in_process import train
from r2cc_simai.lab.training.replica import Step
from r2cc_simai.lab.training.settings import TrainingSpec, jobs_of
from r2cc_simai.lab.training.worker import training_worker


@dataclass(frozen=True)
class Job:
    """A job that was trained in the lab, and the same in one process (`reference`). `replanned` is the first step whose
    AllReduce ran by another schedule than that of step 1; None: all ran by that one."""

    case: LabCase
    history: History
    reference: History
    replanned: int | None
    iterations: tuple[Iteration, ...]
    done: tuple[Done, ...]
    notes: tuple[str, ...]

    @property
    def recoveries(self) -> int:
        """Streams that moved to another NIC."""
        return sum(len(one.recoveries) for one in self.iterations)


@dataclass(frozen=True)
class Verdict:
    """A job beside the healthy one: numbers of steps that are equal bit for bit from the first on, the difference of
    the final perplexity in percent, and what is wrong (nothing, if all is as it has to be)."""

    same_losses: int
    same_parameters: int
    perplexity_pct: float
    faults: tuple[str, ...]


def run_job(spec: TrainingSpec, lab_spec: LabSpec, name: str, case: LabCase) -> Job:
    """Trains one job in the lab.

    Raises:
        MissingComponentError: the machine or the user may not make network namespaces.
        PartitionedError: ranks are left without a path, or something does not end within its limit.
        MismatchError: the ranks' parameters have drifted apart.
    """
    told: list[list[Step]] = []
    schedules: list[Schedule] = []
    running = running_lab(lab_spec, name, training_worker(spec))
    with running as lab, lab.set_up(case, list(case.cuts(lab.cluster))) as run:
        for step in range(1, spec.steps + 1):
            _iterate(run, step, spec.failure.step if case.script else None)
            schedules.append(run.plan.schedule)
            told.append([cast(Step, result.told) for result in run.results])
        if not run.script.finished:
            raise PartitionedError(f"lab: {case.key}: not all of it has happened by the end of the job")
        iterations, done, ranks = tuple(run.iterations), run.done, lab.cluster.n_ranks
    reference = train(spec, ranks, lambda step: schedules[step - 1])
    replanned = next((k for k, one in enumerate(schedules, 1) if not same_schedule(one, schedules[0])), None)
    notes = tuple(dict.fromkeys(one.note for one in iterations if one.note))
    return Job(case, history_of(told), reference, replanned, iterations, done, notes)


def run_jobs(
    spec: TrainingSpec, lab_spec: LabSpec, name: str, finished: Callable[[Job], None] = lambda _: None
) -> list[Job]:
    """All jobs of a training file, the healthy one first; raises as `run_job`."""
    jobs = []
    for case in jobs_of(spec):
        jobs.append(run_job(spec, lab_spec, name, case))
        finished(jobs[-1])
    return jobs


def judge(job: Job, healthy: Job, tolerance_pct: float) -> Verdict:
    """What has to be equal, and whether it is."""
    own, steps = job.history, len(job.history.losses)
    same_losses, same_parameters = own.same_losses(healthy.history), own.same_parameters(healthy.history)
    perplexity_pct = own.perplexity_difference_pct(healthy.history)
    changed = job.replanned or steps + 1
    faults = []
    if same_losses < min(changed, steps):
        faults.append(f"the loss of step {same_losses + 1} is not that of the healthy job")
    if same_parameters < changed - 1:
        faults.append(f"the parameters after step {same_parameters + 1} are not those of the healthy job")
    if own != job.reference:
        same = own.same_parameters(job.reference)
        faults.append(f"after step {same + 1} it is not what its schedules give in one process")
    if abs(perplexity_pct) >= tolerance_pct:
        faults.append(f"the perplexity differs by {perplexity_pct:+.3g}% (tolerance {tolerance_pct:g}%)")
    if job.done and job.case.strategy != HEALTHY and not job.recoveries:
        faults.append("no stream moved to another NIC: the failure has hit no AllReduce")
    return Verdict(same_losses, same_parameters, perplexity_pct, tuple(faults))


def same_schedule(one: Schedule, other: Schedule) -> bool:
    """Whether two schedules make the same additions in the same order."""
    if len(one.passes) != len(other.passes):
        return False
    for a, b in zip(one.passes, other.passes, strict=True):
        hops = (a.reduce_hops, a.copy_hops, a.cyclic, a.after) == (b.reduce_hops, b.copy_hops, b.cyclic, b.after)
        routes = np.array_equal(one.routes[a.route], other.routes[b.route])
        if not hops or not routes or not all(map(np.array_equal, (a.lo, a.hi, a.start), (b.lo, b.hi, b.start))):
            return False
    return True


def _iterate(run: CaseRun, step: int, failure: int | None) -> None:
    """One step. From the step of the failure on, the script is carried out until it has ended."""
    run.replan()
    if failure is None or step < failure:
        run.iterate("steady", 0)
        return
    run.under_script = step == failure or not run.script.finished
    run.iterate("cut" if step == failure else "during" if run.under_script else "after", 0)
