"""What a collective works on: where the data of a rank come from, and what becomes of the result."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from r2cc_simai.lab.reduce import Elements, Reduction
from r2cc_simai.lab.verify import Expectation, contribution, fill
from r2cc_simai.lab.work import Collective


@dataclass(frozen=True)
class Outcome:
    """What was found of a result: the number of wrong elements, what the first of them look like, and whatever else
    the runner is to be told (it must be possible to pickle it)."""

    wrong_elements: int = 0
    error: str | None = None
    told: object = None


class Payload(Protocol):
    """The data of one rank. It outlives plans; its methods are called in the rank's process, between collectives."""

    def prepare(self, collective: Collective, rank: int, ranks: int) -> None:
        """The next iterations run this collective.

        Raises:
            InputError: the data do not fit it.
        """

    def load(self, iteration: int, buffer: Elements) -> None:
        """Writes what the rank brings to an iteration to `buffer`, all of the collective's elements.

        Raises:
            InputError: the data do not fit the element type.
        """

    def finish(self, buffer: Elements) -> Iterator[Outcome | None]:
        """Takes the result. Yields None as often as other things can be seen to meanwhile, then the outcome."""


class CheckedData:
    """Data whose result is known exactly (`verify`), and every element of which is checked."""

    def prepare(self, collective: Collective, rank: int, ranks: int) -> None:
        """Expects what the collective must leave on this rank."""
        self._rank, self._ranks = rank, ranks
        self._reduction = Reduction(collective.dtype, collective.op)
        self._expectation = Expectation(collective, rank, ranks)

    def load(self, iteration: int, buffer: Elements) -> None:
        """Whole numbers that differ from iteration to iteration."""
        fill(buffer, contribution(self._rank, iteration, self._reduction, self._ranks))
        self._expectation.load(iteration)

    def finish(self, buffer: Elements) -> Iterator[Outcome | None]:
        """Checks the result block by block."""
        wrong, first = 0, None
        for lo, hi, mask in self._expectation.blocks():
            found = self._expectation.check(buffer, lo, hi, mask)
            if found is not None:
                wrong += found.elements
                first = first or found.first
            yield None
        yield Outcome(wrong, first)
