"""NCCL's port failover and recovery: what a job sees of them.

r7525, 4 GiB AllReduce: 2.04 s healthy, 4.08 s with a dead port's traffic on another one. The failure is known 0.97 s
after it, and the recovery protocol goes on from there (`tests/detection/test_port_recovery.py`).
"""

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.runners.collective import Job, run_job
from r2cc_simai.strategies.registry import parse_strategy

GIB = 2**30
R7525 = load_cluster("r7525")


def job(strategy, *fails, cluster=R7525, size=4 * GIB, iterations=10, **more):
    """Iterations under `--fail` options."""
    timeline = parse_failures(fails, cluster)
    return run_job(cluster, parse_strategy(strategy), timeline, Job(size, iterations=iterations, **more))


def degraded(result):
    """How many iterations took the time of a port with two shares."""
    return sum(i.time_s > 1.9 * HEALTHY for i in result.iterations)


HEALTHY = job("ideal").steady.time_s


@pytest.mark.parametrize("backend", list(Backend))
def test_the_other_port_takes_over(backend):
    """As hot repair: twice the healthy time afterwards, and no recovery without a repair."""
    result = job("nccl-failover", "server0.mlx5_2@0.5", iterations=4, backend=backend)
    assert result.steady.time_s == pytest.approx(2 * HEALTHY, rel=0.01)
    assert result.recoveries == ()


def test_the_probe_of_what_arrived_costs_ten_milliseconds():
    """Traffic moves 10 ms later than under hot repair. The cut comes late, so the delay is exposed."""
    fail = "server0.mlx5_2@1.9"
    times = {
        s: job(s, fail, iterations=1).cut.time_s for s in ("hot-repair", "nccl-failover", "nccl-failover:probe_ms=0")
    }
    assert times["nccl-failover"] - times["hot-repair"] == pytest.approx(0.010, rel=1e-3)
    assert times["nccl-failover:probe_ms=0"] == times["hot-repair"]


def test_bandwidth_comes_back_some_seconds_after_the_port():
    """Back at 9 s; batches at 12.17 and 17.17 s arrive: used from the first collective after 17.17 s on.

    The count of recoveries is asserted, since "healthy" is also the initial state (rocm-systems PR#10541).
    """
    result = job("nccl-failover", "server0.mlx5_2@1..9")
    (recovery,) = result.recoveries
    assert recovery.recoveries == 1
    assert recovery.failed_attempts == 3
    assert recovery.recovered_s == pytest.approx(1 + 0.9705 + 0.2 + 15, abs=0.01)
    for i in result.iterations[1:]:
        slow = i.start_s < recovery.recovered_s
        assert i.time_s == pytest.approx((2 if slow else 1) * HEALTHY, rel=0.01)
    assert degraded(result) > degraded(job("hot-repair", "server0.mlx5_2@1..9"))
    assert any("in use again 8.17 s later" in note for note in result.notes)


@pytest.mark.parametrize(
    ("strategy", "fail"),
    [
        ("nccl-failover", "server0.mlx5_2@1..15"),  # nccl#2157: the receiver's budget is gone, the sender's is not
        ("nccl-failover:skew_s=19", "server0.mlx5_2@1..3"),  # nccl#2157: back after 2 s, but the ends miss each other
        ("nccl-failover:lost_attempts=5", "server0.mlx5_2@1..3"),  # nccl PR#2183: the address has changed
        ("nccl-failover", "server0.mlx5_2@1..4h"),  # nccl#2323: hours
    ],
)
def test_a_port_that_stays_unused_after_its_repair(strategy, fail):
    """The job goes on at half speed, does not hang, and says why."""
    iterations = 15 if "4h" not in fail else 3600
    result = job(strategy, fail, iterations=iterations)
    (recovery,) = result.recoveries
    assert recovery.recoveries == 0
    assert recovery.recovered_s is None
    assert result.iterations[-1].time_s == pytest.approx(2 * HEALTHY, rel=0.01)
    assert any("stays unused" in note and "recovery attempts" in note for note in result.notes)


@pytest.mark.parametrize("strategy", ["nccl-failover:attempts=12", "nccl-failover:backoff_s=10"])
def test_budget_and_back_off_are_options(strategy):
    """With more attempts, or another round of them, the port of nccl#2157 comes back."""
    result = job(strategy, "server0.mlx5_2@1..15", iterations=14)
    (recovery,) = result.recoveries
    assert recovery.recoveries == 1
    assert result.iterations[-1].time_s == pytest.approx(HEALTHY, rel=0.01)


def test_a_flap_that_ends_before_it_is_found_needs_no_recovery():
    """Back after 0.3 s, within the retries: the same connection goes on, nothing has failed over."""
    result = job("nccl-failover", "server0.mlx5_2@1..1.3", iterations=3)
    assert result.recoveries == ()
    assert result.iterations[-1].time_s == pytest.approx(HEALTHY)


def test_a_second_failure_after_a_recovery_is_an_outage_of_its_own():
    """Two outages of 1 s, 40 s apart: two recoveries, one each."""
    result = job("nccl-failover", "server0.mlx5_2@1..2.5", "server0.mlx5_2@41..42.5", iterations=26)
    assert [r.recoveries for r in result.recoveries] == [1, 1]
    assert result.recoveries[1].recovered_s > 42.5
    assert result.iterations[-1].time_s == pytest.approx(HEALTHY, rel=0.01)


@pytest.mark.parametrize("error", ["retry-exceeded", "flush"])
def test_recoverable_errors(error):
    """rocm-systems PR#6145: retries that are exceeded and flushed requests are survived."""
    assert len(job(f"nccl-failover:error={error}", "server0.mlx5_2@0.5", iterations=2).iterations) == 2


def test_an_access_error_is_fatal():
    """rocm-systems PR#6145: the job ends with the reason as soon as it is known."""
    with pytest.raises(PartitionedError, match=r"access error on server0\.mlx5_2.*fatal"):
        job("nccl-failover:error=access", "server0.mlx5_2@0.5")


def test_a_single_device_and_all_devices(cluster_of):
    """rocm-systems PR#6145: nothing is left to fail over to, which ends the job with the reason."""
    with pytest.raises(PartitionedError, match="no NIC is left"):
        job("nccl-failover", "server0.nic0@1e-4", cluster=cluster_of(servers=3), size=64 * 2**20)
    with pytest.raises(PartitionedError, match="no NIC is left"):
        job("nccl-failover", "server0@0.5")


def test_options_that_make_no_sense():
    """One line."""
    for text in ("attempts=0", "ack_ms=0", "error=none"):
        with pytest.raises(InputError, match="strategy nccl-failover"):
            parse_strategy(f"nccl-failover:{text}")
