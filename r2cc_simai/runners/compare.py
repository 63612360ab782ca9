"""Real runs beside the simulation of the same: what a log measured, what the cluster model says.

Each measurement of a log becomes jobs of the simulator. A run of nccl-tests is one job per size, with the NIC that it
lost down from the start. A series of iterations is two: the healthy one from its first collective on, and one whose
first timed iteration the failure hits once as many bytes have passed on the NIC as the log counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.operations import canonical
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.measured import Cut, GraphTable, Iteration, IterationSeries, Measurement, read_log
from r2cc_simai.results import Row, make_row, tolerance_pct
from r2cc_simai.runners.collective import Job
from r2cc_simai.runners.match_cluster import cluster_of
from r2cc_simai.runners.outliers import outlier_sizes
from r2cc_simai.runners.rows import CUT, Simulated, job_rows, simulate
from r2cc_simai.strategies.registry import parse_strategy

ONE_OFF = "one_off"
"""Metric: what the first iteration of a new plan or graph costs beside its time, time_first - time."""
UNCOUNTED = 2**20
"""Bytes below which a log's counters show 0: they count whole MiB."""


@dataclass(frozen=True)
class Compared:
    """A simulated value beside the measured one; `judged` is False for a measured value that is an outlier."""

    row: Row
    tolerance_pct: float
    judged: bool = True

    @property
    def ok(self) -> bool:
        """Whether the simulated value lies within the tolerance of the measured one."""
        if self.row.error_pct is None:  # the log counted nothing
            return (self.row.simulated or 0.0) < UNCOUNTED
        return abs(self.row.error_pct) <= self.tolerance_pct


@dataclass(frozen=True)
class LogComparison:
    """All that a log measured; `remarks` is what makes its figures doubtful or was left out."""

    log: str
    cluster: str
    compared: tuple[Compared, ...]
    remarks: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every judged value lies within its tolerance."""
        return all(one.ok for one in self.compared if one.judged)


def compare_log(path: str | Path, cluster_name: str | None, backend: Backend) -> LogComparison:
    """Simulates every measurement of a log.

    Raises:
        InputError: the log is none, its cluster is not known, or it measures what no strategy simulates.
        PartitionedError: the failure leaves a pair of ranks without a path.
    """
    compared: list[Compared] = []
    remarks: list[str] = []
    names: dict[str, None] = {}
    for measurement in read_log(path):
        cluster = cluster_of(measurement, cluster_name or measurement.cluster or None)
        names[cluster.name] = None
        try:
            compared += _Comparer(measurement, cluster, backend).compared()
        except InputError as error:
            raise InputError(f"{measurement.source}: {error}") from None
        remarks += measurement.warnings
    return LogComparison(str(path), ", ".join(names), tuple(compared), tuple(remarks))


class _Comparer:
    """Compares one measurement."""

    def __init__(self, measurement: Measurement, cluster: Cluster, backend: Backend) -> None:
        self._measurement = measurement
        self._collective = canonical(measurement.collective)
        self._cluster = cluster
        self._backend = backend
        section = f" {measurement.section}" if measurement.section else ""
        self._scenario = f"{Path(measurement.source.rpartition(':')[0]).stem}{section}"

    def compared(self) -> list[Compared]:
        """Everything that the measurement holds, in the log's order."""
        found = list(self._sizes())
        if self._measurement.iterations is not None:
            found += self._series(self._measurement.iterations)
        if self._measurement.graph is not None:
            found += self._graph(self._measurement.graph)
        return found

    def _sizes(self) -> Iterator[Compared]:
        spoilt = outlier_sizes(self._measurement.sizes)
        for size in self._measurement.sizes:
            root = size.root if 0 <= size.root < self._cluster.n_ranks else 0
            job = Job(size.bytes, self._collective, 1, 1, root=root)
            simulated = self._simulate(self._measurement.mode, self._lost_from_the_start(), job)
            yield self._beside(simulated, "time", size.time_s, judged=size.bytes not in spoilt)

    def _series(self, series: IterationSeries) -> Iterator[Compared]:
        """The healthy iterations, the one that the failure hits, those after it: times and bytes per NIC."""
        healthy = self._simulate("nccl", (), Job(series.bytes, self._collective, 2, 0))
        yield self._beside(healthy, "time_first", series.healthy[0].time_s, "healthy")
        yield from self._steady(healthy, series.healthy[1:], "healthy")
        hit = self._simulate_cut(series.cut, series.cut.later_strategy, series.bytes, graph=False)
        yield self._beside(hit, "time_cut", series.hit.time_s, "cut")
        yield from self._received(hit, [series.hit], "cut", CUT)
        later = series.later
        if hit.result.first is not None:
            yield self._beside(hit, "time_first", later[0].time_s, "after the cut")
            later = later[1:]
        yield from self._steady(hit, later, "after the cut")

    def _graph(self, table: GraphTable) -> Iterator[Compared]:
        """The steady time of each graph, what it costs to capture it anew, and the iterations that the cuts hit."""
        job = Job(table.bytes, self._collective, 1, 1, graph=True)
        for row in table.rows:
            pattern = self._lost_from_the_start() if row.strategy != "nccl" else ()
            steady = self._simulate(row.strategy, pattern, job)
            yield self._beside(steady, "time", row.steady_time_s)
            if row.recapture_s is not None:
                cut = next((c for c in table.cuts if c.later_strategy == row.strategy), table.cuts[0])
                hit = self._simulate_cut(cut, row.strategy, table.bytes, graph=True)
                yield self._beside(hit, ONE_OFF, row.recapture_s)
        for cut in table.cuts:
            hit = self._simulate_cut(cut, cut.later_strategy, table.bytes, graph=True)
            yield self._beside(hit, "time_cut", cut.time_s, "cut")

    def _lost_from_the_start(self) -> tuple[str, ...]:
        failed = self._measurement.failed
        return self._measurement.failures if failed is None else (f"server{failed.node}.{failed.nic}@0",)

    def _simulate_cut(self, cut: Cut, strategy: str, size: int, *, graph: bool) -> Simulated:
        """The cut in the first timed iteration, then `strategy`."""
        node = self._measurement.failed.node if self._measurement.failed is not None else 0
        job = Job(size, self._collective, 4, 1, graph)
        return self._simulate(strategy, (f"server{node}.{cut.nic}@bytes:{cut.rx_bytes}",), job)

    def _simulate(self, strategy: str, failures: Sequence[str], job: Job) -> Simulated:
        timeline = parse_failures(failures, self._cluster) if failures else Timeline()
        return simulate(self._cluster, parse_strategy(strategy), timeline, replace(job, backend=self._backend))

    def _steady(self, simulated: Simulated, series: Sequence[Iteration], part: str) -> Iterator[Compared]:
        if not series:
            return
        yield self._beside(simulated, "time", median(one.time_s for one in series), part)
        yield from self._received(simulated, series, part)

    def _received(
        self, simulated: Simulated, series: Sequence[Iteration], part: str, kind: str = ""
    ) -> Iterator[Compared]:
        for nic in series[0].rx_bytes:
            counted = median(float(one.rx_bytes[nic]) for one in series)
            yield self._beside(simulated, f"rx_bytes[server0.{nic}]", counted, part, kind)

    def _beside(
        self,
        simulated: Simulated,
        metric: str,
        measured: float,
        part: str = "",
        kind: str = "",
        judged: bool = True,
    ) -> Compared:
        """The row of a metric with its measured value. `part` says which iterations of the run; `kind` is CUT for the
        bytes of the one that is hit."""
        row = _row_of(simulated, metric, kind)
        own = make_row(
            scenario=f"{self._scenario} {part}".rstrip(),
            cluster=row.cluster,
            workload=row.workload,
            pattern=row.pattern,
            strategy=row.strategy,
            backend=row.backend,
            bytes=row.bytes,
            metric=metric,
            unit=row.unit,
            simulated=row.simulated,
            ideal=row.ideal,
            bound=row.bound,
            measured=measured,
            source=self._measurement.source + ("" if judged else " (outlier)"),
        )
        return Compared(own, tolerance_pct(metric, row.bytes), judged)


def _row_of(simulated: Simulated, metric: str, kind: str) -> Row:
    """The simulated row of a metric.

    Raises:
        InputError: the iteration that would have it did not occur.
    """
    rows = {(row.scenario, row.metric): row for row in job_rows(simulated, "")}
    if metric == ONE_OFF and simulated.result.first is not None and ("", "time") in rows:
        cost = simulated.result.first.one_off_s
        return replace(rows["", "time"], metric=ONE_OFF, simulated=cost, ideal=None, bound=None)
    if (kind, metric) not in rows:
        where = f"{simulated.result.strategy.spec} under {simulated.timeline.pattern}"
        raise InputError(
            f"the simulation of {where} has no {metric}; less may have passed on the NIC than the log says"
        )
    return rows[kind, metric]
