"""A job through a failure: what each iteration costs afterwards, what the failure costs once, and who is dropped.

GPT 2.7B (4 of its layers), 16 replicas on two servers of 8 GPUs and 8 NICs, gradients reduced after the backward pass:
the AllReduce is exposed. With e its share of the healthy iteration and one NIC of one server dead (X = 1/8):
balance 1/(1-X) - 1 = 1/7 of e, hot repair all of e, with two backups half of it.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from r2cc_simai.chakra.schema import NodeType
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.strategies.nccl import Nccl
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training.iteration import run_iteration
from r2cc_simai.training.job import TrainingJob, TrainingResult, run_training

Maker = Callable[..., TrainingJob]


def result(job: TrainingJob, strategy: str, *failures: str) -> TrainingResult:
    return run_training(job, parse_strategy(strategy), parse_failures(list(failures), job.cluster))


@pytest.fixture
def job(make_job: Maker) -> TrainingJob:
    return make_job("h100x2", global_batch_size=32)


def in_the_allreduce_s(job: TrainingJob, part: float) -> float:
    """A time at which so much of the last gradient bucket's time has passed, in the healthy iteration."""
    run = run_iteration(job.cluster, job.ranks, parse_strategy("ideal"), Timeline(), record=(0,))
    kind = job.ranks.traces[0].type
    start, end = max((row[2], row[3]) for row in run.spans.tolist() if kind[int(row[1])] == NodeType.COMM_COLL)
    return float(start + part * (end - start))


def test_exposed_share_is_the_allreduce(job: TrainingJob) -> None:
    """e T = 2 (p-1)/p D/B, D four bytes a parameter, B the payload rate of a server's eight NICs."""
    parameters = job_parameters(job)
    rate = 8 * job.cluster.nics[0].payload_rate
    assert job.healthy.exposed_s[0] == pytest.approx(2 * 15 / 16 * 4 * parameters / rate, rel=0.02)


def job_parameters(job: TrainingJob) -> int:
    """From the size of the gradient buckets: the trace's AllReduce nodes."""
    trace = job.ranks.traces[0]
    return int(trace.bytes[trace.comm_type == 0].sum()) // 4


def test_balance_costs_a_seventh_of_the_exposed_share(job: TrainingJob) -> None:
    """1/(1-X) - 1 = 1/7 of it."""
    assert result(job, "balance", "server0.nic3@0").overhead == pytest.approx(job.healthy.exposed_share / 7, rel=0.02)


def test_hot_repair_costs_the_whole_of_it(job: TrainingJob) -> None:
    """The backup NIC carries two shares: twice the time."""
    assert result(job, "hot-repair", "server0.nic3@0").overhead == pytest.approx(job.healthy.exposed_share, rel=0.02)


def test_two_backups_cost_half_of_it(job: TrainingJob) -> None:
    """Each carries 1.5 shares."""
    failover = job.cluster.spec.failover.model_copy(update={"backups_per_nic": 2})
    cluster = Cluster("h100x2", job.cluster.spec.model_copy(update={"failover": failover}))
    two = result(replace(job, cluster=cluster), "hot-repair", "server0.nic3@0")
    assert two.overhead == pytest.approx(job.healthy.exposed_share / 2, rel=0.02)


def test_r2cc_allreduce_costs_less_than_balance(job: TrainingJob) -> None:
    """16 ring members: (1 + 1/K) n X / (2 (n-1) (1-X)) of e, about half of Balance's X/(1-X); latency adds to it."""
    own = result(job, "r2cc-allreduce:k=16", "server0.nic3@0").overhead
    formula = (1 + 1 / 16) * 16 / 8 / (2 * 15 * 7 / 8) * job.healthy.exposed_share
    assert own == pytest.approx(formula, rel=0.06)


def test_adapcc_drops_a_replica(job: TrainingJob) -> None:
    """Healthy over degraded throughput: 16/15 of (1 + e/7); its collectives run over the seven NICs that are left."""
    adapcc = result(job, "adapcc", "server0.nic3@0")
    assert adapcc.dropped == (3,)
    assert 1 + adapcc.overhead == pytest.approx(16 / 15 * (1 + job.healthy.exposed_share / 7), rel=2e-3)
    assert adapcc.tokens_per_s == pytest.approx(job.tokens / job.healthy.elapsed_s / (1 + adapcc.overhead), rel=1e-9)


def test_restart_costs_its_minutes_once(job: TrainingJob) -> None:
    """Detection, isolation, loading and the lost work; with a spare the job is as before."""
    at = in_the_allreduce_s(job, 0.5)
    nccl = result(job, "nccl", f"server0.nic3@{at}")
    costs = Nccl()
    minutes = costs.detect_min + costs.isolate_min + costs.reload_min + costs.lost_min
    assert nccl.stopped_s == 60 * minutes
    assert nccl.overhead == pytest.approx(0, abs=1e-9)
    delay_s = job.cluster.resume_delay_s
    assert nccl.hit_s == pytest.approx(at + delay_s + 60 * minutes + job.healthy.elapsed_s, rel=1e-6)


def test_a_failure_that_no_traffic_meets_stops_nccl_in_the_next_iteration(job: TrainingJob) -> None:
    """At 1 ms nothing moves, but the gradients will have to pass the NIC; so they do if it fails behind them."""
    late = job.healthy.elapsed_s - 1e-5
    for at in (0.001, late):
        assert result(job, "nccl", f"server0.nic3@{at}").stopped_s > 0
        assert result(job, "adapcc", f"server0.nic3@{at}").dropped == (3,)


def test_a_cut_in_the_allreduce_is_survived(job: TrainingJob) -> None:
    """The iteration is longer by detection and the rest on fewer NICs, but no longer than by hot repair from the start
    and the delay."""
    at = in_the_allreduce_s(job, 0.3)
    cut = result(job, "balance", f"server0.nic3@{at}")
    assert cut.hit is not None
    assert [entry.what for entry in cut.hit.log] == ["down", "detected", "migrated"]
    slowest = result(job, "hot-repair", "server0.nic3@0").after.elapsed_s + job.cluster.resume_delay_s
    assert job.healthy.elapsed_s < cut.hit_s < slowest
    assert cut.after.elapsed_s == pytest.approx(result(job, "balance", "server0.nic3@0").after.elapsed_s)


def test_whole_iterations_before_the_failure_change_nothing(job: TrainingJob) -> None:
    """A failure in the third iteration is that of the first, two iterations later."""
    at = in_the_allreduce_s(job, 0.3)
    first = result(job, "balance", f"server0.nic3@{at}")
    third = result(job, "balance", f"server0.nic3@{at + 2 * job.healthy.elapsed_s}")
    assert third.hit_s == pytest.approx(first.hit_s, rel=1e-9)
    assert any("iteration 3" in note for note in third.notes)


def test_a_repair_within_the_iteration_leaves_nothing(job: TrainingJob) -> None:
    """Down and up again: the iterations after are healthy ones."""
    at = in_the_allreduce_s(job, 0.3)
    flapped = result(job, "balance", f"server0.nic3@{at}..{at + 0.005}")
    assert flapped.after.elapsed_s == pytest.approx(job.healthy.elapsed_s, rel=1e-9)
    assert flapped.hit_extra_s > 0


@pytest.mark.parametrize("strategy", ["ideal", "balance", "hot-repair", "r2cc-allreduce", "adapcc"])
def test_the_parts_of_a_rank_s_time_make_its_whole(job: TrainingJob, strategy: str) -> None:
    """Computing, moving bytes with nothing to compute, waiting: until the rank's last node."""
    run = result(job, strategy, "server1.nic0@0").after
    assert run.compute_s + run.exposed_s + run.waiting_s == pytest.approx(run.end_s, rel=1e-9)
    assert (run.exposed_s <= run.communication_s + 1e-12).all()
    assert run.elapsed_s == pytest.approx(run.end_s.max())


def test_ideal_sees_no_failure(job: TrainingJob) -> None:
    """The baseline of every overhead."""
    assert result(job, "ideal", "server0.nic3@0").overhead == 0


def test_nobody_is_left(job: TrainingJob) -> None:
    """All NICs of a server: the job cannot go on, and the line says why."""
    with pytest.raises(PartitionedError, match="server0"):
        result(job, "balance", "server0@0")


def test_one_replica_cannot_be_dropped(make_job: Maker) -> None:
    """With tensor and pipeline parallelism over all ranks there is one replica."""
    one = make_job("h100x2", tensor_model_parallel_size=8, pipeline_model_parallel_size=2, global_batch_size=4)
    with pytest.raises(PartitionedError, match="no data-parallel replica is left"):
        result(one, "adapcc", "server0.nic3@0")


def test_adapcc_needs_to_know_the_replicas(job: TrainingJob) -> None:
    """A trace of another tool does not say which ranks are a replica."""
    with pytest.raises(InputError, match="does not say which ranks are a replica"):
        result(replace(job, replica=None), "adapcc", "server0.nic3@0")


def test_a_trace_larger_than_the_cluster_is_refused(job: TrainingJob) -> None:
    """16 ranks do not fit on 8 GPUs; the line says how many servers would do."""
    with pytest.raises(InputError, match="a cluster of 2 such servers"):
        result(replace(job, cluster=load_cluster("h100x1")), "balance")


def test_failures_by_byte_count_are_for_single_collectives(job: TrainingJob) -> None:
    """Which collective's bytes they would count is not defined."""
    with pytest.raises(InputError, match="give a time in seconds"):
        result(job, "balance", "server0.nic3@bytes:1000")


def test_every_rank_of_a_dropped_replica_goes(make_job: Maker) -> None:
    """A replica of TP 8 and two stages is 16 ranks; one NIC takes them all."""
    wide = make_job("h100x8", tensor_model_parallel_size=8, pipeline_model_parallel_size=2, global_batch_size=16)
    gone = result(wide, "adapcc", "server0.nic3@0")
    assert gone.dropped == (*range(8), *range(32, 40))
    assert gone.work_factor == pytest.approx(4 / 3)
    assert wide.replica is not None
    assert set(wide.replica[list(gone.dropped)].tolist()) == {0}
    assert np.isfinite(gone.after.elapsed_s)
