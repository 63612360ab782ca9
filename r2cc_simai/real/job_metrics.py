"""What a log of a training or serving job measured, whichever program wrote it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class JobMetric:
    """A value in the unit of the results table. `more_is_better` turns the ratio of an overhead around."""

    name: str
    unit: str
    value: float
    more_is_better: bool = False

    def overhead_pct(self, healthy: "JobMetric") -> float | None:
        """100 (time / healthy time - 1), or the same with rates, whose ratio is the other way round."""
        over, under = (healthy.value, self.value) if self.more_is_better else (self.value, healthy.value)
        return 100 * (over / under - 1) if under else None


@dataclass(frozen=True)
class JobMeasurement:
    """All metrics of one log, where they come from (`file:lines`), and what makes them doubtful."""

    source: str
    program: str
    workload: str
    metrics: tuple[JobMetric, ...]
    remarks: tuple[str, ...] = ()

    def metric(self, name: str) -> JobMetric | None:
        """The metric of a name."""
        return next((one for one in self.metrics if one.name == name), None)
