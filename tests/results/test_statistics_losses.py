"""What is drawn, lost GPU-hours a month, their causes, and strategies on the same draws."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from r2cc_simai.results import Row, error_row, read_rows
from r2cc_simai.results.files import write_csv
from r2cc_simai.results.statistics import (
    Sample,
    difference,
    differences,
    gather,
    is_drawn,
    loss_by_cause,
    mean_interval,
    monthly_loss,
    studies,
)

MakeRow = Callable[..., Row]
HOURS, GPUS = 73.0, 16


@pytest.fixture
def course(row: MakeRow) -> Callable[..., list[Row]]:
    """Return a function that makes the rows of one course: GPU-hours lost and incidents, by cause."""

    def make(
        strategy: str, seed: int | None, lost: dict[str, float], incidents: dict[str, int] | None = None
    ) -> list[Row]:
        common = {"strategy": strategy, "seed": seed, "bytes": 0, "ideal": None, "pattern": "mttf:table=mine"}
        counts = incidents or dict.fromkeys(lost, 1)
        total = sum(lost.values())
        share = 1 - total / (HOURS * GPUS)
        return [
            row(**{**common, "ideal": 1.0}, metric="effective_time", unit="1", simulated=share),
            row(**common, metric="lost_gpu_h", unit="h", simulated=total),
            *(row(**common, metric=f"lost_gpu_h[{c}]", unit="h", simulated=value) for c, value in lost.items()),
            *(row(**common, metric=f"incidents[{c}]", unit="1", simulated=n) for c, n in counts.items()),
            row(**common, metric="incidents", unit="1", simulated=sum(counts.values())),
            row(**common, metric="gpu_h", unit="h", simulated=HOURS * GPUS),
            row(**common, metric="hours", unit="h", simulated=HOURS),
        ]

    return make


def test_rows_of_a_seed_and_of_a_course_are_drawn_failures(row: MakeRow) -> None:
    """A time of a seed is one; a time without is not; the mean of a training day, which has no ideal, is not."""
    assert is_drawn(row(seed=0))
    assert is_drawn(row(metric="effective_time", simulated=0.9, ideal=1.0))
    assert is_drawn(row(metric="lost_gpu_h[cable]"))
    assert not is_drawn(row())
    assert not is_drawn(row(metric="effective_time", simulated=0.9, ideal=None))
    where = {"scenario": "s", "cluster": "c", "workload": "w", "pattern": "p", "strategy": "nccl", "backend": "flow"}
    assert not is_drawn(error_row(**where, bytes=0, seed=3, error="no way left"))


def test_samples_are_in_the_order_of_their_seeds(row: MakeRow) -> None:
    """Rows come as workers finish them; statistics must not depend on it."""
    rows = [row(seed=seed, simulated=1.0 + seed) for seed in (2, 0, 1)]
    ((_, own),) = gather(rows).items()
    sample = own["balance"].values["time"]
    assert sample.seeds == (0, 1, 2)
    assert sample.values.tolist() == [1.0, 2.0, 3.0]
    assert own["balance"].overhead_pct["time"].values.tolist() == pytest.approx([0.0, 100.0, 200.0])


def test_a_cause_that_a_draw_lacks_counts_as_zero(course: Callable[..., list[Row]]) -> None:
    ((_, own),) = gather(course("nccl", 0, {"nic": 4.0}) + course("nccl", 1, {"cable": 2.0})).items()
    part = own["nccl"].sample("lost_gpu_h[cable]")
    assert part is not None
    assert part.values.tolist() == [0.0, 2.0]


def test_samples_are_what_the_files_hold(row: MakeRow, tmp_path: Path) -> None:
    """Files keep 12 significant digits: a run's own rows give the same statistics as its results.csv."""
    rows = [row(seed=0, simulated=1 / 3, ideal=1 / 7)]
    write_csv(rows, tmp_path / "results.csv")
    read = read_rows(tmp_path / "results.csv")
    for (_, own), (_, other) in zip(gather(rows).items(), gather(read).items(), strict=True):
        assert own["balance"].values["time"].values == other["balance"].values["time"].values
        assert own["balance"].overhead_pct["time"].values == other["balance"].overhead_pct["time"].values


def test_nothing_done_is_an_infinite_overhead(course: Callable[..., list[Row]]) -> None:
    """overhead = 100 (1 / effective_time - 1): 25% where 4/5 of the work is done."""
    rows = course("nccl", 0, {"nic": HOURS * GPUS}) + course("nccl", 1, {"nic": HOURS * GPUS / 5})
    (study,) = studies(rows)
    assert study.overheads("effective_time")["nccl"].values.tolist() == [math.inf, pytest.approx(25.0)]


def test_expected_loss_of_a_month(course: Callable[..., list[Row]]) -> None:
    """Draws of 73 h lose 4, 0 and 5 GPU-hours: mean 3, a month of 730 h ten times as much, 30 of 730 * 16 GPU-hours."""
    rows = [r for seed, lost in enumerate((4.0, 0.0, 5.0)) for r in course("nccl", seed, {"nic": lost})]
    ((_, own),) = gather(rows).items()
    loss = monthly_loss(own["nccl"])
    assert loss is not None
    assert loss.gpu_h == pytest.approx(30.0)
    assert loss.all_gpu_h == pytest.approx(11_680.0)
    assert loss.share_pct == pytest.approx(100 * 30 / 11_680)
    inner = mean_interval(np.array([4.0, 0.0, 5.0]))
    assert loss.interval is not None
    assert inner is not None
    assert (loss.interval.low, loss.interval.high) == pytest.approx((10 * inner.low, 10 * inner.high))


def test_which_failures_cost_most(course: Callable[..., list[Row]]) -> None:
    """Two draws of 73 h are a fifth of a month: 8 + 4 lost to cables in 3 incidents, 4 to a NIC, nothing to a ToR."""
    rows = course("nccl", 0, {"cable": 8.0, "nic": 4.0}, {"cable": 2, "nic": 1})
    rows += course("nccl", 1, {"cable": 4.0, "tor": 0.0}, {"cable": 1, "tor": 1})
    ((_, own),) = gather(rows).items()
    cable, nic, tor = loss_by_cause(own["nccl"])
    assert (cable.cause, nic.cause, tor.cause) == ("cable", "nic", "tor")
    assert (cable.share_pct, nic.share_pct, tor.share_pct) == pytest.approx((75.0, 25.0, 0.0))
    assert (cable.gpu_h, cable.incidents, cable.gpu_h_per_incident) == pytest.approx((60.0, 15.0, 4.0))


def test_without_a_loss_no_cause_has_a_share(course: Callable[..., list[Row]]) -> None:
    ((_, own),) = gather(course("ideal", 0, {"nic": 0.0})).items()
    (nic,) = loss_by_cause(own["ideal"])
    assert (nic.share_pct, nic.gpu_h_per_incident) == (None, 0.0)


def _sample(values: np.ndarray, first: int = 0) -> Sample:
    return Sample(tuple(range(first, first + len(values))), values)


def test_a_difference_is_taken_draw_by_draw() -> None:
    """Seeds 1 and 2 are in both: (2 - 5, 3 - 3) = (-3, 0), mean -1.5; the first is less in half of them."""
    one = difference(("a", _sample(np.array([1.0, 2.0, 3.0]))), ("b", _sample(np.array([5.0, 3.0, 9.0]), first=1)))
    assert one is not None
    assert (one.n, one.mean, one.first_less_pct, one.second_less_pct) == (2, -1.5, 50.0, 0.0)


def test_pairs_tell_apart_what_means_alone_cannot() -> None:
    """Losses vary by 100%, strategies differ by 2% in each draw: the means' intervals overlap, the difference's does
    not hold 0."""
    shared = np.random.default_rng(5).exponential(100.0, 300)
    worse = 1.02 * shared
    one = difference(("a", _sample(shared)), ("b", _sample(worse)))
    apart, joint = mean_interval(shared), mean_interval(worse)
    assert one is not None
    assert one.interval is not None
    assert apart is not None
    assert joint is not None
    assert joint.low < apart.high
    assert one.better == "a"
    assert one.interval.half_width < apart.half_width / 20


def test_equal_strategies_are_not_told_apart() -> None:
    """Two strategies of independent losses of one distribution, and two that are equal in every draw."""
    random = np.random.default_rng(6)
    first, second = random.exponential(size=(2, 200))
    one = difference(("a", _sample(first)), ("b", _sample(second)))
    same = difference(("a", _sample(first)), ("b", _sample(first)))
    assert one is not None
    assert same is not None
    assert (one.better, same.better) == (None, None)


@pytest.mark.parametrize(("strategies", "pairs"), [(2, 1), (5, 10), (6, 5)])
def test_all_pairs_of_few_strategies_and_the_best_against_many(strategies: int, pairs: int) -> None:
    """k (k - 1) / 2 pairs up to five strategies, k - 1 beyond; the first is the better one on average."""
    samples = {f"s{i}": _sample(np.array([i, 2.0 * i])) for i in reversed(range(strategies))}
    found = differences(samples)
    assert len(found) == pairs
    assert found[0].first == "s0"
    assert all(one.mean < 0 for one in found)


def test_strategies_of_no_common_draw_are_not_compared() -> None:
    assert difference(("a", _sample(np.array([1.0]))), ("b", _sample(np.array([1.0]), first=7))) is None
    assert differences({"a": Sample((None,), np.array([1.0])), "b": Sample((None,), np.array([2.0]))}) == []


def test_a_study_of_short_jobs_compares_overheads(row: MakeRow) -> None:
    """No hours: strategies are compared by the overhead of the metric that says most, here of `time`."""
    rows = [
        row(seed=seed, strategy=s, metric=metric, simulated=1 + loss)
        for seed in range(3)
        for s, loss in (("balance", 0.1), ("hot-repair", 1.0))
        for metric in ("time_cut", "time")
    ]
    (study,) = studies(rows)
    assert (study.metrics, study.hours, study.seeds) == (["time", "time_cut"], None, 3)
    (one,) = study.differences
    assert (one.better, one.mean) == ("balance", pytest.approx(-90.0))
