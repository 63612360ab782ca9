"""What the ranks of a torch run print, a line of JSON each, and how it is read back."""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from r2cc_simai.errors import InputError
from r2cc_simai.measured.untangle import untangle

SIGN = "[torch-rank] "


class _Report:
    """A report that is a line of JSON behind `SIGN`."""

    def print(self) -> None:
        """Writes it in one piece, so that lines of several ranks do not mix."""
        values = {"kind": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]
        sys.stdout.write(SIGN + json.dumps(values) + "\n")
        sys.stdout.flush()


@dataclass(frozen=True)
class StartReport(_Report):
    """A rank has met the others: its host, torch's version, and the rounds that it has."""

    rank: int
    host: str
    torch: str
    rounds: int


@dataclass(frozen=True)
class IterationReport(_Report):
    """An iteration ended on a rank, `time_s` after the barrier before it; `wrong` elements were found."""

    rank: int
    iteration: int
    warmup: bool
    time_s: float
    wrong: int


@dataclass(frozen=True)
class ErrorReport(_Report):
    """A rank gave up; what it waited for, or what was wrong."""

    rank: int
    error: str


_KINDS: dict[str, type[_Report]] = {one.__name__: one for one in (StartReport, IterationReport, ErrorReport)}


@dataclass
class Reports:
    """All reports of a run, by rank."""

    starts: dict[int, StartReport] = field(default_factory=dict)
    iterations: dict[int, dict[int, IterationReport]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)

    def complete(self, n_ranks: int) -> list[int]:
        """Iterations that every rank has ended, warm-up left out."""
        if len(self.iterations) < n_ranks:
            return []
        ended = [{k for k, one in own.items() if not one.warmup} for own in self.iterations.values()]
        return sorted(set.intersection(*ended))

    def time_s(self, iteration: int) -> float:
        """Seconds of an iteration: those of the rank that took longest."""
        return max(own[iteration].time_s for own in self.iterations.values())

    def wrong(self) -> int:
        """Wrong elements of all ranks and iterations, warm-up included."""
        return sum(one.wrong for own in self.iterations.values() for one in own.values())


def read_reports(name: str, text: str) -> Reports:
    """The reports in the output of a run.

    Raises:
        InputError: a line that begins as a report and is none.
    """
    found = Reports()
    for number, line in enumerate(untangle(text), start=1):
        _, sign, body = line.partition(SIGN)
        if sign:
            _add(found, _report(body, f"{name}:{number}"))
    return found


def _report(body: str, where: str) -> Any:
    try:
        values = json.loads(body)
        return _KINDS[values.pop("kind")](**values)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{where}: expected a report of a rank, found {body[:60]!r}") from None


def _add(found: Reports, one: Any) -> None:
    if isinstance(one, StartReport):
        found.starts[one.rank] = one
    elif isinstance(one, IterationReport):
        found.iterations.setdefault(one.rank, {})[one.iteration] = one
    else:
        found.errors.setdefault(one.rank, one.error)


def first_error(reports: Reports, ranks: Iterable[int]) -> str:
    """What the first rank that gave up said; nothing where none did."""
    for rank in ranks:
        if rank in reports.errors:
            return f"rank {rank}: {reports.errors[rank]}"
    return ""
