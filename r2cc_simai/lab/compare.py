"""The lab beside the simulation of the same: `chunk`, calibrated from the healthy lab run alone.

Three numbers are calibrated, none of them per strategy: the latency of a step, so that a healthy collective of a buffer
so small that only its steps count takes as long as it was measured to take; then what a healthy collective of the lab's
buffer takes beside that (`base`); and the bytes around a packet's payload, so that a healthy NIC counts what it was
measured to count (acknowledgements included). The rate needs none: the kernel's token bucket keeps it. When a cut came
is taken from the lab, too: its script says at which byte, the simulation is told the time. Everything else follows from
the lab file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.lab.cuts import timeline_of
from r2cc_simai.lab.spec import LabCase, LabSpec, Tolerances, cases_of
from r2cc_simai.results import Row, make_row
from r2cc_simai.results.tolerance import LAB, lab_deviation_pct
from r2cc_simai.runners.collective import Iteration, Job
from r2cc_simai.runners.rows import CUT, Simulated, job_rows, simulate

RATIO = "ratio"
"""Metric: time over the healthy time."""

FAR_STEP_S = 0.001  # a latency of a step, the other end of the line


@dataclass(frozen=True)
class Calibration:
    """The three numbers: seconds of a step and of a collective beside its steps and bytes, and bytes around the payload
    of a packet."""

    step_s: float
    base_s: float
    header_bytes: float


@dataclass(frozen=True)
class Side:
    """One measured value, the median of its repetitions, beside the simulated one."""

    case: LabCase
    row: Row
    lowest: float
    highest: float
    repetitions: int
    tolerance_pct: float

    @property
    def error_pct(self) -> float:
        """Of the simulation."""
        found = lab_deviation_pct(self.row)
        return 0.0 if found is None else found  # nothing passes on the NIC, ever

    @property
    def ok(self) -> bool:
        """Whether the simulated value lies within its tolerance."""
        return abs(self.error_pct) <= self.tolerance_pct


@dataclass(frozen=True)
class LabComparison:
    """A lab's run beside its simulation."""

    name: str
    calibration: Calibration
    sides: tuple[Side, ...]

    @property
    def ok(self) -> bool:
        """Whether all lies within its tolerance."""
        return all(side.ok for side in self.sides)

    @property
    def rows(self) -> list[Row]:
        """As rows of the results table, backend `chunk`; the calibrated numbers come first."""
        return [*self._calibrated(), *(side.row for side in self.sides)]

    def _calibrated(self) -> Iterator[Row]:
        """The calibrated numbers have no measured value."""
        like, fit = self.sides[0].row, self.calibration
        for metric, unit, value in (
            ("calibrated_step", "s", fit.step_s),
            ("calibrated_base", "s", fit.base_s),
            ("calibrated_header", "B", fit.header_bytes),
        ):
            yield make_row(
                scenario=like.scenario,
                cluster=like.cluster,
                workload=like.workload,
                pattern=like.pattern,
                strategy=like.strategy,
                backend=like.backend,
                bytes=like.bytes,
                metric=metric,
                unit=unit,
                simulated=value,
            )


def compare_lab(name: str, spec: LabSpec, rows: Sequence[Row]) -> LabComparison:
    """Simulates every case that was measured.

    Raises:
        InputError: the healthy lab was not measured.
    """
    measured = _Measured(spec, rows)
    healthy, small, *others = cases_of(spec)
    if not (measured.has(healthy) and measured.has(small)):
        raise InputError(f"lab {name}: no healthy iteration among its rows; nothing to calibrate with")
    calibration = _Calibrator(spec, name, measured).found()
    comparer = _Comparer(spec, with_calibrated(spec.cluster(name), calibration), measured, healthy)
    sides = [side for case in (healthy, *others) if measured.has(case) for side in comparer.sides(case)]
    return LabComparison(name, calibration, tuple(sides))


class _Measured:
    """The measured values of a lab, by case, kind (`/cut` or nothing) and metric."""

    def __init__(self, spec: LabSpec, rows: Sequence[Row]) -> None:
        self._bytes = spec.bytes
        self._values: dict[tuple[str, str, int, str, str], list[Row]] = {}
        for row in rows:
            if row.measured is not None:
                kind = CUT if row.scenario.endswith(CUT) else ""
                self._values.setdefault((row.strategy, row.pattern, row.bytes, kind, row.metric), []).append(row)

    def has(self, case: LabCase) -> bool:
        """Whether there is anything of a case."""
        return any(key[:3] == self._key(case) for key in self._values)

    def values(self, case: LabCase, metric: str, kind: str = "") -> list[float]:
        """One value a repetition; none where it was not measured."""
        found = self._values.get((*self._key(case), kind, metric), [])
        return [row.measured for row in found if row.measured is not None]

    def source(self, case: LabCase) -> str:
        """The raw file and the machine, without the repetition."""
        first = next(rows[0] for key, rows in self._values.items() if key[:3] == self._key(case))
        raw, _, machine = first.source.partition(";")
        return f"{raw.partition(' repetition')[0]};{machine}"

    def _key(self, case: LabCase) -> tuple[str, str, int]:
        return case.strategy, case.pattern, case.bytes or self._bytes


class _Calibrator:
    """Finds the three numbers from what the healthy lab took and counted."""

    def __init__(self, spec: LabSpec, name: str, measured: _Measured) -> None:
        self._spec = spec
        self._cluster = spec.cluster(name)
        self._measured = measured
        self._healthy, self._small = cases_of(spec)[:2]

    def found(self) -> Calibration:
        """The latency of a step first, which the others build on."""
        header = self._header()
        step_s = self._step(header)
        at_once = self._simulated(self._healthy, Calibration(step_s, 0.0, header)).time_s
        return Calibration(step_s, max(0.0, self._time(self._healthy) - at_once), header)

    def _header(self) -> float:
        nic = self._cluster.spec.server.nics[0]
        payload = float(self._simulated(self._healthy, Calibration(0.0, 0.0, nic.header_bytes)).bytes.rx_payload.sum())
        ports = [f"rx_bytes[{one.full_name}]" for one in self._cluster.nics]
        counted = sum(median(self._measured.values(self._healthy, port)) for port in ports)
        return (counted / payload - 1) * nic.mtu_bytes

    def _step(self, header: float) -> float:
        """The small collective's time is a line over the latency of a step: two points give it."""
        low, high = (
            self._simulated(self._small, Calibration(step_s, 0.0, header)).time_s for step_s in (0.0, FAR_STEP_S)
        )
        return max(0.0, (self._time(self._small) - low) / (high - low) * FAR_STEP_S)

    def _time(self, case: LabCase) -> float:
        return median(self._measured.values(case, "time"))

    def _simulated(self, case: LabCase, calibration: Calibration) -> Iteration:
        return _steady(with_calibrated(self._cluster, calibration), case, self._spec)


def with_calibrated(cluster: Cluster, calibration: Calibration) -> Cluster:
    """The cluster with other values of the three numbers."""
    spec = cluster.spec
    nics = [nic.model_copy(update={"header_bytes": calibration.header_bytes}) for nic in spec.server.nics]
    times = {"base_latency_us": calibration.base_s * 1e6, "step_latency_us": calibration.step_s * 1e6}
    server, transport = spec.server.model_copy(update={"nics": nics}), spec.transport.model_copy(update=times)
    return Cluster(cluster.name, spec.model_copy(update={"server": server, "transport": transport}))


def _steady(cluster: Cluster, healthy: LabCase, spec: LabSpec) -> Iteration:
    steady = _run(cluster, healthy, spec, Timeline()).result.steady
    assert steady is not None  # nothing fails
    return steady


def _run(cluster: Cluster, case: LabCase, spec: LabSpec, timeline: Timeline) -> Simulated:
    # Enough iterations for a script to end in; those after it are all alike.
    ends = max((event.time_s for event in timeline.events), default=0.0)
    iterations = 2 + int(ends / _least_s(cluster, spec))
    job = Job(case.bytes or spec.bytes, spec.collective, iterations, 1, backend=Backend.CHUNK)
    return simulate(cluster, case.parsed_strategy(), timeline, job)


def _least_s(cluster: Cluster, spec: LabSpec) -> float:
    """A time in seconds that no collective of the lab falls below: half of the buffer through a server's NICs."""
    rate = min(sum(cluster.nics[n].payload_rate for n in server.nics) for server in cluster.servers)
    return max(1e-3, spec.bytes / 2 / rate)


class _Comparer:
    """Puts a case's simulation beside what was measured."""

    def __init__(self, spec: LabSpec, cluster: Cluster, measured: _Measured, healthy: LabCase) -> None:
        self._spec = spec
        self._cluster = cluster
        self._measured = measured
        self._healthy_s = median(measured.values(healthy, "time"))
        self._simulated_healthy_s = _steady(cluster, healthy, spec).time_s

    def sides(self, case: LabCase) -> Iterator[Side]:
        """Times, their ratios to healthy, and bytes per NIC."""
        simulated = {
            (CUT if row.scenario.endswith(CUT) else "", row.metric): row
            for row in job_rows(self._simulate(case), LAB + self._cluster.name)
        }
        tolerances = self._spec.tolerances
        for (kind, metric), row in simulated.items():
            tolerance = _tolerance(tolerances, kind, metric)
            values = self._measured.values(case, metric, kind)
            if tolerance is None or not values:
                continue
            yield self._side(case, row, values, tolerance)
            if metric == "time" and case.script:
                yield self._ratio(case, row, values)

    def _simulate(self, case: LabCase) -> Simulated:
        cuts = case.cuts(self._cluster)
        began = {
            position: median(times)
            for position in range(len(cuts))
            if (times := self._measured.values(case, f"cut_at[{position}]", CUT))
        }
        timeline = timeline_of(cuts, began, case.pattern)
        return _run(self._cluster, case, self._spec, timeline)

    def _ratio(self, case: LabCase, row: Row, values: Sequence[float]) -> Side:
        assert row.simulated is not None
        ratio = replace(row, metric=RATIO, unit="1", simulated=row.simulated / self._simulated_healthy_s, ideal=1.0)
        ratio = replace(ratio, bound=None if row.bound is None else row.bound / self._simulated_healthy_s)
        return self._side(case, ratio, [v / self._healthy_s for v in values], self._spec.tolerances.ratio_pct)

    def _side(self, case: LabCase, row: Row, values: Sequence[float], tolerance: float) -> Side:
        low, high = min(values), max(values)
        beside = make_row(
            scenario=row.scenario,
            cluster=row.cluster,
            workload=row.workload,
            pattern=row.pattern,
            strategy=row.strategy,
            backend=row.backend,
            bytes=row.bytes,
            metric=row.metric,
            unit=row.unit,
            simulated=row.simulated,
            ideal=row.ideal,
            bound=row.bound,
            measured=median(values),
            source=f"lab: median of {len(values)}, {low:.6g} to {high:.6g} {row.unit}; {self._measured.source(case)}",
        )
        return Side(case, beside, low, high, len(values), tolerance)


def _tolerance(tolerances: Tolerances, kind: str, metric: str) -> float | None:
    if metric.startswith(("rx_bytes[", "tx_bytes[")):
        return tolerances.cut_bytes_pct if kind == CUT else tolerances.bytes_pct
    return {"time": tolerances.time_pct, "time_cut": tolerances.cut_pct}.get(metric)
