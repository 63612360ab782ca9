"""Which operations of a rank may run: what each still waits for, and whom its end sets free."""

import time
from collections.abc import Callable

from r2cc_simai.lab.units import RankUnits


class Operations:
    """The state of one iteration on one rank. `wake[op]` is called once, when operation `op` may run."""

    def __init__(self, units: RankUnits) -> None:
        self.units = units
        self.wake: list[Callable[[], None]] = []
        self.left = 0
        self.progress_s = 0.0
        self._waits: list[int] = []
        self._pass_waits: list[int] = []
        self._pass_left: list[int] = []
        self._of_pass: list[list[int]] = [[] for _ in units.pass_sizes]
        for op, number in enumerate(units.pass_):
            self._of_pass[number].append(op)

    def load(self) -> None:
        """Nothing has run."""
        self.left = len(self.units.lo)
        self._waits = self.units.waits.copy()
        self._pass_waits = self.units.pass_waits.copy()
        self._pass_left = self.units.pass_sizes.copy()

    def ready(self, op: int) -> bool:
        """Whether an operation has nothing to wait for any more."""
        return self._waits[op] == 0 and self._pass_waits[self.units.pass_[op]] == 0

    def complete(self, op: int) -> None:
        """An operation has ended: a unit that came is reduced, or one that was sent is acknowledged."""
        self.left -= 1
        self.progress_s = time.monotonic()
        waits = self._waits
        for then in self.units.dependents[op]:
            waits[then] -= 1
            if not waits[then] and self.ready(then):
                self.wake[then]()
        number = self.units.pass_[op]
        self._pass_left[number] -= 1
        if not self._pass_left[number]:
            for then in self.units.pass_dependents[number]:
                self._pass_waits[then] -= 1
                if not self._pass_waits[then]:
                    self._open(then)

    def _open(self, number: int) -> None:
        # Listed first: what is woken may set others of the pass free, and each is woken once.
        for op in [op for op in self._of_pass[number] if not self._waits[op]]:
            self.wake[op]()
