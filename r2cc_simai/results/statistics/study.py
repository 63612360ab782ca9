"""The statistics of one case: every strategy's distribution, loss and causes, and how the strategies compare."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from r2cc_simai.results.statistics.intervals import CONFIDENCE
from r2cc_simai.results.statistics.lost_time import (
    CauseLoss,
    MonthlyLoss,
    loss_by_cause,
    monthly_loss,
    monthly_sample,
)
from r2cc_simai.results.statistics.paired import Difference, differences
from r2cc_simai.results.statistics.samples import HOURS, TELLING, Case, Draws, Sample, gather
from r2cc_simai.results.statistics.stopping import draws_needed
from r2cc_simai.results.statistics.summary import Summary, summarise
from r2cc_simai.results.table import Row

HALF_WIDTH_PCT = 5.0


@dataclass(frozen=True, eq=False)
class Study:
    """Statistics of a case, computed when they are asked for; by strategy, in the order of the rows.

    Intervals are of `confidence`; `half_width_pct` of the mean is what `needed` aims at.
    """

    case: Case
    draws: Mapping[str, Draws]
    confidence: float = CONFIDENCE
    half_width_pct: float = HALF_WIDTH_PCT

    @property
    def seeds(self) -> int:
        """How many draws any strategy has; 0 where nothing is drawn."""
        return len({seed for sample in self._all() for seed in sample.seeds if seed is not None})

    @property
    def is_course(self) -> bool:
        """Whether the job goes on for hours while components fail."""
        return self.hours is not None

    @property
    def hours(self) -> float | None:
        """Length of the job; None where it is not a course."""
        return next((float(own.values[HOURS].values[0]) for own in self.draws.values() if HOURS in own.values), None)

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics with overheads, the one that says most first: it is the telling one."""
        return [m for m in TELLING if any(m in own.overhead_pct for own in self.draws.values())]

    def overheads(self, metric: str) -> dict[str, Sample]:
        """Overheads in percent of a metric."""
        return {s: own.overhead_pct[metric] for s, own in self.draws.items() if metric in own.overhead_pct}

    @cached_property
    def overhead(self) -> dict[str, dict[str, Summary]]:
        """The distribution of the overheads of each of `metrics`."""
        return {
            metric: {s: summarise(sample.values, self.confidence) for s, sample in self.overheads(metric).items()}
            for metric in self.metrics
        }

    @cached_property
    def losses(self) -> dict[str, Sample]:
        """GPU-hours lost a month, one a draw, of a course."""
        return {s: sample for s, own in self.draws.items() if (sample := monthly_sample(own)) is not None}

    @cached_property
    def monthly(self) -> dict[str, MonthlyLoss]:
        """Expected GPU-hours lost a month."""
        found = {s: monthly_loss(own, self.confidence) for s, own in self.draws.items()}
        return {s: loss for s, loss in found.items() if loss is not None}

    @cached_property
    def causes(self) -> dict[str, list[CauseLoss]]:
        """What each cause costs."""
        return {s: found for s, own in self.draws.items() if (found := loss_by_cause(own))}

    @cached_property
    def compared(self) -> dict[str, Sample]:
        """What strategies are compared by: GPU-hours lost a month of a course, else overheads of the first metric."""
        if self.losses:
            return self.losses
        return self.overheads(self.metrics[0]) if self.metrics else {}

    @cached_property
    def differences(self) -> list[Difference]:
        """The strategies in pairs, on the same draws."""
        return differences(self.compared, self.confidence)

    def needed(self, strategy: str) -> int | None:
        """About how many draws the mean of what is compared needs."""
        sample = self.compared.get(strategy)
        return None if sample is None else draws_needed(sample.values, self.half_width_pct, self.confidence)

    def summaries(self, strategy: str) -> dict[str, Summary]:
        """The distribution of each metric but those of parts (a NIC, a cause)."""
        own = self.draws[strategy].values
        return {m: summarise(sample.values, self.confidence) for m, sample in own.items() if "[" not in m}

    @property
    def nothing_happened(self) -> bool:
        """Whether no draw cost any strategy anything."""
        return not any(np.any(np.abs(sample.values) > 1e-9) for sample in self.compared.values())

    def _all(self) -> Iterable[Sample]:
        return (sample for own in self.draws.values() for sample in own.values.values())


def studies(rows: Iterable[Row], confidence: float = CONFIDENCE, half_width_pct: float = HALF_WIDTH_PCT) -> list[Study]:
    """The study of each case of drawn failures that has a number to compare strategies by."""
    found = [Study(case, draws, confidence, half_width_pct) for case, draws in gather(rows).items()]
    return [study for study in found if study.compared]
