"""Rows of drawn failures, gathered: for each case and strategy the values of each metric, one a draw."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.results.files import canonical
from r2cc_simai.results.table import ERROR, Row

Floats = NDArray[np.float64]

EFFECTIVE_TIME, LOST, INCIDENTS = "effective_time", "lost_gpu_h", "incidents"
GPU_H, HOURS = "gpu_h", "hours"
"""Metrics of a course: a job over a long time in which components fail."""

TELLING = (EFFECTIVE_TIME, "tokens_per_s", "time", "iteration", "time_cut", "iteration_cut", "time_first")
"""Metrics whose overhead tells strategies apart, the one that says most first."""


@dataclass(frozen=True, order=True)
class Case:
    """What the strategies are compared on; `bytes` as in a row."""

    scenario: str
    cluster: str
    workload: str
    pattern: str
    backend: str
    bytes: int


@dataclass(frozen=True, eq=False)
class Sample:
    """A number a draw: `values` of shape (n,), in the order of `seeds`; the seed of what is not drawn is None."""

    seeds: tuple[int | None, ...]
    values: Floats

    def total(self) -> float:
        """The sum of the values."""
        return float(self.values.sum())


@dataclass(frozen=True, eq=False)
class Draws:
    """What one strategy did in the draws of a case.

    `values` by metric in the row's unit; `overhead_pct` by metric of `TELLING`, inf where nothing at all was done.
    """

    values: Mapping[str, Sample]
    overhead_pct: Mapping[str, Sample]

    @property
    def telling(self) -> str | None:
        """The metric whose overhead is told first; None where no row has an overhead."""
        return next((metric for metric in TELLING if metric in self.overhead_pct), None)

    def sample(self, metric: str) -> Sample | None:
        """The values of a metric. Of a part `metric[CAUSE]` zero in the draws that have the metric and not the part."""
        part, whole = self.values.get(metric), self.values.get(metric.partition("[")[0])
        if part is None or whole is None or part is whole:
            return part
        known = dict(zip(part.seeds, part.values, strict=True))
        return Sample(whole.seeds, np.array([known.get(seed, 0.0) for seed in whole.seeds]))

    def causes(self, metric: str) -> list[str]:
        """The causes of which there are parts `metric[CAUSE]`."""
        head = f"{metric}["
        return [name.removeprefix(head).removesuffix("]") for name in self.values if name.startswith(head)]


Cases = Mapping[Case, Mapping[str, Draws]]
"""The draws of each strategy, by case; cases and strategies in the order of their first rows."""


def is_drawn(row: Row) -> bool:
    """Whether a row belongs to the statistics: any of a seed, and those of a course even without one.

    Rows of cases that failed do not.
    """
    if row.metric == ERROR:
        return False
    if row.seed is not None or row.metric.partition("[")[0] in (LOST, INCIDENTS, GPU_H, HOURS):
        return True
    return row.metric == EFFECTIVE_TIME and row.ideal is not None  # that of `training_day` is a mean, with no ideal


def gather(rows: Iterable[Row]) -> Cases:
    """The draws in `rows`, each sample in the order of its seeds; rows for which `is_drawn` does not hold are left out.

    Of several rows of one case, strategy, metric and seed the last one counts. Values are as the files have them, so
    that the statistics of a run's rows and of its files are the same.
    """
    found: dict[Case, dict[str, tuple[_BySeed, _BySeed]]] = {}
    for row in rows:
        if not is_drawn(row) or row.simulated is None:
            continue
        case = Case(row.scenario, row.cluster, row.workload, row.pattern, row.backend, row.bytes)
        values, overheads = found.setdefault(case, {}).setdefault(row.strategy, ({}, {}))
        value = canonical(float(row.simulated))
        values.setdefault(row.metric, {})[row.seed] = value
        overhead = _overhead_pct(row, value)
        if overhead is not None:
            overheads.setdefault(row.metric, {})[row.seed] = overhead
    return {
        case: {strategy: Draws(_samples(values), _samples(overheads)) for strategy, (values, overheads) in own.items()}
        for case, own in found.items()
    }


_BySeed = dict[str, dict[int | None, float]]


def _overhead_pct(row: Row, value: float) -> float | None:
    if row.metric not in TELLING:
        return None
    if row.metric == EFFECTIVE_TIME and row.ideal:
        return float("inf") if value <= 0.0 else canonical(100.0 * (row.ideal / value - 1.0))
    return None if row.overhead_pct is None else canonical(float(row.overhead_pct))


def _samples(by_metric: _BySeed) -> dict[str, Sample]:
    return {metric: _sample(by_seed) for metric, by_seed in by_metric.items()}


def _sample(by_seed: dict[int | None, float]) -> Sample:
    seeds = sorted(by_seed, key=lambda seed: -1 if seed is None else seed)
    return Sample(tuple(seeds), np.array([by_seed[seed] for seed in seeds], dtype=np.float64))
