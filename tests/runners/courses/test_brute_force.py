"""A course of collectives against all of them simulated, one after another, under the same failures.

A course takes a change to come in the middle of a collective. Where it does, both agree; where it comes at another
time, each change may cost up to about one collective more or less.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.failures.compose import timeline_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.runners.collective import Job, run_job
from r2cc_simai.runners.courses.cache import CostCache
from r2cc_simai.runners.courses.collective import collective_job
from r2cc_simai.runners.courses.course import HOUR_S, Course
from r2cc_simai.runners.courses.rows import run_course
from r2cc_simai.strategies.registry import parse_strategy

JOB = Job(bytes=16 << 30, warmup=1)  # r2cc-allreduce's new communicators take less than ten of these
CLUSTER = "h100"
CACHE = CostCache()
LENGTH = 60  # collectives that the healthy job does


def healthy_s() -> float:
    """Seconds of a collective when nothing fails."""
    return collective_job(CLUSTER, JOB, "ideal").healthy_s


def done_by_course(strategy: str, incidents: tuple[Incident, ...], horizon_s: float) -> float:
    """Collectives that get done, as the course has it."""
    course = Course(horizon_s / HOUR_S, checkpoint_min=1e6)
    return run_course(collective_job(CLUSTER, JOB, strategy), incidents, course, CACHE).done_s / healthy_s()


def done_by_simulation(strategy: str, incidents: tuple[Incident, ...], horizon_s: float) -> float:
    """Collectives that get done when every one of them is simulated; the last one in part."""
    cluster = load_cluster(CLUSTER)
    timeline = timeline_of(incidents, cluster, "")
    job = Job(bytes=JOB.bytes, warmup=1, iterations=LENGTH)
    ends = [one.start_s + one.time_s for one in run_job(cluster, parse_strategy(strategy), timeline, job).iterations]
    whole = sum(end <= horizon_s for end in ends)
    begin = ends[whole - 1] if whole else 0.0
    return whole + ((horizon_s - begin) / (ends[whole] - begin) if whole < len(ends) else 0.0)


@pytest.mark.parametrize("strategy", ["hot-repair", "balance", "balance:split=weighted", "r2cc-allreduce"])
def test_a_failure_in_the_middle_of_a_collective_is_the_same_in_both(strategy: str) -> None:
    """A NIC goes down in the middle of the sixth collective and stays away: equal to rounding."""
    incidents = (Incident("server0.nic3", 5.5 * healthy_s()),)
    horizon_s = (LENGTH - 1) * healthy_s()
    expected = done_by_simulation(strategy, incidents, horizon_s)
    assert done_by_course(strategy, incidents, horizon_s) == pytest.approx(expected, rel=1e-6)


TIMES = st.tuples(st.floats(2, 25), st.floats(8, 25), st.floats(0, 40), st.floats(8, 15))


@settings(max_examples=15)
@given(strategy=st.sampled_from(["hot-repair", "balance"]), times=TIMES)
def test_failures_at_any_time_differ_by_less_than_a_collective_each(
    strategy: str, times: tuple[float, float, float, float]
) -> None:
    """Two outages with repairs that may overlap: four changes, each within one collective."""
    t = healthy_s()
    first, lasts, second, long = (x * t for x in times)
    incidents = (Incident("server0.nic3", first, first + lasts), Incident("server1.nic6", second, second + long))
    horizon_s = (LENGTH - 1) * t
    expected = done_by_simulation(strategy, incidents, horizon_s)
    assert done_by_course(strategy, incidents, horizon_s) == pytest.approx(expected, abs=4)
