"""Moves of servers and rails that the symmetries have change no simulated time.

Times agree to 1e-9, but for bytes that do not divide evenly: pieces of channels, and shards of a distributed optimizer,
are whole bytes, and which of them has one more is a matter of numbers. There they agree to 1e-8.
"""

import json
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.symmetry import State
from r2cc_simai.engine.run import Backend
from r2cc_simai.runners.collective import Job
from r2cc_simai.runners.courses.collective import CollectiveCourse, collective_job
from r2cc_simai.runners.courses.costs import CourseJob
from r2cc_simai.runners.courses.equivalence import blocks_of, even
from r2cc_simai.runners.courses.training import TrainingCourse, training_job
from r2cc_simai.runners.training_workload import JobSpec

TRAINING = ["ideal", "nccl", "hot-repair", "balance", "r2cc-allreduce", "optcc", "adapcc", "nccl-failover", "auto"]
JOBS: dict[str, tuple[str, dict[str, object]]] = {
    "data parallel": ("h100x4", {}),
    "tensor parallel": ("h100x4", {"tensor_model_parallel_size": 8}),
    "pipeline": ("h100x4", {"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": 2}),
    "replicas share servers": ("h100", {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2}),
    "rails apart": ("hpn-h800x4", {"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": 2}),
    "leaf switches": ("a100-leaf-spine", {"tensor_model_parallel_size": 8}),
}
MOVED = [name for name in TRAINING if name not in ("ideal", "optcc", "auto")]
EVEN = 840 << 20  # divides by 1 to 8 channels
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
STATES = st.dictionaries(st.integers(0, 31), st.sampled_from([0.0, 0.0, 0.5]), min_size=1, max_size=3)


def spec(cluster: str, **options: object) -> JobSpec:
    """A job of a small model."""
    given = {"model": "gpt3-2.7b", "micro_batch_size": 1, "global_batch_size": 32, **options}
    return JobSpec("megatron", json.dumps(given), "H100", 1.0, cluster)


@cache
def job_of(name: str, strategy: str) -> TrainingCourse:
    """A job of `JOBS`."""
    cluster, options = JOBS[name]
    return training_job(spec(cluster, **options), strategy)


def states(job: CourseJob, drawn: dict[int, float]) -> tuple[State, State]:
    """A drawn state of the cluster's NICs, and its canonical one."""
    labels = {nic * len(job.cluster.nics) // 32: (fraction,) for nic, fraction in drawn.items()}
    return tuple(sorted(labels.items())), job.symmetry.canonical(labels)


@pytest.mark.parametrize("name", JOBS)
@settings(max_examples=3)
@given(strategy=st.sampled_from(MOVED), drawn=STATES)
def test_a_training_job_takes_the_same_time_in_a_state_and_in_its_canonical_one(
    name: str, strategy: str, drawn: dict[int, float]
) -> None:
    """T(x) = T(c(x)); a state in which it cannot go on has one like it."""
    job = job_of(name, strategy)
    state, canonical = states(job, drawn)
    assume(state != canonical)
    assert 1 + job.state_cost(canonical).slow == pytest.approx(1 + job.state_cost(state).slow, rel=1e-9)


@settings(max_examples=4)
@given(strategy=st.sampled_from(MOVED), drawn=STATES)
def test_a_failure_hits_a_training_job_alike_in_a_state_and_in_its_canonical_one(
    strategy: str, drawn: dict[int, float]
) -> None:
    """T_hit(x) = T_hit(c(x)), where blocks only turn; or it restarts alike."""
    job = job_of("pipeline", strategy)
    turning = replace(job.symmetry, free=False)
    labels = {nic: (1.0, fraction, "nic") for nic, fraction in drawn.items()}
    state, canonical = tuple(sorted(labels.items())), turning.canonical(labels)
    assume(state != canonical)
    a, b = (job.hit_cost(s, job.healthy_s / 2) for s in (state, canonical))
    assert b.elapsed_s == pytest.approx(a.elapsed_s, rel=1e-9)
    assert (b.work, b.restart_s, b.replaced) == (a.work, a.restart_s, a.replaced)


@settings(max_examples=4)
@given(strategy=st.sampled_from(MOVED), drawn=STATES)
def test_shards_of_a_distributed_optimizer_are_whole_bytes(strategy: str, drawn: dict[int, float]) -> None:
    """T(x) = T(c(x)) up to 1e-8."""
    job = training_job(spec("h100x4", tensor_model_parallel_size=8, use_distributed_optimizer=True), strategy)
    state, canonical = states(job, drawn)
    assert 1 + job.state_cost(canonical).slow == pytest.approx(1 + job.state_cost(state).slow, rel=1e-8)


@pytest.mark.parametrize("op", COLLECTIVES)
@settings(max_examples=8)
@given(
    cluster=st.sampled_from(["h100x4", "hpn-h800x4", "a100-leaf-spine"]),
    strategy=st.sampled_from(["nccl", "hot-repair", "balance", "balance:split=weighted", "r2cc-allreduce"]),
    size=st.sampled_from([EVEN, 1 << 30, 840 << 5]),
    drawn=STATES,
)
def test_a_collective_takes_the_same_time_in_a_state_and_in_its_canonical_one(
    op: str, cluster: str, strategy: str, size: int, drawn: dict[int, float]
) -> None:
    """T(x) = T(c(x)) up to 1e-8: a weighted split does not divide evenly, and 1 GiB does not divide by 7."""
    job = collective_job(cluster, Job(size, op), strategy)
    state, canonical = states(job, drawn)
    assert 1 + job.state_cost(canonical).slow == pytest.approx(1 + job.state_cost(state).slow, rel=1e-8)


@pytest.mark.parametrize("name", JOBS)
def test_many_states_are_few_canonical_ones(name: str) -> None:
    """All single NICs that can be down: one canonical state for each place in a replica and kind of NIC."""
    job = job_of(name, "balance")
    found = {job.symmetry.canonical({nic.index: (0.0,)}) for nic in job.cluster.nics}
    expected = {"pipeline": 2, "rails apart": 2, "leaf switches": 4, "replicas share servers": 4}
    assert len(found) == expected.get(name, 1)


@pytest.mark.parametrize("name", ["data parallel", "pipeline", "replicas share servers"])
def test_blocks_are_the_servers_of_replicas(name: str) -> None:
    """One server; one server of each of two stages; one server on which replicas lie side by side."""
    blocks = {"pipeline": [(0, 2), (1, 3)], "replicas share servers": [(0, 1)]}
    assert blocks_of(job_of(name, "balance").job) == blocks.get(name, [(0,), (1,), (2,), (3,)])


@pytest.mark.parametrize(
    ("op", "size", "expected"),
    [
        ("all_reduce", EVEN, True),
        ("all_reduce", 1 << 30, True),  # 153 MB a channel of seven
        ("all_reduce", 1 << 28, False),
        ("all_gather", EVEN, True),
        ("all_gather", 1 << 30, False),  # 32 blocks of 33,554,432 bytes, a seventh of which is no whole number
        ("reduce_scatter", 840 << 5, True),
    ],
)
def test_a_collective_has_moves_where_its_pieces_are_equal(op: str, size: int, expected: bool) -> None:
    """Bytes divide by ranks and 1 to 8 channels, or a byte is less than 1e-8 of a piece."""
    assert even(load_cluster("h100x4"), Job(size, op)) == expected


def is_alone(job: CourseJob) -> bool:
    """Whether every state stands for itself."""
    symmetry = job.symmetry
    return (len(symmetry.turns), len(symmetry.rails), symmetry.free) == (1, 1, False)


def test_nothing_moves_where_nothing_is_known() -> None:
    """Strategies with chains, the chunk backend, collectives with a root, phases of probes that are drawn."""
    assert is_alone(job_of("pipeline", "optcc"))
    assert is_alone(job_of("pipeline", "auto"))
    assert is_alone(collective_job("h100x4", Job(EVEN, "all_gather", backend=Backend.CHUNK), "balance"))
    assert is_alone(collective_job("h100x4", Job(EVEN, "broadcast"), "balance"))
    cluster = load_cluster("h100x4")
    detection = cluster.spec.failover.detection
    assert detection is not None
    drawn = cluster.spec.failover.model_copy(update={"detection": detection.model_copy(update={"phase": "drawn"})})
    other = type(cluster)("drawn", cluster.spec.model_copy(update={"failover": drawn}))
    known = collective_job("h100x4", Job(EVEN, "all_gather"), "balance")
    assert not is_alone(known)
    assert is_alone(CollectiveCourse(other, Job(EVEN, "all_gather"), known.strategy, ""))
