"""This process runs the cases itself, in their order."""

from collections.abc import Iterator, Sequence

from r2cc_simai.runners.case_run import Outcome, RunCase, Setup, Task, attempt
from r2cc_simai.runners.executors.base import Executor


class Serial(Executor):
    """No process of its own: a case that kills its process ends the sweep, which can be resumed."""

    def __init__(self, setup: Setup, run_case: RunCase) -> None:
        self._setup, self._run_case = setup, run_case

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Outcome]]:
        for task in tasks:
            yield [attempt(task, self._setup, self._run_case)]
