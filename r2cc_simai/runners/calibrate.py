"""Fitting a cluster's parameters to one healthy sweep of real AllReduces.

At most seven named parameters are moved, none of them per size or per strategy, so that the largest error in terms of
its tolerance (`results.tolerance_pct`) becomes as small as it can be. Where the sweep cannot tell two values apart, the
one nearest to the cluster as it was is taken. Sizes that a disturbance spoilt (`outliers`) are left out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import ClusterSpec
from r2cc_simai.cluster.view import View
from r2cc_simai.engine.run import run_schedule
from r2cc_simai.errors import InputError
from r2cc_simai.measured import SizeResult, read_log
from r2cc_simai.results import tolerance_pct
from r2cc_simai.runners.calibrated import LL_CHOICES_KIB, LL_THRESHOLD, Parameter, parameters_of, rounded, with_values
from r2cc_simai.runners.match_cluster import cluster_of
from r2cc_simai.runners.outliers import outlier_sizes
from r2cc_simai.strategies.base import Plan, Request
from r2cc_simai.strategies.ideal import Ideal
from r2cc_simai.strategies.rings import own_lanes
from r2cc_simai.strategies.tuning import tree_slices

Floats = NDArray[np.float64]
Progress = Callable[[float], None]

FEWEST_SIZES = 8  # more than there are parameters
SCREENING = 250  # evaluations for each low-latency threshold
RESTARTS = 6  # of the search with the best thresholds
EVALUATIONS = 700  # of each restart
FINALISTS = 2  # thresholds that the longer search looks at
TYPICAL = 0.1  # weight of the mean error beside the largest
NEARNESS = 0.03  # weight of the distance from the cluster as it was, mean square of the logarithms


@dataclass(frozen=True)
class Point:
    """A size in bytes, its measured time in seconds, and whether the fit counts it."""

    bytes: int
    time_s: float
    judged: bool

    @property
    def tolerance_pct(self) -> float:
        """Allowed error of the simulated time."""
        return tolerance_pct("time", self.bytes)


@dataclass(frozen=True)
class Fitted:
    """One parameter before and after."""

    name: str
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """The fit of a cluster to `points`: its parameters, and the simulated times in seconds before and after."""

    source: str
    cluster: Cluster
    spec: ClusterSpec
    points: tuple[Point, ...]
    parameters: tuple[Fitted, ...]
    before_s: Floats
    after_s: Floats
    remarks: tuple[str, ...] = ()
    """What makes the sweep doubtful, and what of the log was skipped."""

    @property
    def ok(self) -> bool:
        """Whether every judged size lies within its tolerance."""
        return all(
            abs(time_s / point.time_s - 1) * 100 <= point.tolerance_pct
            for point, time_s in zip(self.points, self.after_s, strict=True)
            if point.judged
        )


def calibrate(log: str | Path, cluster_name: str | None, progress: Progress = lambda _: None) -> Calibration:
    """Fits the cluster `cluster_name` (inferred where None) to the healthy AllReduces of a log.

    `progress` is called with the part that is done, from 0 to 1.

    Raises:
        InputError: the log is none, its cluster is not known, or it holds no healthy sweep.
    """
    runs = read_log(log)
    healthy = [m for m in runs if m.mode == "nccl" and m.collective == "all_reduce" and m.sizes]
    if not healthy:
        raise InputError(f"{log}: no healthy AllReduce sweep in it (nccl-tests of plain NCCL is wanted)")
    sweep = max(healthy, key=lambda m: len(m.sizes))
    points = points_of(sweep.sizes)
    if sum(point.judged for point in points) < FEWEST_SIZES:
        raise InputError(f"{sweep.source}: {len(points)} sizes; a sweep of at least {FEWEST_SIZES} is wanted")
    cluster = cluster_of(sweep, cluster_name)
    remarks = dict.fromkeys((*runs[0].warnings, *sweep.warnings))
    return replace(fit(cluster, points, sweep.source, progress), remarks=tuple(remarks))


def points_of(sizes: Sequence[SizeResult]) -> list[Point]:
    """What a sweep measured, smallest size first; the better of the two columns."""
    spoilt = outlier_sizes(sizes)
    usable = sorted((s for s in sizes if s.bytes > 0 and s.time_s > 0), key=lambda s: s.bytes)
    return [Point(size.bytes, size.time_s, size.bytes not in spoilt) for size in usable]


def fit(cluster: Cluster, points: Sequence[Point], source: str, progress: Progress = lambda _: None) -> Calibration:
    """Fits a cluster to measured times."""
    model = HealthyTimes(cluster, points)
    parameters = parameters_of(cluster.spec)
    best = _Search(model, parameters, progress).run()
    spec = with_values(cluster.spec, best)
    before = {p.name: p.value for p in parameters} | {LL_THRESHOLD: cluster.spec.transport.ll_threshold_kib}
    return Calibration(
        source=source,
        cluster=cluster,
        spec=spec,
        points=tuple(points),
        parameters=tuple(Fitted(name, value, best[name]) for name, value in before.items()),
        before_s=model.times(cluster.spec),
        after_s=model.times(spec),
    )


class HealthyTimes:
    """Simulated times of the points for any values of the parameters; schedules are made once."""

    def __init__(self, cluster: Cluster, points: Sequence[Point]) -> None:
        self.cluster = cluster
        self._names = count()
        self._group = tuple(range(cluster.n_ranks))
        self._lanes = own_lanes(Request("all_reduce", self._group, 1), cluster)
        self._points = points
        self._measured = np.array([p.time_s for p in points])
        self._tolerance = np.array([p.tolerance_pct for p in points])
        self._judged = np.array([p.judged for p in points])
        self._plans: dict[tuple[int, float, int], Plan] = {}

    def times(self, spec: ClusterSpec) -> Floats:
        """Seconds of every point on the healthy cluster."""
        cluster = Cluster(f"{self.cluster.name} {next(self._names)}", spec)
        return np.array([self._time(cluster, point.bytes) for point in self._points])

    def misses(self, spec: ClusterSpec) -> Floats:
        """|error| / tolerance of every judged point."""
        error_pct = 100 * (self.times(spec) / self._measured - 1)
        misses: Floats = (np.abs(error_pct) / self._tolerance)[self._judged]
        return misses

    def _time(self, cluster: Cluster, size: int) -> float:
        plan = self._plan(cluster, size)
        return run_schedule(cluster, plan.schedule, plan.binding).elapsed_s

    def _plan(self, cluster: Cluster, size: int) -> Plan:
        """NCCL's plan; of the parameters it depends on the bytes on the wire and the choice of the algorithm alone."""
        view = View.healthy(cluster)
        key = size, cluster.wire_factor(size), tree_slices(view, size, self._lanes, None)
        if key not in self._plans:
            self._plans[key] = Ideal().plan(Request("all_reduce", self._group, size), view)
        return self._plans[key]


class _Search:
    """Nelder-Mead over the logarithms of the parameters, for each low-latency threshold."""

    def __init__(self, model: HealthyTimes, parameters: Sequence[Parameter], progress: Progress) -> None:
        self._model = model
        self._spec = model.cluster.spec
        self._parameters = parameters
        self._origin = np.log([p.value for p in parameters])
        self._low = np.log([p.low for p in parameters])
        self._high = np.log([p.high for p in parameters])
        self._progress = progress
        self._planned = len(LL_CHOICES_KIB) * SCREENING + FINALISTS * RESTARTS * EVALUATIONS
        self._done = 0

    def run(self) -> dict[str, float]:
        """The best values found, rounded. Deterministic."""
        screened = [(*self._descend(self._origin, t, SCREENING), t) for t in LL_CHOICES_KIB]
        screened.sort(key=lambda found: found[0])
        best = min((self._restarted(x, t) for _, x, t in screened[:FINALISTS]), key=lambda found: found[0])
        self._progress(1.0)
        return rounded(self._values(best[1], best[2]))

    def _restarted(self, start: Floats, threshold: float) -> tuple[float, Floats, float]:
        """Searches from the best place so far and from places around it."""
        random = np.random.default_rng(0)
        best = (math.inf, start)
        for k in range(RESTARTS):
            spread = 0.0 if k == 0 else 0.3
            found = self._descend(best[1] + spread * random.standard_normal(len(start)), threshold, EVALUATIONS)
            best = min(best, found, key=lambda one: one[0])
        return (*best, threshold)

    def _descend(self, start: Floats, threshold: float, evaluations: int) -> tuple[float, Floats]:
        begin = np.clip(start, self._low, self._high)
        simplex = np.vstack([begin, begin + np.diag(np.where(begin + 0.3 > self._high, -0.3, 0.3))])
        simplex[1, 0] = begin[0] - 0.01  # the rate is known best
        found = minimize(
            self._cost,
            begin,
            args=(threshold,),
            method="Nelder-Mead",
            options={"maxfev": evaluations, "initial_simplex": simplex, "xatol": 1e-4, "fatol": 1e-5},
        )
        self._done += evaluations
        self._progress(self._done / self._planned)
        return float(found.fun), np.clip(found.x, self._low, self._high)

    def _cost(self, x: Floats, threshold: float) -> float:
        inside = np.clip(x, self._low, self._high)
        misses = self._model.misses(with_values(self._spec, self._values(inside, threshold)))
        outside = float(np.abs(x - inside).sum())
        distance = float(((inside - self._origin) ** 2).mean())
        return float(misses.max() + TYPICAL * misses.mean()) + NEARNESS * distance + outside

    def _values(self, x: Floats, threshold: float) -> dict[str, float]:
        values = {p.name: float(np.exp(v)) for p, v in zip(self._parameters, x, strict=True)}
        return values | {LL_THRESHOLD: threshold}
