"""Ray: batches of cases as tasks that send every outcome as it comes."""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from r2cc_simai.config import Strict
from r2cc_simai.errors import MissingComponentError, SimaiError
from r2cc_simai.runners.case_run import Outcome, Setup, Task, attempt
from r2cc_simai.runners.executors.base import Deaths, Executor, Patience, Work
from r2cc_simai.runners.executors.queue import CaseQueue

PER_CORE = 4  # batches, so that the last ones end together
MOST_CASES = 50  # in a batch


class RayOptions(Strict):
    """`--executor-option` of Ray: the cluster's `address` (none: Ray starts on this machine, with `cpus` cores).

    The sweep ends when no case finishes for `wait_min`.
    """

    address: str | None = None
    cpus: Annotated[int, Field(ge=1)] | None = None
    wait_min: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 720.0


@dataclass(eq=False)
class _Batch:
    """Cases of a task that have no outcome yet, in their order."""

    left: dict[str, Task] = field(default_factory=dict)


class Ray(Executor):
    """A Ray cluster, or Ray on this machine for as long as the sweep runs."""

    def __init__(self, work: Work, options: RayOptions) -> None:
        self._setup, self._options = work.setup, options
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise MissingComponentError("ray is not installed; pip install 'r2cc-simai[ray]'") from None
        self._ray: Any = ray
        self._start()

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Outcome]]:
        deaths, patience = Deaths(), Patience(self._options.wait_min)
        cores = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        most = max(1, min(MOST_CASES, len(tasks) // (PER_CORE * cores)))
        running = dict(self._submit(batch) for batch in CaseQueue(tasks).batches(most))
        while running:
            ready, _ = self._ray.wait(list(running), num_returns=1, timeout=patience.left_s(), fetch_local=False)
            if not ready:
                patience.check(f"{len(running)} batches of Ray")
                continue
            batch = running[ready[0]]
            outcome, ended = self._next(ready[0], batch, deaths)
            if outcome is not None:
                del batch.left[outcome.key]
                patience.news()
                yield [outcome]
            if ended:
                del running[ready[0]]
                running |= dict(self._submit(part) for part in _again(batch))

    def close(self) -> None:
        self._ray.shutdown()

    def _start(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Ray's own, about its future
            own = {} if self._options.address else {"num_cpus": self._options.cpus, "include_dashboard": False}
            self._ray.init(address=self._options.address, log_to_driver=False, logging_level="error", **own)
        # A case that kills its process must not run again unseen: this executor counts the deaths.
        self._task = self._ray.remote(num_returns="streaming", max_retries=0)(run_batch)

    def _submit(self, cases: Sequence[Task]) -> tuple[Any, _Batch]:
        return self._task.remote(list(cases), self._setup), _Batch({task.key: task for task in cases})

    def _next(self, stream: Any, batch: _Batch, deaths: Deaths) -> tuple[Outcome | None, bool]:
        """The next outcome of a batch, and whether its task has ended."""
        try:
            outcome = self._ray.get(next(stream))
        except StopIteration:
            return None, True
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            suspect = next(iter(batch.left.values()), None)
            died = None if suspect is None else deaths.of(suspect, " ".join(str(error).split())[:200])
            return died, True
        if isinstance(outcome, SimaiError):
            raise outcome
        assert isinstance(outcome, Outcome)
        return outcome, False


def _again(batch: _Batch) -> list[list[Task]]:
    """What a task that has ended left: its first case alone, it may have killed the process; then the others."""
    left = list(batch.left.values())
    return [part for part in (left[:1], left[1:]) if part]


def run_batch(tasks: Sequence[Task], setup: Setup) -> Iterator[Outcome | SimaiError]:
    """What a task does: yields the outcome of each case as it comes."""
    for task in tasks:
        try:
            yield attempt(task, setup)
        except SimaiError as error:
            yield error
            return
