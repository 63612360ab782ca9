"""Slurm through submitit: job arrays over batches of cases, whose outcomes come through the spool of the run folder.

A job goes on when the sweep that submitted it is killed. The next sweep of the folder takes what has come, waits for
jobs that are still queued or running, and submits the cases of those that are gone.
"""

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from r2cc_simai.config import Strict
from r2cc_simai.errors import MissingComponentError
from r2cc_simai.runners.case_run import Outcome, Task
from r2cc_simai.runners.executors.base import Deaths, Executor, Patience, Work
from r2cc_simai.runners.executors.queue import CaseQueue
from r2cc_simai.runners.executors.spool import Spool, Submitted, run_batch

if TYPE_CHECKING:
    from submitit import Job

POLL_S = 0.2
MOST_POLL_S = 5.0
GRACE_S = 3.0  # after the end of a job of a cluster, for what it wrote to appear on a network file system
ENDS_S = 30.0  # limit for cancelled jobs to end

Minutes = Annotated[int, Field(ge=1)]


class SlurmOptions(Strict):
    """`--executor-option` of Slurm: limits and place of each job, and how many cases (`batch`) it runs.

    The sweep ends when no case finishes for `wait_min`, time in the queue included. `cluster=local` runs the jobs as
    processes of this machine.
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    timeout_min: Minutes = 60
    cpus: Annotated[int, Field(ge=1)] = 1
    mem_gb: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 4.0
    parallel: Annotated[int, Field(ge=1)] = 256
    batch: Annotated[int, Field(ge=1)] = 50
    wait_min: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1440.0
    cluster: Literal["slurm", "local"] = "slurm"


@dataclass(eq=False)
class _Running:
    """A batch that is queued or runs: its cases without an outcome, in their order, and when the job was seen ended."""

    job: "Job[None]"
    left: dict[str, Task] = field(default_factory=dict)
    ended_at: float | None = None


class Slurm(Executor):
    """Jobs of a Slurm cluster. Leaving the `with` block cancels those that have not ended."""

    def __init__(self, work: Work, options: SlurmOptions) -> None:
        self._setup, self._options = work.setup, options
        self._jobs_folder = work.folder.resolve() / "slurm"
        self._spool = Spool(work.folder.resolve() / "spool")
        self._submitit = _auto_executor(self._jobs_folder, options)
        self._running: dict[str, _Running] = {}

    def left_over(self) -> Iterator[list[Outcome]]:
        yield self._spool.news()

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Outcome]]:
        waiting = {task.key: task for task in tasks}
        deaths, patience = Deaths(), Patience(self._options.wait_min)
        self._adopt(waiting)
        adopted = {key for running in self._running.values() for key in running.left}
        self._submit(list(CaseQueue(t for t in tasks if t.key not in adopted).batches(self._options.batch)))
        pause_s = POLL_S
        while waiting:
            ended = [running for running in self._running.values() if _has_ended(running)]
            outcomes = self._arrived(waiting)
            outcomes += [one for running in ended for one in self._lost(running, waiting, deaths)]
            if outcomes:
                patience.news()
                pause_s = POLL_S
                yield outcomes
                continue
            patience.check(f"{len(waiting)} cases in {len(self._running)} jobs ({self._states()})")
            time.sleep(min(pause_s, patience.left_s() or pause_s))
            if self._options.cluster != "local":
                pause_s = min(MOST_POLL_S, 1.5 * pause_s)

    def close(self) -> None:
        for running in self._running.values():
            if running.left:
                running.job.cancel(check=False)
        until = time.monotonic() + ENDS_S
        if self._options.cluster == "local":  # processes of this machine; Slurm ends the others
            while any(_is_alive(r.job) for r in self._running.values()) and time.monotonic() < until:
                time.sleep(POLL_S)
        self._running = {}

    def _submit(self, batches: Sequence[Sequence[Task]]) -> None:
        if not batches:
            return
        names = [uuid.uuid4().hex for _ in batches]
        files = [self._spool.file(name) for name in names]
        jobs = self._submitit.map_array(run_batch, batches, [self._setup] * len(batches), files)
        self._spool.add(
            [
                Submitted(name, job.job_id, self._options.cluster, tuple(task.key for task in batch))
                for name, job, batch in zip(names, jobs, batches, strict=True)
            ]
        )
        for name, job, batch in zip(names, jobs, batches, strict=True):
            self._running[name] = _Running(job, {task.key: task for task in batch})

    def _adopt(self, waiting: dict[str, Task]) -> None:
        """Jobs of an earlier sweep that are still queued or running are waited for."""
        kind = type(self._submitit._executor).job_class
        for one in self._spool.submitted():
            left = {key: waiting[key] for key in one.cases if key in waiting}
            if left and one.batch not in self._running and one.where == self._options.cluster:
                job = kind(folder=self._jobs_folder, job_id=one.job)
                if _is_alive(job):
                    self._running[one.batch] = _Running(job, left)

    def _arrived(self, waiting: dict[str, Task]) -> list[Outcome]:
        """Outcomes that have come of cases that are waited for; of a case that ran twice the first counts."""
        outcomes = [one for one in self._spool.news() if waiting.pop(one.key, None) is not None]
        for name, running in [*self._running.items()]:
            for key in [key for key in running.left if key not in waiting]:
                del running.left[key]
            if not running.left and _has_ended(running):
                del self._running[name]
        return outcomes

    def _lost(self, running: _Running, waiting: dict[str, Task], deaths: Deaths) -> list[Outcome]:
        """A job has ended and left cases without an outcome: the first is the suspect and runs alone."""
        grace_s = 0.0 if self._options.cluster == "local" else GRACE_S
        if not running.left or running.ended_at is None or time.monotonic() < running.ended_at + grace_s:
            return []
        suspect, *others = running.left.values()
        running.left = {}
        blamed = deaths.of(suspect, f"job {running.job.job_id}, {running.job.state}, see {running.job.paths.stderr}")
        self._submit([[task] for task in ([] if blamed else [suspect])] + ([others] if others else []))
        if blamed is not None:
            del waiting[suspect.key]
        return [] if blamed is None else [blamed]

    def _states(self) -> str:
        states = [str(running.job.state).lower() for running in self._running.values()]
        return ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))) or "none"


def _auto_executor(folder: Any, options: SlurmOptions) -> Any:
    try:
        import submitit
    except ImportError:
        raise MissingComponentError("submitit is not installed; pip install 'r2cc-simai[slurm]'") from None
    try:
        made = submitit.AutoExecutor(folder=folder, cluster=options.cluster)
    except RuntimeError as error:
        raise MissingComponentError(f"no Slurm here ({' '.join(str(error).split())}); sbatch has to be found") from None
    own = {"partition": options.partition, "account": options.account, "qos": options.qos}
    slurm = {f"slurm_{key}": value for key, value in own.items() if value is not None}
    made.update_parameters(
        name="r2cc-simai",
        timeout_min=options.timeout_min,
        cpus_per_task=options.cpus,
        mem_gb=options.mem_gb,
        slurm_array_parallelism=options.parallel,
        **slurm,
    )
    return made


def _has_ended(running: _Running) -> bool:
    if running.ended_at is None and not _is_alive(running.job):
        running.ended_at = time.monotonic()
    return running.ended_at is not None


def _is_alive(job: "Job[None]") -> bool:
    """Whether a job is queued or running, as far as can be told."""
    import submitit

    if isinstance(job, submitit.LocalJob) and job._process is None:  # of an earlier sweep
        return _exists(int(job.job_id)) and not job.paths.result_pickle.exists()
    return not job.done()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
