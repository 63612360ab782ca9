"""What a sweep knows of an executor, and what all of them share."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from r2cc_simai.errors import PartitionedError
from r2cc_simai.runners.case_run import Outcome, Setup, Task, case_of, failed_row

MOST_DEATHS = 2  # of processes that ran a case, before the case is blamed


@dataclass(frozen=True)
class Work:
    """Where a sweep keeps its files, and what every process that runs cases needs."""

    folder: Path
    setup: Setup


class Executor(ABC):
    """Runs cases. Used in a `with` block, at whose end nothing that it started is left running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def run(self, tasks: Sequence[Task]) -> Iterator[list[Outcome]]:
        """Yield the outcome of each task once, as they come, those that came together in one list.

        Raises:
            PartitionedError: nothing came for as long as the executor may wait.
            MissingComponentError: a case needs what is not installed.
        """

    def left_over(self) -> Iterator[list[Outcome]]:
        """Yield what finished for an earlier sweep of the same folder after that was gone."""
        yield from ()

    def close(self) -> None:
        """Ends what the executor started; nothing by default."""
        return


class Deaths:
    """Cases whose process died while they ran. One that did so twice is blamed and gets its row; others run again."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def of(self, task: Task, how: str) -> Outcome | None:
        """The outcome of a case whose process died (`how`), if it is not to be tried again."""
        count = self._counts[task.key] = self._counts.get(task.key, 0) + 1
        if count < MOST_DEATHS:
            return None
        return Outcome(task.key, [failed_row(case_of(task), f"its process died {count} times: {how}")], 0.0)


class Patience:
    """How long an executor waits without a sign of life before it gives up."""

    def __init__(self, wait_min: float) -> None:
        self._wait_min = wait_min
        self._since = time.monotonic()

    def news(self) -> None:
        """Something came."""
        self._since = time.monotonic()

    def left_s(self) -> float:
        """Seconds until patience ends."""
        return max(0.0, self._since + 60 * self._wait_min - time.monotonic())

    def check(self, waiting_for: str) -> None:
        """Raises PartitionedError when patience has ended; `waiting_for` says what for."""
        if self.left_s() == 0.0:
            raise PartitionedError(
                f"no case finished within {self._wait_min:g} min while waiting for {waiting_for}; finished cases are "
                "kept, --executor-option wait_min=MINUTES waits longer"
            )
