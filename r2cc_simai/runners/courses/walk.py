"""The walk of a job through time: what it does in each state, what each change costs it, and who is to blame.

- In a state with overhead `slow` the job does 1/(1 + slow) seconds of the healthy job's work a second. The rest is lost
  to the incidents that hold NICs in that state, in equal parts.
- A change of the state costs `extra_s` once: the job stands still so long. It is lost to the incidents that begin, or
  where none does to those that end, in equal parts.
- Where a change ends the job it goes back to its last checkpoint, and starts again after the strategy's costs. A
  checkpoint is made every `checkpoint_s` and when the job starts, at no cost. What the work since then took, and the
  time for which it stands, are lost to the incidents of the change.
- A job that cannot go on at all ends too: it stands for `CRASH_S` and then until a repair lets it start again, on all
  ranks that have NICs then. While it cannot start, the loss is that of the incidents that hold NICs.
- A change while the job stands finds nothing to hit. Parts that fail until the job starts again on replaced hardware
  are among those replaced.
"""

import math
from bisect import bisect_right

from r2cc_simai.runners.courses.condition import Condition
from r2cc_simai.runners.courses.costs import StateCost
from r2cc_simai.runners.courses.course import Course
from r2cc_simai.runners.courses.covers import Change, Cover, changes_of
from r2cc_simai.runners.courses.outcome import NOBODY, Outcome
from r2cc_simai.runners.courses.prices import Prices
from r2cc_simai.runners.courses.stops import CRASH_S

Blame = tuple[int, ...]


def walk(covers: list[Cover], prices: Prices, course: Course) -> Outcome:
    """Walks a job through a course."""
    walker = _Walker(prices, course)
    changes = changes_of(covers, course.horizon_s)
    if changes and changes[0].time_s == 0:
        walker.begin_with(changes.pop(0))
    for change in changes:
        walker.advance(change.time_s)
        walker.change(change)
    walker.advance(course.horizon_s)
    return Outcome(course.horizon_s, walker.done_s, walker.lost_s)


class _Walker:
    def __init__(self, prices: Prices, course: Course) -> None:
        self._prices, self._course = prices, course
        self._condition = Condition()
        self._cost = prices.state({})
        self._now = self.done_s = 0.0
        self._marks: tuple[list[float], list[float]] = ([0.0], [0.0])  # times, and work done by then
        self.lost_s: dict[int, float] = {}
        self._started_s = 0.0
        self._ready_s = 0.0  # until then it stands
        self._stopped_by: Blame = ()
        self._on_spares = False
        self._debts: list[tuple[Blame, float]] = []

    def begin_with(self, change: Change) -> None:
        """Sets what has failed before the job began, and is known."""
        self._condition.apply(change)
        self._look()

    def advance(self, until_s: float) -> None:
        """Lets the job run, or stand, until then."""
        if self._now < self._ready_s:
            stop_s = min(until_s, self._ready_s)
            self._stand(stop_s, self._stopped_by)
            if stop_s < self._ready_s:
                return
            self._start()
        if math.isinf(self._cost.slow):
            self._stand(until_s, self._condition.blamed)
        elif until_s > self._now:
            self._run(until_s)

    def change(self, change: Change) -> None:
        """The state changes now."""
        before = self._condition.fractions
        parts = self._condition.apply(change)
        if self._now < self._ready_s:
            return
        if math.isinf(self._cost.slow):
            self._start()
            return
        if not parts:
            return
        blame = tuple(sorted({cover.incident for cover in change.begins or change.ends}))
        cost = self._prices.change(before, self._condition.fractions, parts)
        if cost.restart_s is not None:
            self._stop(blame, cost.restart_s, cost.replaced)
        elif math.isinf(self._look().slow):
            self._stop(blame, CRASH_S, on_spares=False)
        elif cost.extra_s:
            self._debts.append((blame, cost.extra_s))

    def _look(self) -> StateCost:
        """Takes the cost of the present state; what the job has dropped stays away."""
        self._cost = self._prices.state(self._condition.fractions)
        if self._cost.drops:
            self._condition.hold()
        return self._cost

    def _start(self) -> None:
        """The job starts on what works now, if it can."""
        if self._on_spares:
            self._condition.replace()
        self._condition.renew()
        self._on_spares = False
        self._started_s = self._now
        self._look()

    def _stop(self, blame: Blame, stands_s: float, on_spares: bool) -> None:
        """The job ends and goes back to its last checkpoint."""
        checkpoint_s = max(self._now // self._course.checkpoint_s * self._course.checkpoint_s, self._started_s)
        saved_s = self._done_by(checkpoint_s)
        self._lose(self.done_s - saved_s, blame)
        self.done_s = saved_s
        self._mark()
        self._debts.clear()
        self._stopped_by, self._on_spares = blame, on_spares
        self._ready_s = self._now + stands_s
        if stands_s == 0:
            self._start()

    def _stand(self, until_s: float, blame: Blame) -> None:
        self._lose(until_s - self._now, blame)
        self._now = until_s
        self._mark()

    def _run(self, until_s: float) -> None:
        """Stands for what changes have cost, and then works."""
        left_s = until_s - self._now
        while self._debts and left_s > 0:
            blame, debt_s = self._debts.pop(0)
            paid_s = min(debt_s, left_s)
            if paid_s < debt_s:
                self._debts.insert(0, (blame, debt_s - paid_s))
            self._lose(paid_s, blame)
            left_s -= paid_s
            if paid_s > 0:
                self._now += paid_s
                self._mark()
        worked_s = left_s / (1 + self._cost.slow)
        self._lose(left_s - worked_s, self._condition.blamed)
        self.done_s += worked_s
        self._now = until_s
        self._mark()

    def _lose(self, seconds: float, blame: Blame) -> None:
        if seconds == 0:
            return
        for incident in blame or (NOBODY,):
            self.lost_s[incident] = self.lost_s.get(incident, 0.0) + seconds / max(1, len(blame))

    def _mark(self) -> None:
        self._marks[0].append(self._now)
        self._marks[1].append(self.done_s)

    def _done_by(self, time_s: float) -> float:
        """The work that was done at a time since the job last started."""
        times, done = self._marks
        i = bisect_right(times, time_s) - 1
        if i + 1 == len(times) or times[i + 1] == times[i]:
            return done[i]
        return done[i] + (done[i + 1] - done[i]) * (time_s - times[i]) / (times[i + 1] - times[i])
