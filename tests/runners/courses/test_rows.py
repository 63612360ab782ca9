"""Rows of the results table from a course."""

import json

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.runners.collective import Job
from r2cc_simai.runners.courses import CostCache, Course, collective_course_rows, training_course_rows
from r2cc_simai.runners.training_workload import JobSpec

HOUR = 3600.0
COURSE = Course(hours=100, checkpoint_min=30)
SPEC = JobSpec(
    "megatron", json.dumps({"model": "gpt3-2.7b", "micro_batch_size": 1, "global_batch_size": 16}), "H100", 1.0, "h100"
)
INCIDENTS = (
    Incident("server0.nic3", 5 * HOUR, 9 * HOUR),
    Incident("server1.nic3", 7 * HOUR, 10 * HOUR, cause="optics batch 2"),
    Incident("rail1", 50 * HOUR, 51 * HOUR, 0.5),
    Incident("server1.nic3", 200 * HOUR),  # after the end
)


def training(strategy: str, incidents: tuple[Incident, ...] = INCIDENTS) -> dict[str, float]:
    """Values by metric."""
    rows = training_course_rows(SPEC, strategy, incidents, "p:x=1", 3, COURSE, "month", CostCache())
    return {row.metric: row.simulated for row in rows if row.simulated is not None}


@pytest.mark.parametrize("strategy", ["ideal", "nccl", "balance", "adapcc"])
def test_what_is_lost_is_the_sum_over_causes_and_what_effective_time_lacks(strategy: str) -> None:
    """lost = sum over causes = (1 - effective_time) * horizon * GPUs."""
    values = training(strategy)
    causes = {m: v for m, v in values.items() if m.startswith("lost_gpu_h[")}
    assert set(causes) == {"lost_gpu_h[nic]", "lost_gpu_h[optics batch 2]", "lost_gpu_h[rail]"}
    assert values["lost_gpu_h"] == pytest.approx(sum(causes.values()), rel=1e-12)
    assert values["lost_gpu_h"] == pytest.approx((1 - values["effective_time"]) * values["gpu_h"], abs=1e-9)
    assert (values["gpu_h"], values["hours"]) == (1600.0, 100.0)


def test_incidents_are_counted_that_begin_within_the_course() -> None:
    """Three of four, each under its cause or the kind of its component."""
    values = training("balance")
    assert values["incidents"] == 3
    assert [values[f"incidents[{cause}]"] for cause in ("nic", "optics batch 2", "rail")] == [1, 1, 1]


def test_without_incidents_all_time_is_effective() -> None:
    """And there are no causes."""
    values = training("balance", ())
    assert values == {"effective_time": 1.0, "lost_gpu_h": 0.0, "incidents": 0.0, "gpu_h": 1600.0, "hours": 100.0}


def test_rows_say_what_the_case_was() -> None:
    """Job and course in the workload, pattern and seed as given; effective time is better when there is more."""
    (row, *_) = training_course_rows(SPEC, "adapcc", INCIDENTS, "p:x=1", 3, COURSE, "month", CostCache())
    assert (row.scenario, row.cluster, row.pattern, row.seed) == ("month", "h100", "p:x=1", 3)
    assert (row.strategy, row.backend, row.bytes, row.unit, row.ideal) == ("adapcc", "flow", 0, "1", 1.0)
    assert row.workload.startswith("gpt3-2.7b tp=1 ")
    assert row.workload.endswith(" hours=100 checkpoint_min=30")
    assert row.simulated is not None
    assert row.overhead_pct == pytest.approx(100 * (1 / row.simulated - 1))


def test_collectives_have_the_same_rows_with_their_size() -> None:
    """An AllReduce again and again: Balance with one NIC of eight away has 7/8 of the bandwidth."""
    incidents = (Incident("server0.nic3", 0.0, 50 * HOUR),)
    job = Job(1 << 30)
    rows = collective_course_rows("h100", job, "balance", incidents, "x", None, COURSE, "s", CostCache())
    values = {row.metric: row.simulated for row in rows}
    assert {row.bytes for row in rows} == {1 << 30}
    assert values["effective_time"] == pytest.approx((7 / 8 + 1) / 2, rel=0.01)


def test_a_component_that_the_cluster_lacks_is_refused() -> None:
    """One line with its name."""
    with pytest.raises(InputError, match=r"server9\.nic0.*no such component"):
        training("balance", (Incident("server9.nic0", HOUR),))
