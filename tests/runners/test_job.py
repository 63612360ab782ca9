"""A job of equal collectives while NICs fail: what is known when, which plan runs, what each iteration costs."""

import math

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.timeline import Event, Timeline
from r2cc_simai.runners.collective import Job, run_job
from r2cc_simai.strategies.registry import parse_strategy

GIB = 2**30
MIB = 2**20
R7525 = load_cluster("r7525")
BOTH = pytest.mark.parametrize("backend", list(Backend))


def job(strategy, *fails, cluster=R7525, size=4 * GIB, iterations=6, **more):
    """Iterations on the r7525 under `--fail` options."""
    return run_job(
        cluster, parse_strategy(strategy), parse_failures(fails, cluster), Job(size, iterations=iterations, **more)
    )


def times(result):
    return [i.time_s for i in result.iterations]


def without_one_off(result):
    return [i.time_s - i.one_off_s for i in result.iterations]


HEALTHY = job("ideal").steady.time_s


@BOTH
def test_a_job_without_failures_repeats_itself(backend):
    """Every iteration takes the healthy time, one after another; no notes, nothing hit."""
    result = job("balance", backend=backend)
    assert times(result) == [result.iterations[0].time_s] * 6
    assert [i.start_s for i in result.iterations] == pytest.approx(np.arange(6) * result.iterations[0].time_s)
    assert result.cut is None
    assert result.first is None
    assert result.notes == []


def test_ideal_never_sees_a_failure():
    """The baseline of every overhead is the healthy job."""
    assert times(job("ideal", "server0.mlx5_2@0.5")) == [HEALTHY] * 6


@pytest.mark.parametrize(("strategy", "ratio"), [("hot-repair", 2.0), ("balance", 1.5), ("r2cc-allreduce:k=4", 1.375)])
def test_a_failure_at_time_0_is_known_from_the_start(strategy, ratio):
    """No detection, no iteration that is hit, the plan for the failed state from the first one on.

    Measured on the r7525: 2, 1.498 and 1 + 0.3 (1 + 1/4) = 1.375 times the healthy time.
    """
    result = job(strategy, "server0.mlx5_2@0")
    assert result.cut is None
    assert times(result) == [result.iterations[0].time_s] * 6
    assert result.iterations[0].time_s / HEALTHY == pytest.approx(ratio, rel=0.01)


@pytest.mark.parametrize(
    ("strategy", "later_s"), [("hot-repair", 4.07), ("balance", 3.040), ("r2cc-allreduce:k=4", 2.791)]
)
def test_the_iteration_that_is_hit_and_those_after_it(strategy, later_s):
    """mlx5_2 dies in iteration 3 after 601 MiB of it (log 01): 3.539 s by failover under every strategy, then its plan.

    The NIC's counter stands at two whole iterations and 601 MiB when the failure comes.
    """
    full = job("ideal").steady.bytes.rx[1]
    result = job(strategy, f"server0.mlx5_2@bytes:{round(2 * full + 630194176)}")
    assert [i.cut for i in result.iterations] == [False, False, True, False, False, False]
    assert times(result)[:2] == [HEALTHY] * 2
    assert result.cut.time_s == pytest.approx(3.539, rel=0.02)
    assert without_one_off(result)[3:] == pytest.approx([later_s] * 3, rel=0.01)


def test_one_off_costs_of_a_new_plan():
    """First R2CC-AllReduce after a repair +0.33 s (two communicators); with CUDA graphs 1.7 ms more (log 08)."""
    plain = job("r2cc-allreduce", "server0.mlx5_2@0.5")
    graphs = job("r2cc-allreduce", "server0.mlx5_2@0.5", graph=True)
    assert [i.one_off_s for i in plain.iterations] == pytest.approx([0, 0.328, 0, 0, 0, 0])
    assert graphs.first.one_off_s - plain.first.one_off_s == pytest.approx(1.7e-3)
    assert plain.first.time_s == pytest.approx(plain.steady.time_s + 0.328)


def test_hot_repair_keeps_its_graph_and_balance_captures_anew():
    """Recapturing costs Balance 1.7 ms; hot repair has nothing to capture."""
    assert job("hot-repair", "server0.mlx5_2@0.5", graph=True).first is None
    assert job("balance", "server0.mlx5_2@0.5", graph=True).first.one_off_s == pytest.approx(1.7e-3)


def test_the_first_collective_without_a_warm_up():
    """+0.12 s after a healthy start (log 01)."""
    result = job("balance", warmup=0)
    assert [i.one_off_s for i in result.iterations] == [0.12, 0, 0, 0, 0, 0]
    assert result.first.time_s == pytest.approx(HEALTHY + 0.12)


def test_a_repair_brings_back_the_healthy_plan():
    """Down from 1 s to 9 s: hit, degraded, hit by the repair, healthy again."""
    result = job("balance", "server0.mlx5_2@1..9", iterations=8)
    last = result.iterations[-1]
    assert last.time_s == pytest.approx(HEALTHY)
    assert last.bytes.rx[1] > 0
    assert any(i.time_s == pytest.approx(1.5 * HEALTHY, rel=0.01) for i in result.iterations)


def test_two_failures_one_after_the_other():
    """mlx5_2 of server 0 at 1 s, mlx5_3 of it at 8 s: Balance with 2 of 3 NICs, then with 1 of 3: 1.5 and 3 T0."""
    result = job("balance", "server0.mlx5_2@1", "server0.mlx5_3@8", iterations=6)
    calm = [i.time_s for i in result.iterations if not i.cut]
    assert calm[0] == pytest.approx(1.5 * HEALTHY, rel=0.01)
    assert calm[-1] == pytest.approx(3 * HEALTHY, rel=0.01)


def test_a_slowdown_is_planned_for_once_it_is_known():
    """A NIC at half its rate from time 0 on: the ring goes at its speed, 2 T0 with T0 = 2(4-1)/4 * D/B."""
    cluster = load_cluster("uniformx4").zero_latency()
    result = job("balance", "server0.nic0=0.5@0", cluster=cluster, size=GIB, iterations=2)
    assert result.steady.time_s == pytest.approx(2 * 1.5 * GIB / 50e9, rel=1e-6)


def test_notes_say_why_a_strategy_stood_back():
    """Below 16 MiB; each note once."""
    result = job("r2cc-allreduce", "server0.mlx5_2@0", size=MIB)
    assert result.notes == ["r2cc-allreduce falls back to balance below 16 MiB"]


@pytest.mark.parametrize(
    ("fail", "when"), [("server0.mlx5_2@1000", "at 1000 s"), ("server0.mlx5_2@bytes:1T", f"after {2**40} bytes")]
)
def test_a_failure_after_the_end_of_the_job_is_reported(fail, when):
    """The user asked for a failure that no iteration has met."""
    result = job("balance", fail, iterations=2)
    assert len(result.notes) == 1
    assert f"server0.mlx5_2 fails {when}, after the job has ended" in result.notes[0]
    assert "ask for more iterations" in result.notes[0]


RESTART_S = 60 * (16.5 + 11.5 + 31.0 + 15.0)


@BOTH
def test_nccl_restarts_from_its_checkpoint(backend):
    """Detect 16.5 + isolate 11.5 + reload 31 + repeat 15 min, the crash after detection, the collective once more."""
    result = job("nccl", "server0.mlx5_2@0.5", backend=backend)
    crash = 0.5 + R7525.resume_delay_s
    assert result.iterations[0].cut
    assert result.iterations[0].time_s == pytest.approx(crash + RESTART_S + HEALTHY, rel=1e-6)
    assert times(result)[1:] == pytest.approx([HEALTHY] * 5)


def test_nccl_without_a_spare_goes_on_with_the_nics_that_are_left():
    """`spare=0`: after the restart 1.5 T0, as Balance."""
    result = job("nccl:spare=0", "server0.mlx5_2@0.5")
    balance = job("balance", "server0.mlx5_2@0").steady.time_s
    assert times(result)[1:] == pytest.approx([balance] * 5)


def test_the_costs_of_a_restart_are_parameters():
    """All at zero: only the crash and the repetition remain."""
    result = job("nccl:detect_min=0,isolate_min=0,reload_min=0,lost_min=0", "server0.mlx5_2@0.5")
    assert result.iterations[0].time_s == pytest.approx(0.5 + R7525.resume_delay_s + HEALTHY)


def test_iterations_follow_one_another_after_a_restart():
    """start of the next = start + time of the one before: the wait for the restart counts once."""
    result = job("nccl", "server0.mlx5_2@0.5")
    ends = [i.start_s + i.time_s for i in result.iterations]
    assert [i.start_s for i in result.iterations[1:]] == pytest.approx(ends[:-1])


def test_an_iteration_that_starts_on_an_unknown_failure_is_hit_by_it():
    """mlx5_2 has ended its share when it dies at 1.99 s, and the iteration ends before anyone knows.

    The next one stalls until detection and goes over the backup, so it is hit and is no steady iteration.
    """
    result = job("balance", "server0.mlx5_2@1.99", iterations=2)
    assert result.iterations[1].time_s > 1.5 * HEALTHY * 1.05
    assert result.iterations[1].cut


def test_all_nics_of_a_server_down_ends_the_job():
    """Exit 3 with the reason, in mid-run or from the start."""
    for when in ("0", "0.5"):
        with pytest.raises(PartitionedError, match="no NIC"):
            job("hot-repair", f"server0@{when}")


def test_counters_by_bytes_run_over_iterations():
    """The counter goes on from iteration to iteration: 1.5 iterations' bytes are reached in the second."""
    full = job("ideal").steady.bytes.rx[1]
    result = job("hot-repair", f"server0.mlx5_2@bytes:{round(1.5 * full)}", iterations=3)
    assert [i.cut for i in result.iterations] == [False, True, False]
    assert result.iterations[1].bytes.rx[1] == pytest.approx(0.5 * full, rel=1e-3)


def test_equal_jobs_are_equal_to_the_bit():
    """No state is left behind between jobs."""
    one, two = (job("r2cc-allreduce", "server0.mlx5_2@0.5") for _ in range(2))
    assert times(one) == times(two)
    assert [i.bytes.rx.tobytes() for i in one.iterations] == [i.bytes.rx.tobytes() for i in two.iterations]


def test_a_timeline_without_events_is_the_healthy_job():
    """Timeline() and no --fail are the same."""
    result = run_job(R7525, parse_strategy("balance"), Timeline(), Job(4 * GIB, iterations=2))
    assert times(result) == times(job("balance", iterations=2))


def test_a_failure_within_the_detection_of_another_is_met_too():
    """Both NICs die 0.1 s apart: one backup is left for both, 3 shares on mlx5_0 in later iterations."""
    events = (Event(1, 0.0, time_s=0.5), Event(2, 0.0, time_s=0.6))
    result = run_job(R7525, parse_strategy("hot-repair"), Timeline(events), Job(4 * GIB, iterations=4))
    assert result.steady.time_s == pytest.approx(3 * HEALTHY, rel=0.01)
    assert not math.isnan(result.iterations[0].run.event_time_s[1])
