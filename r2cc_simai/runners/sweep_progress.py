"""How far a sweep is: a bar on a terminal, elsewhere a line every so often."""

import time
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from r2cc_simai.runners.case_run import Outcome

LINE_EVERY_S = 30.0


class Tally:
    """What a sweep has done so far, in this process and before."""

    def __init__(self, total: int, before: int) -> None:
        self.total = total
        self.done = self._before = before
        self.failures: list[Outcome] = []
        self.lookups = self.hits = 0
        self._began = time.monotonic()

    def add(self, outcome: Outcome) -> None:
        """Counts a case that has finished."""
        self.done += 1
        self.lookups += outcome.lookups
        self.hits += outcome.hits
        if outcome.error is not None:
            self.failures.append(outcome)

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    @property
    def ran(self) -> int:
        """Cases that finished since it began."""
        return self.done - self._before

    @property
    def rate(self) -> float:
        """Cases per second."""
        return self.ran / self.elapsed_s if self.ran else 0.0

    @property
    def status(self) -> str:
        """Rate, time left, failures, and how often the cost of a state was known: `12.3 cases/s, 0:41 left, ...`."""
        left_s = (self.total - self.done) / self.rate if self.rate else None
        parts = [f"{self.rate:.3g} cases/s", f"{'?' if left_s is None else clock(left_s)} left"]
        parts.append(f"{len(self.failures)} failed")
        if self.lookups:
            parts.append(f"cache {100 * self.hits / self.lookups:.1f}%")
        return ", ".join(parts)

    @property
    def summary(self) -> str:
        """What to say at the end."""
        cases = f"{self.ran:,} of {self.done:,}" if self.ran < self.done else f"{self.ran:,}"
        text = f"{cases} cases in {self.elapsed_s:.1f} s"
        if not self.lookups:
            return text
        share = 100 * self.hits / self.lookups
        return f"{text}; state cache: {self.hits:,} of {self.lookups:,} looked-up costs were there ({share:.1f}%)"


class Shown(Protocol):
    """Shows a tally while it changes."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def update(self) -> None:
        """The tally has changed."""
        ...


def shown(tally: Tally, console: Console | None = None) -> Shown:
    """A bar on a terminal, else lines; on stderr."""
    console = console or Console(stderr=True)
    return _Bar(tally, console) if console.is_terminal else _Lines(tally, console)


def clock(seconds: float) -> str:
    """`0:41`, `12:05`, `3:00:00`."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Bar:
    def __init__(self, tally: Tally, console: Console) -> None:
        columns = (TextColumn("sweep"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._tally, self._progress = tally, Progress(*columns, console=console)
        self._task: TaskID = self._progress.add_task("", total=tally.total, completed=tally.done)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self) -> None:
        tally = self._tally
        self._progress.update(self._task, total=tally.total, completed=tally.done, description=tally.status)


class _Lines:
    def __init__(self, tally: Tally, console: Console) -> None:
        self._tally, self._console = tally, console
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self) -> None:
        if time.monotonic() - self._last >= LINE_EVERY_S:
            self._last = time.monotonic()
            tally = self._tally
            self._console.print(f"sweep: {tally.done:,} of {tally.total:,} cases, {tally.status}", highlight=False)
