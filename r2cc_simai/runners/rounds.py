"""Seeds in rounds: a matrix with `stop` draws a batch of seeds after another, until its means are known well enough.

All matrices take their next batch in the same round. What runs depends on the rows alone, never on how many processes
there are or in which order cases finish.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from r2cc_simai.results import Row
from r2cc_simai.results.statistics.stopping import Stop, enough
from r2cc_simai.runners.case_run import AnyCase
from r2cc_simai.runners.matrix_cases import MatrixCase
from r2cc_simai.runners.scenario import Scenario

RowsOf = Callable[[Sequence[AnyCase]], list[Row]]


@dataclass(frozen=True)
class Stopped:
    """A matrix that needed fewer seeds than it has."""

    scenario: str
    ran: int
    of: int


class Rounds:
    """Which cases of a scenario run, round by round."""

    def __init__(self, scenario: Scenario, cases: Sequence[AnyCase]) -> None:
        self._stops = {index: block.stop for index, block in enumerate(scenario.matrix) if block.stop is not None}
        self._batches = {index: _batches(cases, index, stop) for index, stop in self._stops.items()}
        self._cases = cases
        self.stopped: list[Stopped] = []
        self.left_out = 0

    def run(self, rows_of: RowsOf) -> Iterator[list[AnyCase]]:
        """Yield the cases of each round; before the next one is asked for, they have run. `rows_of`: their rows."""
        going = {index: _Draws(batches) for index, batches in self._batches.items()}
        first = [case for case in self._cases if not (isinstance(case, MatrixCase) and case.index in going)]
        while True:
            now = [case for draws in going.values() for case in draws.next()]
            if not (first or now):
                return
            yield [*first, *now]
            first = []
            for index in [*going]:
                draws = going[index]
                draws.rows += rows_of(draws.batches[draws.ran - 1])
                if draws.ran == len(draws.batches):
                    del going[index]
                elif enough(draws.rows, self._stops[index]):
                    self._note(draws)
                    del going[index]

    def _note(self, draws: "_Draws") -> None:
        seeds = [len({case.seed for case in batch} - {None}) for batch in draws.batches]
        self.left_out += sum(len(batch) for batch in draws.batches[draws.ran :])
        self.stopped.append(Stopped(draws.batches[0][0].scenario, sum(seeds[: draws.ran]), sum(seeds)))


class _Draws:
    """The batches of one matrix, how many of them ran, and their rows."""

    def __init__(self, batches: list[list[MatrixCase]]) -> None:
        self.batches, self.ran = batches, 0
        self.rows: list[Row] = []

    def next(self) -> list[MatrixCase]:
        self.ran += 1
        return self.batches[self.ran - 1]


def _batches(cases: Sequence[AnyCase], index: int, stop: Stop) -> list[list[MatrixCase]]:
    """The cases of a matrix by batches of seeds, in the order in which the seeds stand; what draws nothing is first."""
    own = [case for case in cases if isinstance(case, MatrixCase) and case.index == index]
    place = {seed: n for n, seed in enumerate(dict.fromkeys(case.seed for case in own if case.seed is not None))}
    batches: dict[int, list[MatrixCase]] = {}
    for case in own:
        batches.setdefault(0 if case.seed is None else place[case.seed] // stop.batch, []).append(case)
    return [batches[number] for number in sorted(batches)]
