"""Rows of the results table from a simulated job: times, bandwidths, and the bytes of every NIC.

An iteration's one-off costs and a cut are compared with the steady iteration of `ideal`. The bytes of the iteration
that a failure hits carry the scenario with `/cut` behind it; all other rows are of the steady iteration.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.operations import Call, lower_bound, operation
from r2cc_simai.engine.run import Floats
from r2cc_simai.failures.timeline import Timeline, sorted_timeline
from r2cc_simai.results import Row, make_row
from r2cc_simai.runners.collective import Iteration, Job, JobResult, run_job
from r2cc_simai.strategies.base import Strategy
from r2cc_simai.strategies.ideal import Ideal

CUT = "/cut"
"""What stands behind the scenario of rows that count the bytes of an iteration hit by a failure."""

MARGIN = 4
"""Iterations of the baseline: all of them are equal once nothing fails."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """A job that ran under a timeline of failures, beside the same job as `ideal` on the healthy cluster."""

    cluster: Cluster
    timeline: Timeline
    result: JobResult
    ideal: JobResult


def simulate(cluster: Cluster, strategy: Strategy, timeline: Timeline, job: Job) -> Simulated:
    """Runs a job and its baseline on the same backend.

    Raises:
        PartitionedError: the failures leave a pair of ranks without a path, or the job never gets through.
        InputError: the strategy does not know such a request.
    """
    result = run_job(cluster, strategy, timeline, job)
    calm = replace(job, iterations=min(job.iterations, MARGIN), warmup=max(job.warmup, 1))
    return Simulated(cluster, timeline, result, run_job(cluster, Ideal(), Timeline(), calm))


def job_rows(simulated: Simulated, scenario: str, *, nic_bytes: bool = True) -> list[Row]:
    """All rows of a job, in the order time, time_first, time_cut, algbw, busbw, rx_bytes and tx_bytes per NIC.

    A metric whose iteration did not occur has no row. `bound` is the lower bound in the failed state, for an iteration
    that a failure hits under the timeline as it went on from the iteration's start.
    """
    maker = _Maker(simulated, scenario)
    result = simulated.result
    rows = list(maker.times())
    if result.steady is not None:
        rows += maker.bandwidths(result.steady)
    rows += maker.counts()
    if nic_bytes:
        if result.steady is not None:
            rows += maker.nic_bytes(result.steady, scenario)
        if result.cut is not None:
            rows += maker.nic_bytes(result.cut, scenario + CUT)
    return rows


def met_timeline(timeline: Timeline, result: JobResult) -> Timeline:
    """The timeline with each event by byte count at the time at which the job met it; those not met stay."""
    cut = result.cut
    if cut is None or len(cut.run.event_time_s) != len(timeline.events):
        return timeline
    events = [
        event
        if event.at_bytes is None or math.isnan(met)
        else replace(event, at_bytes=None, time_s=cut.start_s + float(met))
        for event, met in zip(timeline.events, cut.run.event_time_s, strict=True)
    ]
    return sorted_timeline(events, timeline.pattern)


class _Maker:
    """Makes the rows of one job."""

    def __init__(self, simulated: Simulated, scenario: str) -> None:
        result, cluster = simulated.result, simulated.cluster
        self._cluster = cluster
        self._result = result
        self._scenario = scenario
        self._pattern = simulated.timeline.pattern
        sees = result.strategy.sees_failures
        self._timeline = met_timeline(simulated.timeline, result) if sees else Timeline()
        calm = simulated.ideal.steady
        assert calm is not None  # nothing fails on the healthy cluster
        self._ideal = calm

    def times(self) -> Iterator[Row]:
        """One row for each kind of iteration that occurred."""
        result = self._result
        for metric, iteration in (("time", result.steady), ("time_first", result.first), ("time_cut", result.cut)):
            if iteration is not None:
                bound = self._bound(iteration)
                yield self._row(metric, "s", iteration.time_s, self._ideal.time_s, bound)

    def bandwidths(self, steady: Iteration) -> Iterator[Row]:
        """algbw = bytes / time of the steady iteration, and busbw = algbw times nccl-tests' factor, for p ranks."""
        bus = operation(self._result.job.op).bus_factor(self._cluster.n_ranks)
        for metric, factor in (("algbw", 1.0), ("busbw", bus)):
            values = (steady.time_s, self._ideal.time_s, self._bound(steady))
            simulated, ideal, bound = (self._bandwidth(time_s, factor) for time_s in values)
            yield self._row(metric, "B/s", simulated, ideal, bound)

    def counts(self) -> Iterator[Row]:
        """Recoveries of repaired NICs that succeeded, and the factor on a fixed amount of work where ranks are gone."""
        result = self._result
        if result.recoveries:
            yield self._row("recoveries", "1", float(sum(r.recoveries for r in result.recoveries)), None, None)
        if result.work_factor > 1:
            yield self._row("work_factor", "1", result.work_factor, 1.0, None)

    def nic_bytes(self, iteration: Iteration, scenario: str) -> Iterator[Row]:
        """Bytes that each NIC's counters rise by in an iteration, headers included."""
        ways: Sequence[tuple[str, Floats, Floats]] = (
            ("rx_bytes", iteration.bytes.rx, self._ideal.bytes.rx),
            ("tx_bytes", iteration.bytes.tx, self._ideal.bytes.tx),
        )
        for way, counted, ideal in ways:
            for nic in self._cluster.nics:
                metric = f"{way}[{nic.full_name}]"
                row = self._row(metric, "B", float(counted[nic.index]), float(ideal[nic.index]), None)
                yield replace(row, scenario=scenario)

    def _bandwidth(self, time_s: float | None, factor: float) -> float | None:
        return self._result.job.bytes * factor / time_s if time_s else None

    def _bound(self, iteration: Iteration) -> float | None:
        if len(iteration.group) < self._cluster.n_ranks:
            return None  # ranks were dropped: another collective than the one that is bounded
        timeline = self._timeline
        if iteration is not self._result.cut and len(iteration.run.event_time_s) < len(timeline.events):
            timeline = self._without_replaced()
        job = self._result.job
        call = Call(job.group(self._cluster), job.bytes, job.root)
        bound = lower_bound(self._cluster, job.op, call, timeline, iteration.start_s)
        return bound if math.isfinite(bound) else None

    def _without_replaced(self) -> Timeline:
        """What is left of the timeline after a restart on spare parts: the run before it met more events."""
        cut = self._result.cut
        end_s = 0.0 if cut is None else cut.start_s + cut.time_s
        return replace(self._timeline, events=tuple(e for e in self._timeline.events if e.time_s > end_s))

    def _row(self, metric: str, unit: str, simulated: float | None, ideal: float | None, bound: float | None) -> Row:
        job = self._result.job
        return make_row(
            scenario=self._scenario,
            cluster=self._cluster.name,
            workload=job.op,
            pattern=self._pattern,
            strategy=self._result.strategy.spec,
            backend=job.backend.value,
            bytes=job.bytes,
            metric=metric,
            unit=unit,
            simulated=simulated,
            ideal=ideal,
            bound=bound,
        )
