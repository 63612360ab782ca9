"""A day with failures: what is done of it, against closed forms.

t_f = time of the failure, R = time to the repair, s = overhead while a NIC is down, h = what it costs once.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.runners.training_cases import training_case_rows
from r2cc_simai.runners.training_day import Cost, drawn_days, published_rate, walk
from r2cc_simai.runners.training_scenario import Day, TrainingBlock, training_cases

HOUR = 3600.0
DAY = Day(hours=24, repair_h=4, checkpoint_min=30)
FAILOVER = Cost(hit_s=10.0, slow=0.1, stays=False, restart_s=None)
DROPPED = Cost(hit_s=10.0, slow=0.1, stays=True, restart_s=None)
RESTART = Cost(hit_s=0.0, slow=0.0, stays=False, restart_s=HOUR)
TIMES = st.lists(st.floats(0, 24 * HOUR - 1), max_size=6).map(sorted)


def lost(cost: Cost, *failures: float) -> float:
    """Seconds of work that a day loses."""
    return 24 * HOUR * (1 - walk(cost, failures, DAY).share)


def test_nothing_fails() -> None:
    """The whole day is work."""
    assert walk(FAILOVER, (), DAY).share == 1.0


def test_failover_loses_the_hit_and_the_overhead_until_the_repair() -> None:
    """h + (R - h) s/(1+s): at rate 1/(1+s) from the end of the hit until the repair."""
    assert lost(FAILOVER, 2 * HOUR) == pytest.approx(10 + (4 * HOUR - 10) * 0.1 / 1.1)


def test_a_failure_near_the_end_of_the_day_is_repaired_after_it() -> None:
    """One hour is left: h + (3600 - h) s/(1+s)."""
    assert lost(FAILOVER, 23 * HOUR) == pytest.approx(10 + (HOUR - 10) * 0.1 / 1.1)


def test_dropped_ranks_stay_away_after_the_repair() -> None:
    """h + (22 h - h) s/(1+s) for a failure at 2 h."""
    assert lost(DROPPED, 2 * HOUR) == pytest.approx(10 + (22 * HOUR - 10) * 0.1 / 1.1)


def test_two_failures_at_once_add_up() -> None:
    """2 s while both are down; the second comes an hour after the first."""
    one, two = HOUR - 10, 3 * HOUR - 10
    expected = 20 + 2 * one * 0.1 / 1.1 + 10 * 0.1 / 1.1 + two * 0.2 / 1.2
    assert lost(FAILOVER, 2 * HOUR, 3 * HOUR) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("minute", "since"), [(130, 10), (150, 0), (149, 29)])
def test_a_restart_stops_the_job_and_loses_the_work_since_the_last_checkpoint(minute: int, since: int) -> None:
    """restart + time since the last of the checkpoints at 0, 30, 60, .. min."""
    assert lost(RESTART, minute * 60.0) == pytest.approx(HOUR + since * 60)


def test_a_restart_counts_as_a_checkpoint() -> None:
    """Stopped at 120 min for 60 min, again at 185: five minutes of work are lost, since the job started at 180 min."""
    assert lost(RESTART, 120 * 60.0, 185 * 60.0) == pytest.approx(2 * HOUR + 300)


def test_a_failure_of_a_job_that_stands_still_costs_nothing_more() -> None:
    """Ten minutes into the restart the failed server is not in use."""
    assert lost(RESTART, 120 * 60.0, 130 * 60.0) == pytest.approx(lost(RESTART, 120 * 60.0))


@given(TIMES)
def test_failover_never_goes_back_and_never_does_more_than_time_allows(failures: list[float]) -> None:
    """Work grows with time, by at most the time that passes."""
    course = walk(FAILOVER, failures, DAY)
    time, done = np.diff(course.time_s), np.diff(course.done_s)
    assert (time >= 0).all()
    assert (done >= 0).all()
    assert (done <= time * (1 + 1e-12) + 1e-6).all()


@given(TIMES)
def test_a_restart_loses_at_least_what_it_stops_for(failures: list[float]) -> None:
    """0 <= share <= 1, and below 1 by the first stop at least as far as it lies within the day."""
    share = walk(RESTART, failures, DAY).share
    assert 0 <= share <= 1
    if failures:
        assert 24 * HOUR * (1 - share) >= min(HOUR, 24 * HOUR - failures[0]) - 1e-6


def test_drawn_failures_have_the_asked_rate_and_repeat_for_a_seed() -> None:
    """Poisson: mean and variance of the count are the rate; 4000 days, standard error sqrt(2/4000) = 0.022."""
    days = drawn_days(Day(draws=4000, seed=3), 2.0)
    counts = np.array([len(day) for day in days])
    assert counts.mean() == pytest.approx(2.0, abs=4 * 0.0224)
    assert counts.var() == pytest.approx(2.0, abs=0.25)
    assert days == drawn_days(Day(draws=4000, seed=3), 2.0)
    assert all(0 <= t < 24 * HOUR for day in days for t in day)


def test_the_default_rate_is_that_of_the_llama_3_report() -> None:
    """35 interruptions by switches or cables and 7 by NICs, 16,384 GPUs, 54 days: 4.7e-5 per GPU and day."""
    assert published_rate() == pytest.approx((35 + 7) / 16_384 / 54, rel=0.02)


def test_rows_of_a_day_under_failover_and_restart() -> None:
    """A rate of 2 a day: a restart (74 min less the 15 of lost work, which the day counts itself) loses far more."""
    block = TrainingBlock.model_validate(
        {
            "scenario": "training-day",
            "megatron": {"model": "gpt3-2.7b", "micro_batch_size": 1, "global_batch_size": 16},
            "gpu": "H100",
            "clusters": ["h100"],
            "strategies": ["nccl", "balance"],
            "day": {"draws": 200, "events_per_gpu_day": 2 / 16, "seed": 1},
        }
    )
    nccl, balance = (training_case_rows(case) for case in training_cases(0, block))
    shares = [next(r.simulated for r in rows if r.metric == "effective_time") for rows in (nccl, balance)]
    assert shares[0] is not None
    assert shares[1] is not None
    stopped = (16.5 + 11.5 + 31) + 15  # minutes a failure: restart and half of the interval between checkpoints
    assert 1 - shares[0] == pytest.approx(2 * stopped / 1440, rel=0.2)
    assert 1 - shares[1] < (1 - shares[0]) / 5
    failures = [r.simulated for r in nccl if r.metric.startswith("failure[")]
    assert failures == [r.simulated for r in balance if r.metric.startswith("failure[")]
    assert failures
