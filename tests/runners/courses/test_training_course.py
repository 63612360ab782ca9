"""Courses of a training job: against today's arithmetic for single failures, and against full simulations."""

import json
from dataclasses import replace

import pytest

from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.timeline import Component, Event, Timeline
from r2cc_simai.runners.courses.cache import CostCache
from r2cc_simai.runners.courses.course import Course
from r2cc_simai.runners.courses.prices import Prices
from r2cc_simai.runners.courses.rows import run_course
from r2cc_simai.runners.courses.training import TrainingCourse, training_job
from r2cc_simai.runners.training_day import cost_of_failure, walk
from r2cc_simai.runners.training_scenario import Day
from r2cc_simai.runners.training_workload import JobSpec
from r2cc_simai.training.iteration import run_iteration
from r2cc_simai.training.job import run_training

HOUR = 3600.0
STRATEGIES = ["nccl", "nccl:spare=0", "hot-repair", "balance", "r2cc-allreduce", "adapcc"]


def spec(cluster: str = "h100", **options: object) -> JobSpec:
    """A small model on few servers."""
    given = {"model": "gpt3-2.7b", "micro_batch_size": 1, "global_batch_size": 16, **options}
    return JobSpec("megatron", json.dumps(given), "H100", 1.0, cluster)


DATA_PARALLEL = spec()
PIPELINE = spec("h100x4", tensor_model_parallel_size=8, pipeline_model_parallel_size=2)
NIC = "server0.nic0"
PART = {0: Component.NIC}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_failure_costs_what_one_simulation_and_arithmetic_by_hand_say(strategy: str) -> None:
    """Down at 100 h of 720 h, repaired at 110 h. T0 = the healthy iteration, T_hit the one that is hit, s = overhead.

    Goes on: extra = T_hit - T0/2 - (w - 1/2) T0 (1 + s), w the part of the ranks that is left, then s until the repair
    (without ranks that were dropped: to the end). Restarts: the strategy's minutes, then s.
    """
    job = training_job(DATA_PARALLEL, strategy)
    middle = parse_failures([f"{NIC}@{job.healthy_s / 2:.12f}"], job.cluster)
    result = run_training(job.job, job.strategy, middle)
    dropped, slow = bool(result.dropped), result.overhead
    restarts = strategy.startswith("nccl")
    if restarts:
        once = 60 * (16.5 + 11.5 + 31)
    else:
        assert result.hit_s is not None
        once = result.hit_s - job.healthy_s / 2 - (1 / result.work_factor - 0.5) * job.healthy_s * (1 + slow)
    until_s = 620 * HOUR if dropped else 10 * HOUR
    lost = once + (until_s - once) * slow / (1 + slow)
    outcome = run_course(job, [Incident(NIC, 100 * HOUR, 110 * HOUR)], Course(720, 30), CostCache())
    assert outcome.lost_s == {0: pytest.approx(lost, rel=1e-9)}
    assert outcome.effective_time == pytest.approx(1 - lost / (720 * HOUR), rel=1e-12)


@pytest.mark.parametrize("strategy", ["nccl", "hot-repair", "balance", "r2cc-allreduce"])
def test_single_failures_of_a_day_agree_with_the_day_of_one_simulated_cost(strategy: str) -> None:
    """Three failures that do not overlap. The day takes the hit from T0 on, the course from the mean of T0 and T1: they
    differ by s T0 / 2 a failure."""
    job = training_job(DATA_PARALLEL, strategy)
    day = Day(hours=24, repair_h=4, checkpoint_min=30)
    failures = (2.2 * HOUR, 9 * HOUR, 17.7 * HOUR)
    cost = cost_of_failure(job.job, job.strategy)
    incidents = [Incident(NIC, t, t + 4 * HOUR) for t in failures]
    share = run_course(job, incidents, Course(24, 30), CostCache()).effective_time
    assert share == pytest.approx(walk(cost, failures, day).share, abs=3 * job.healthy_s / 2 / (24 * HOUR))


@pytest.mark.parametrize("strategy", ["hot-repair", "balance", "r2cc-allreduce"])
def test_a_hit_costs_nearly_the_same_whatever_other_servers_have_lost(strategy: str) -> None:
    """With a NIC of another replica down before, T_hit - (T + T')/2 changes by less than 10% of an iteration."""
    job = training_job(PIPELINE, strategy)
    prices = Prices(job, CostCache())
    other = 8 + 5
    local = prices.change({other: 0.0}, {other: 0.0, 0: 0.0}, PART).extra_s
    before, after = (prices.state(s).slow for s in ({other: 0.0}, {other: 0.0, 0: 0.0}))
    at_s = (1 + before) * job.healthy_s / 2
    events = Timeline((Event(other, 0.0), Event(0, 0.0, time_s=at_s)))
    hit_s = run_iteration(job.cluster, job.job.ranks, job.strategy, events).elapsed_s
    assert local == pytest.approx(hit_s - (2 + before + after) * job.healthy_s / 2, abs=0.1 * job.healthy_s)


def test_a_dropped_replica_does_not_care_which_nic_it_lost() -> None:
    """One replica is two servers: any dead NICs of theirs say the same, and those of others stay."""
    job = training_job(PIPELINE, "adapcc")
    assert job.essence({19: 0.0, 3: 0.0, 9: 0.5}) == {0: 0.0, 9: 0.5}
    whole, simple = (job.state_cost(s) for s in (((19, (0.0,)),), ((0, (0.0,)),)))
    assert whole == simple
    assert whole.work_factor == 2.0


def test_failures_of_one_canonical_state_are_simulated_once() -> None:
    """Eight NICs on each of two servers of one kind: every single failure is the same one."""
    cache = CostCache()
    job = training_job(DATA_PARALLEL, "balance")
    incidents = [Incident(f"server{k % 2}.nic{k // 2}", k * HOUR, (k + 0.5) * HOUR) for k in range(16)]
    run_course(job, incidents, Course(24, 30), cache)
    assert cache.lookups - cache.hits == 3  # healthy, one NIC down, and the change


def test_results_do_not_depend_on_which_state_came_first() -> None:
    """The same course after another one, whose states are moves of its own."""
    job = training_job(PIPELINE, "balance")
    first = [Incident("server1.nic6", HOUR, 3 * HOUR), Incident("server2.nic1", 2 * HOUR, 4 * HOUR)]
    other = [Incident("server0.nic2", HOUR, 3 * HOUR), Incident("server3.nic5", 2 * HOUR, 4 * HOUR)]
    alone, shared = CostCache(), CostCache()
    run_course(job, other, Course(24, 30), shared)
    a, b = (run_course(job, first, Course(24, 30), cache) for cache in (alone, shared))
    assert a == b
    assert shared.hits > alone.hits


def test_jobs_that_differ_share_no_costs() -> None:
    """Another batch, another strategy, another option of it, another rate of the NICs."""
    cache = CostCache()
    jobs: list[TrainingCourse] = [
        training_job(DATA_PARALLEL, "balance"),
        training_job(DATA_PARALLEL, "balance:split=weighted"),
        training_job(DATA_PARALLEL, "hot-repair"),
        training_job(spec(global_batch_size=32), "balance"),
        training_job(replace(DATA_PARALLEL, nic_rate_gbps=200.0), "balance"),
    ]
    for number, job in enumerate(jobs):
        Prices(job, cache).state({})
        assert (cache.lookups, cache.hits) == (number + 1, 0)
