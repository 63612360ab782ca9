"""Measured jobs beside a healthy one, and beside the simulation of the same, as rows of the results table.

A metric has a row with its measured value, in seconds or per second. Where a healthy log stands beside,
`overhead[NAME]` holds the loss in percent: time / healthy time - 1, or for rates healthy rate / rate - 1. Where
simulated rows stand beside, both carry the simulated value, and so its error.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from r2cc_simai.errors import InputError
from r2cc_simai.real.job_metrics import JobMeasurement, JobMetric
from r2cc_simai.results import Row, make_row


@dataclass(frozen=True)
class Labels:
    """What the logs do not say of themselves; of simulated rows those that fit are taken ("": all fit)."""

    scenario: str = ""
    cluster: str = ""
    workload: str = ""
    pattern: str = ""
    strategy: str = ""


def job_rows(
    measurement: JobMeasurement,
    healthy: JobMeasurement | None,
    simulated: Sequence[Row] | None,
    labels: Labels,
    note: str = "",
) -> list[Row]:
    """Rows of a measurement. `note` says which repetition it is.

    Raises:
        InputError: the healthy log is of another program, or no simulated row fits, or several fit one metric.
    """
    if healthy is not None and healthy.program != measurement.program:
        raise InputError(
            f"{measurement.source}: a log of {measurement.program}, but the healthy one is of {healthy.program}"
        )
    rows = list(_rows(measurement, healthy, simulated, labels, note))
    if simulated is not None and all(row.simulated is None for row in rows):
        raise InputError(f"{measurement.source}: no simulated row stands beside it; {_offer(simulated, measurement)}")
    return rows


def _rows(
    measurement: JobMeasurement,
    healthy: JobMeasurement | None,
    simulated: Sequence[Row] | None,
    labels: Labels,
    note: str,
) -> Iterator[Row]:
    for metric in measurement.metrics:
        beside = _simulated(metric, simulated, labels)
        yield _row(measurement, labels, note, metric.name, metric.unit, metric.value, beside)
        base = None if healthy is None else healthy.metric(metric.name)
        overhead = None if base is None else metric.overhead_pct(base)
        if healthy is not None and overhead is not None:
            source = "; ".join(one for one in (note, f"healthy: {healthy.source}") if one)
            yield _row(
                measurement,
                labels,
                source,
                f"overhead[{metric.name}]",
                "%",
                overhead,
                beside,
                simulated=None if beside is None else beside.overhead_pct,
            )


def _row(
    measurement: JobMeasurement,
    labels: Labels,
    note: str,
    metric: str,
    unit: str,
    measured: float,
    beside: Row | None,
    **value: float | None,
) -> Row:
    own = None if beside is None else beside.simulated
    return make_row(
        scenario=labels.scenario or "real",
        cluster=labels.cluster or ("" if beside is None else beside.cluster),
        workload=labels.workload or measurement.workload or ("" if beside is None else beside.workload),
        pattern=labels.pattern or ("" if beside is None else beside.pattern),
        strategy=labels.strategy,
        backend="real" if beside is None else beside.backend,
        bytes=0,
        metric=metric,
        unit=unit,
        simulated=value.get("simulated", own),
        ideal=None if beside is None or "simulated" in value else beside.ideal,
        measured=measured,
        source="; ".join(one for one in (measurement.source, note) if one),
    )


def _simulated(metric: JobMetric, rows: Sequence[Row] | None, labels: Labels) -> Row | None:
    """The simulated row of a metric.

    Raises:
        InputError: several fit.
    """
    fitting = [row for row in rows or () if row.metric == metric.name and _fits(row, labels)]
    if len(fitting) > 1:
        choices = ", ".join(dict.fromkeys(_named(row) for row in fitting))
        raise InputError(
            f"--simulated: {len(fitting)} rows of {metric.name} fit ({choices[:300]}); "
            "choose by --scenario, --cluster, --workload, --fail or --strategy"
        )
    return fitting[0] if fitting else None


def _fits(row: Row, labels: Labels) -> bool:
    wanted = (labels.scenario, labels.cluster, labels.workload, labels.pattern, labels.strategy)
    own = (row.scenario, row.cluster, row.workload, row.pattern, row.strategy)
    return all(not want or want == has for want, has in zip(wanted, own, strict=True))


def _offer(rows: Sequence[Row], measurement: JobMeasurement) -> str:
    """What the run folder holds of the metrics that were measured."""
    names = {metric.name for metric in measurement.metrics}
    of_metrics = [row for row in rows if row.metric in names]
    if not of_metrics:
        return f"it has none of the metrics {', '.join(sorted(names))}"
    return f"it has {', '.join(list(dict.fromkeys(map(_named, of_metrics)))[:6])}"


def _named(row: Row) -> str:
    return " / ".join(one for one in (row.scenario, row.cluster, row.workload, row.pattern, row.strategy) if one)
