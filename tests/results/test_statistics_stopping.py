"""When a sweep draws no more."""

from collections.abc import Callable

import numpy as np
import pytest
from pydantic import ValidationError

from r2cc_simai.config import validated
from r2cc_simai.errors import InputError
from r2cc_simai.results import Row, error_row
from r2cc_simai.results.statistics import Stop, enough, mean_interval

MakeRow = Callable[..., Row]
STOP = Stop(metric="lost_gpu_h", half_width_pct=10.0)


@pytest.fixture
def lost(row: MakeRow) -> Callable[..., list[Row]]:
    """Return a function that makes rows of the GPU-hours lost in draws 0, 1, ..., and of their incidents."""

    def make(values: object, strategy: str = "balance", incidents: float = 1.0) -> list[Row]:
        common = {"strategy": strategy, "bytes": 0, "ideal": None}
        rows = []
        for seed, value in enumerate(np.asarray(values, dtype=float)):
            rows.append(row(**common, seed=seed, metric="lost_gpu_h", unit="h", simulated=float(value)))
            rows.append(row(**common, seed=seed, metric="incidents", unit="1", simulated=incidents))
        return rows

    return make


def _exponential(n: int) -> np.ndarray:
    return np.random.default_rng(1).exponential(10.0, n)


def test_enough_once_the_interval_is_narrow(lost: Callable[..., list[Row]]) -> None:
    """Exponential losses: half width / mean = 1.96 / sqrt(n) = 10% at n = 384."""
    assert not enough(lost(_exponential(250)), STOP)
    assert enough(lost(_exponential(600)), STOP)


def test_every_strategy_must_be_known(lost: Callable[..., list[Row]]) -> None:
    """One strategy's losses are equal in all draws, the other's vary."""
    sure = lost(np.full(100, 5.0), "nccl")
    assert enough(sure, STOP)
    assert not enough(sure + lost(_exponential(100)), STOP)


def test_every_case_must_be_known(lost: Callable[..., list[Row]], row: MakeRow) -> None:
    sure = lost(np.full(100, 5.0))
    other = [row(seed=s, cluster="a100x2", metric="lost_gpu_h", simulated=float(s % 9)) for s in range(50)]
    assert not enough(sure + other, STOP)


def test_never_before_the_least_number_of_draws(lost: Callable[..., list[Row]]) -> None:
    assert not enough(lost(np.full(29, 5.0)), STOP)
    assert enough(lost(np.full(30, 5.0)), STOP)
    assert not enough(lost(np.full(30, 5.0)), STOP.model_copy(update={"least": 31}))


def test_zeros_are_believed_only_where_something_failed(lost: Callable[..., list[Row]]) -> None:
    """Losses of 0 in 40 draws without an incident may be luck; with incidents nothing is lost."""
    assert not enough(lost(np.zeros(40), incidents=0.0), STOP)
    assert enough(lost(np.zeros(40), incidents=2.0), STOP)
    half = [r for r in lost(np.zeros(40)) if r.metric != "incidents" or (r.seed or 0) < 29]
    assert not enough(half, STOP)


def test_what_is_not_drawn_and_what_failed_is_not_waited_for(lost: Callable[..., list[Row]], row: MakeRow) -> None:
    """A course without a seed has no interval; a strategy whose every case failed has no value."""
    sure = lost(np.full(100, 5.0))
    alone = row(metric="lost_gpu_h", simulated=1.0, pattern="none")
    where = {"scenario": "demo", "cluster": "h100x4", "workload": "all_reduce", "pattern": "server0.nic0@0"}
    failed = [error_row(**where, strategy="optcc", backend="flow", bytes=0, seed=s, error="no") for s in range(100)]
    assert enough([*sure, alone, *failed], STOP)
    assert not enough([alone, *failed], STOP)


def test_overhead_is_that_of_the_metric_that_says_most(row: MakeRow) -> None:
    """`time` is 10% over the healthy one in every draw, while `time_cut` varies."""
    rows = [row(seed=s, metric="time", simulated=1.1) for s in range(30)]
    rows += [row(seed=s, metric="time_cut", simulated=1.0 + s) for s in range(30)]
    assert enough(rows, Stop(metric="overhead_pct", half_width_pct=1.0))
    assert not enough(rows, Stop(metric="time_cut", half_width_pct=1.0))


def test_the_loss_to_one_cause_can_be_asked_for(lost: Callable[..., list[Row]], row: MakeRow) -> None:
    """Draws without the cause count as 0: 30 times 3 in 60 draws, 1.5 on average, 26% to each side."""
    part = [row(seed=s, metric="lost_gpu_h[nic]", simulated=3.0, bytes=0, ideal=None) for s in range(30)]
    rows = lost(np.full(60, 9.0)) + part
    assert enough(rows, Stop(metric="lost_gpu_h[nic]", half_width_pct=40.0))
    assert not enough(rows, Stop(metric="lost_gpu_h[nic]", half_width_pct=15.0))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"metric": "lost", "half_width_pct": 5}, "metric: 'lost' is no metric of drawn failures (allowed: "),
        ({"metric": "lost_gpu_h"}, "half_width_pct: missing"),
        ({"metric": "lost_gpu_h", "half_width_pct": 0}, "half_width_pct: "),
        ({"metric": "lost_gpu_h", "half_width_pct": float("nan")}, "half_width_pct: "),
        ({"metric": "lost_gpu_h", "half_width_pct": 5, "confidence": 1.0}, "confidence: "),
        ({"metric": "lost_gpu_h", "half_width_pct": 5, "batch": 0}, "batch: "),
        ({"metric": "lost_gpu_h", "half_width_pct": 5, "least": 1}, "least: "),
        ({"metric": "lost_gpu_h", "half_width_pct": 5, "seeds": 9}, "seeds: unknown key"),
    ],
)
def test_a_wrong_stop_is_one_line(given: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=r"^file\.yml: ") as error:
        validated(Stop, given, "file.yml")
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_which_metrics_need_a_course() -> None:
    assert Stop(metric="lost_gpu_h[nic]", half_width_pct=5).needs_course
    assert not Stop(metric="overhead_pct", half_width_pct=5).needs_course
    with pytest.raises(ValidationError):
        Stop(metric="time", half_width_pct=5, least=0)


def test_the_interval_at_the_stop_still_holds_the_mean_nine_times_in_ten(lost: Callable[..., list[Row]]) -> None:
    """Stopping because the interval is narrow costs coverage: 95% become 90 to 96% (docs/models.md). 40 runs of
    p = 0.9, binomial: at least 0.9 - 3 sqrt(0.9 * 0.1 / 40) = 76%."""
    random = np.random.default_rng(8)
    stop = Stop(metric="lost_gpu_h", half_width_pct=20.0)
    hits = 0
    for _ in range(40):
        values, n = random.exponential(1.0, 2000), stop.batch
        while not enough(lost(values[:n]), stop):
            n += stop.batch
        interval = mean_interval(values[:n])
        assert interval is not None
        hits += interval.holds(1.0)
    assert hits / 40 > 0.757
