"""Statistics over drawn failures: distributions, intervals, losses a month, causes, and how many draws are enough."""

from r2cc_simai.results.statistics.intervals import CONFIDENCE, Interval, mean_interval, quantile, quantile_interval
from r2cc_simai.results.statistics.lost_time import MONTH_H, CauseLoss, MonthlyLoss, loss_by_cause, monthly_loss
from r2cc_simai.results.statistics.paired import Difference, difference, differences
from r2cc_simai.results.statistics.samples import Case, Draws, Sample, gather, is_drawn
from r2cc_simai.results.statistics.stopping import Stop, draws_needed, enough
from r2cc_simai.results.statistics.study import HALF_WIDTH_PCT, Study, studies
from r2cc_simai.results.statistics.summary import Summary, summarise

__all__ = [
    "CONFIDENCE",
    "HALF_WIDTH_PCT",
    "MONTH_H",
    "Case",
    "CauseLoss",
    "Difference",
    "Draws",
    "Interval",
    "MonthlyLoss",
    "Sample",
    "Stop",
    "Study",
    "Summary",
    "difference",
    "differences",
    "draws_needed",
    "enough",
    "gather",
    "is_drawn",
    "loss_by_cause",
    "mean_interval",
    "monthly_loss",
    "quantile",
    "quantile_interval",
    "studies",
    "summarise",
]
