"""A day of training in which NICs fail at drawn times: what each strategy gets done of it.

One failure is simulated: what the iteration that it hits costs (`hit`), and what each later iteration costs more
(`slow`, the overhead). A day is then walked through. At a failure the job loses `hit`, or where it restarts it stops
for the strategy's costs and goes back to its last checkpoint. From then on the same work takes 1 + slow times as long;
n failures at once are taken to cost n * slow, which is too much where they are on different servers. A repair ends its
share of that, unless the strategy has dropped ranks: those stay away. Failures are a Poisson process (rate per GPU).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.view import View
from r2cc_simai.errors import InputError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.measured import published
from r2cc_simai.results import Row, make_row
from r2cc_simai.runners.training import BACKEND
from r2cc_simai.runners.training_scenario import Day
from r2cc_simai.strategies.base import Aborted, Restart, Strategy
from r2cc_simai.strategies.nccl import Nccl
from r2cc_simai.training.job import TrainingJob, TrainingResult, run_training

Floats = NDArray[np.float64]
HOUR_S = 3600.0
RATE = "network and NIC events"  # row of reports/published/reliability.csv


@dataclass(frozen=True)
class Cost:
    """What one failure costs. `hit_s`: once; `slow`: the overhead of later iterations, until the repair or, with
    `stays`, for good. `restart_s`: the job stops so long and goes back to its last checkpoint; None: it does not."""

    hit_s: float
    slow: float
    stays: bool
    restart_s: float | None


@dataclass(frozen=True, eq=False)
class Course:
    """Work done over a day: seconds, and seconds of the healthy job's work that are done by then, shape (n,)."""

    time_s: Floats
    done_s: Floats

    @property
    def share(self) -> float:
        """Effective training time: work done over the work that the healthy job does."""
        return float(self.done_s[-1] / self.time_s[-1])


def day_rows(job: TrainingJob, strategy: Strategy, day: Day, scenario: str) -> list[Row]:
    """`effective_time`, the mean share of `draws` days, its standard error and its least value. Of the day with most
    failures, or the first of such, also the course, `tokens[h]` at hour h, and when they come, `failure[n]`.

    Raises:
        PartitionedError: the job cannot go on after a failure.
        InputError: no rate of failures is given, and none is published.
    """
    rate = day.events_per_gpu_day or published_rate()
    cost = cost_of_failure(job, strategy)
    days = drawn_days(day, rate * len(job.ranks))
    shares = np.array([walk(cost, failures, day).share for failures in days])
    shown = max(days, key=len)
    expected = rate * len(job.ranks) * day.hours / 24
    pattern = (
        f"{rate:.3g} failures per GPU and day, {expected:.2g} in {day.hours:g} h, repaired after {day.repair_h:g} h"
    )

    def row(metric: str, unit: str, simulated: float, ideal: float | None) -> Row:
        return make_row(
            scenario=scenario,
            cluster=job.cluster.name,
            workload=f"{job.name} checkpoint_min={day.checkpoint_min:g} days={day.draws}",
            pattern=pattern,
            strategy=strategy.spec,
            backend=BACKEND,
            bytes=0,
            metric=metric,
            unit=unit,
            simulated=simulated,
            ideal=ideal,
        )

    error = float(shares.std(ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else 0.0
    rows = [
        row("effective_time", "1", float(shares.mean()), None),
        row("effective_time_stderr", "1", error, None),
        row("effective_time_least", "1", float(shares.min()), None),
    ]
    rows += [row(f"failure[{n}]", "h", failure / HOUR_S, None) for n, failure in enumerate(shown)]
    course = walk(cost, shown, day)
    per_s = (job.tokens or 1) / job.healthy.elapsed_s
    for time_s, done_s in zip(course.time_s, course.done_s, strict=True):
        rows.append(row(f"tokens[{time_s / HOUR_S:.6f}]", "1", float(done_s) * per_s, float(time_s) * per_s))
    return rows


def cost_of_failure(job: TrainingJob, strategy: Strategy) -> Cost:
    """Simulates a failure of the first NIC in the middle of an iteration.

    Raises:
        PartitionedError: the job cannot go on.
    """
    # Where the job goes back to a checkpoint, the day knows to which one; the strategy's average is left out.
    own = replace(strategy, lost_min=0.0) if isinstance(strategy, Nccl) else strategy
    nic = job.cluster.nics[0].full_name
    middle = parse_failures([f"{nic}@{job.healthy.elapsed_s / 2:.9f}"], job.cluster)
    result = run_training(job, own, middle)
    restart_s = _restart_s(own, result)
    return Cost(
        hit_s=result.hit_extra_s if restart_s is None else 0.0,
        slow=result.overhead,
        stays=bool(result.dropped),
        restart_s=restart_s,
    )


def _restart_s(strategy: Strategy, result: TrainingResult) -> float | None:
    """Seconds for which the job stops, if the strategy restarts it."""
    hit = result.hit
    if hit is None or hit.aborted is None:
        return None
    group = tuple(int(r) for r in hit.ranks.rank)
    answer = strategy.job_react(Aborted(hit.aborted, hit.broken_nic, View.healthy(result.job.cluster), group))
    return answer.cost_s if isinstance(answer, Restart) else None


def drawn_days(day: Day, events_per_day: float) -> list[tuple[float, ...]]:
    """The seconds at which something fails, for each drawn day; the same for all strategies."""
    random = np.random.default_rng(day.seed)
    counts = random.poisson(events_per_day * day.hours / 24, day.draws)
    return [tuple(np.sort(random.uniform(0, day.hours * HOUR_S, count)).tolist()) for count in counts]


def published_rate() -> float:
    """Failures of network and NICs per GPU and day.

    Raises:
        InputError: the table of published figures has none.
    """
    for line in published.load("reliability"):
        if line["quantity"] == RATE:
            return float(line["value"])
    raise InputError(f"reliability.csv: no row {RATE!r}; give events_per_gpu_day")


def walk(cost: Cost, failures: Sequence[float], day: Day) -> Course:
    """One day. Failures while the job stands still find nothing to hit, but count until they are repaired."""
    walker = _Walker(day.hours * HOUR_S, cost, day)
    steps: list[tuple[float, int, Callable[[], None]]] = [(t, 0, walker.fail) for t in failures]
    if not cost.stays:
        steps += [(t + day.repair_h * HOUR_S, 1, walker.repair) for t in failures]
    for time_s, _, step in sorted(steps, key=lambda s: s[:2]):
        if time_s < walker.end_s:
            walker.run_to(time_s)
            step()
    walker.run_to(walker.end_s)
    return Course(np.array(walker.times), np.array(walker.done))


class _Walker:
    """Where the job is: what it has done, since when it runs (or until when it stands still)."""

    def __init__(self, end_s: float, cost: Cost, day: Day) -> None:
        self.end_s, self._cost = end_s, cost
        self._interval_s = 60 * day.checkpoint_min
        self.times, self.done = [0.0], [0.0]
        self._ready_s = 0.0
        self._down = 0

    def run_to(self, time_s: float) -> None:
        """Works until then, as fast as what is down allows."""
        begins = max(self.times[-1], min(self._ready_s, time_s))
        if begins > self.times[-1]:
            self._mark(begins, self.done[-1])
        if time_s > begins:
            self._mark(time_s, self.done[-1] + (time_s - begins) / (1 + self._down * self._cost.slow))

    def fail(self) -> None:
        """A NIC fails now."""
        now, cost = self.times[-1], self._cost
        stands = now < self._ready_s
        self._down += 1
        if stands:
            return
        if cost.restart_s is None:
            self._ready_s = now + cost.hit_s
            return
        self._mark(now, self._at_checkpoint(now))
        self._ready_s = now + cost.restart_s

    def repair(self) -> None:
        """A NIC works again."""
        self._down -= 1

    def _at_checkpoint(self, now_s: float) -> float:
        """What was done at the last checkpoint: one every interval, and the one from which the job last started."""
        checkpoint_s = max(now_s // self._interval_s * self._interval_s, self._ready_s)
        return float(np.interp(checkpoint_s, self.times, self.done))

    def _mark(self, time_s: float, done_s: float) -> None:
        self.times.append(time_s)
        self.done.append(done_s)
