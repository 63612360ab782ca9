"""Ranks that cannot be told apart are simulated once; the result is that of simulating every rank."""

from collections.abc import Callable

import pytest

from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training.classes import Classes
from r2cc_simai.training.iteration import Iteration, run_iteration
from r2cc_simai.training.job import TrainingJob

Maker = Callable[..., TrainingJob]

LAYOUTS = {
    "dp": {},
    "tp8": {"tensor_model_parallel_size": 8},
    "tp8 sp pp4": {
        "tensor_model_parallel_size": 8,
        "sequence_parallel": True,
        "pipeline_model_parallel_size": 4,
        "use_distributed_optimizer": True,
        "overlap_grad_reduce": True,
    },
    "tp2 pp2 cp2": {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "context_parallel_size": 2},
}
FAILURES = [[], ["server2.nic3@0"], ["server0.nic0@0", "server5.nic0@0"], ["server1.nic1=0.5@0"], ["server3.nic2@0.05"]]


def run(job: TrainingJob, strategy: str, failures: list[str], *, fold: bool) -> Iteration:
    timeline = parse_failures(failures, job.cluster)
    return run_iteration(job.cluster, job.ranks, parse_strategy(strategy), timeline, fold=fold)


@pytest.mark.parametrize("failures", FAILURES, ids=lambda f: " ".join(f) or "none")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("strategy", ["hot-repair", "balance", "r2cc-allreduce"])
def test_folded_is_unfolded_at_64_ranks(make_job: Maker, strategy: str, layout: str, failures: list[str]) -> None:
    """The same end, and for every rank the same times, as with every rank simulated."""
    job = make_job("h100x8", global_batch_size=64 * 2, **LAYOUTS[layout])
    folded = run(job, strategy, failures, fold=True)
    every = run(job, strategy, failures, fold=False)
    assert len(every.classes.first_rank) == 64
    assert folded.elapsed_s == pytest.approx(every.elapsed_s, rel=1e-6)
    for column in ("end_s", "compute_s", "exposed_s", "waiting_s", "communication_s"):
        mine = getattr(folded, column)[folded.classes.of_rank]
        assert mine == pytest.approx(getattr(every, column), rel=1e-6, abs=1e-7), column


@pytest.mark.parametrize("failures", FAILURES[:3], ids=lambda f: " ".join(f) or "none")
def test_folded_ports_count_the_same_bytes(make_job: Maker, failures: list[str]) -> None:
    """A NIC stands for its class; classes are of NICs that carry the same."""
    job = make_job("h100x8", global_batch_size=128, **LAYOUTS["tp8 sp pp4"])
    folded, every = (run(job, "balance", failures, fold=fold).bytes for fold in (True, False))
    for way in ("rx", "tx", "rx_payload", "tx_payload"):
        assert getattr(folded, way) == pytest.approx(getattr(every, way), rel=1e-6)


def classes(job: TrainingJob, strategy: str, failures: list[str]) -> Classes:
    return run(job, strategy, failures, fold=True).classes


def test_healthy_ranks_differ_by_stage_alone(make_job: Maker) -> None:
    """4 stages: 4 classes of 16 ranks, 8 in each of two replicas."""
    found = classes(make_job("h100x8", global_batch_size=128, **LAYOUTS["tp8 sp pp4"]), "balance", [])
    assert found.rank_count.tolist() == [16] * 4


def test_a_failure_sets_its_replica_and_its_neighbours_apart(make_job: Maker) -> None:
    """One NIC of server 0 (stage 0, replica 0 of 4): replica 0, the two that exchange with it in the rings, and the
    fourth, in 4 stages each. Balance spreads what the NIC carried, so that the other 7 ranks of a server stay equal."""
    job = make_job("h100x16", global_batch_size=128, **LAYOUTS["tp8 sp pp4"])
    assert classes(job, "balance", ["server0.nic3@0"]).rank_count.tolist() == [7, 1] * 16


def test_hot_repair_sets_places_apart(make_job: Maker) -> None:
    """The dead NIC's traffic meets that of one other NIC, not of all."""
    job = make_job("h100x16", global_batch_size=128, **LAYOUTS["tp8 sp pp4"])
    assert len(classes(job, "hot-repair", ["server0.nic3@0"]).first_rank) > 16


def test_servers_with_a_failure_are_never_equal(make_job: Maker) -> None:
    """A strategy may treat two servers that lost the same differently (R2CC-AllReduce degrades one of them first)."""
    job = make_job("h100x8", global_batch_size=128, **LAYOUTS["tp8"])
    found = classes(job, "balance", ["server0.nic3@0", "server4.nic3@0"])
    assert found.of_rank[0] != found.of_rank[32]
