"""What cells do for themselves is simulated once: an iteration that goes on from there is the one of the whole run."""

import gc
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from r2cc_simai.chakra.memory import trace_set
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import ProbesSpec
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.timeline import Event, Timeline, sorted_timeline
from r2cc_simai.runners.training import job_of
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training import resumption
from r2cc_simai.training.cells import Cells, cells_of
from r2cc_simai.training.iteration import Iteration, run_iteration
from r2cc_simai.training.job import TrainingJob
from r2cc_simai.training.prelude_store import PreludeStore
from r2cc_simai.workloads.compute_times import compute_times
from r2cc_simai.workloads.megatron import generate
from r2cc_simai.workloads.megatron_options import MegatronOptions
from r2cc_simai.workloads.models import load_model

Maker = Callable[..., TrainingJob]

COLUMNS = ("end_s", "compute_s", "exposed_s", "waiting_s", "communication_s", "by_role_s")
LAYOUTS: dict[str, dict[str, Any]] = {
    "tp8 pp2": {"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": 2, "global_batch_size": 32},
    "tp8 pp2 overlap": {
        "tensor_model_parallel_size": 8,
        "pipeline_model_parallel_size": 2,
        "overlap_grad_reduce": True,
        "global_batch_size": 32,
    },
    "tp4 pp2 sp": {
        "tensor_model_parallel_size": 4,
        "sequence_parallel": True,
        "pipeline_model_parallel_size": 2,
        "use_distributed_optimizer": True,
        "global_batch_size": 64,
    },
    "tp2 pp4 cp2": {
        "tensor_model_parallel_size": 2,
        "pipeline_model_parallel_size": 4,
        "context_parallel_size": 2,
        "overlap_grad_reduce": True,
        "global_batch_size": 32,
    },
}
EIGHT = load_cluster("h100x8")
STRATEGIES = ["ideal", "nccl", "hot-repair", "nccl-failover", "balance", "r2cc-allreduce", "optcc", "adapcc"]


@pytest.fixture(autouse=True)
def always() -> Iterator[None]:
    """Small jobs, too, go on from preludes, and from new ones in each test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resumption, "FEW", 0)
        patch.setattr(resumption, "PRELUDES", PreludeStore())
        yield


@lru_cache(maxsize=8)
def job(layout: str, where: Cluster = EIGHT) -> TrainingJob:
    """A GPT of four layers."""
    small = load_model("gpt3-2.7b").model_copy(update={"layers": 4})
    options = MegatronOptions(gpus=where.n_ranks, **LAYOUTS[layout])
    return job_of(trace_set(generate("small", small, options, compute_times("roofline", "A100-SXM4-80GB"))), where)


def cells(own: TrainingJob) -> Cells:
    found = cells_of(own.ranks, own.cluster)
    assert found is not None
    return found


def both(own: TrainingJob, strategy: str, timeline: Timeline) -> tuple[Iteration, Iteration]:
    """An iteration that goes on from preludes, and the same from its start: where spans are kept there are none."""
    one = parse_strategy(strategy)
    return (
        run_iteration(own.cluster, own.ranks, one, timeline),
        run_iteration(own.cluster, own.ranks, one, timeline, record=(0,)),
    )


events = st.builds(
    lambda nic, share, lasts, fraction: (nic, share, lasts, fraction),
    st.integers(0, 63),
    st.sampled_from([0.0, 0.0, 0.1, 0.31, 0.5, 0.77, 0.95]),
    st.sampled_from([None, None, 0.05, 0.3]),
    st.sampled_from([0.0, 0.0, 0.5]),
)


@settings(max_examples=60, deadline=None)
@given(
    layout=st.sampled_from(sorted(LAYOUTS)),
    strategy=st.sampled_from(STRATEGIES),
    drawn=st.lists(events, min_size=1, max_size=4, unique_by=lambda e: e[0]),
)
def test_the_iteration_is_that_of_the_whole_run(
    layout: str, strategy: str, drawn: list[tuple[int, float, float | None, float]]
) -> None:
    """The same end, times of every class, bytes of every NIC, to 1e-9: whatever fails, returns or slows down when."""
    own = job(layout)
    whole_s = own.healthy.elapsed_s
    timeline = []
    for nic, share, lasts, fraction in drawn:
        timeline.append(Event(nic, fraction, time_s=share * whole_s))
        if lasts is not None:
            timeline.append(Event(nic, 1.0, time_s=(share + lasts) * whole_s))
    try:
        mine, whole = both(own, strategy, sorted_timeline(timeline, "drawn"))
    except PartitionedError:
        assume(False)
    assert mine.elapsed_s == pytest.approx(whole.elapsed_s, rel=1e-9)
    assert (mine.aborted, mine.broken_nic, set(mine.notes)) == (whole.aborted, whole.broken_nic, set(whole.notes))
    for column in COLUMNS:
        assert getattr(mine, column) == pytest.approx(getattr(whole, column), rel=1e-9, abs=1e-9 * whole_s), column
    for way in ("rx", "tx", "rx_payload", "tx_payload"):
        assert getattr(mine.bytes, way) == pytest.approx(getattr(whole.bytes, way), rel=1e-9, abs=1), way


@pytest.mark.parametrize("at", ["0", "0.05"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_most_transfers_are_not_simulated_again(layout: str, at: str) -> None:
    own = job(layout)
    mine, whole = both(own, "balance", parse_failures([f"server0.nic3@{at}", f"server5.nic1@{at}"], own.cluster))
    assert mine.transfers < 0.75 * whole.transfers


def test_a_job_that_is_aborted_goes_on_from_before_the_failure() -> None:
    """Of the cells that fail; the others start with the iteration, as few classes as they are."""
    own = job("tp8 pp2")
    at = own.healthy.elapsed_s * 0.6
    mine, whole = both(own, "adapcc", parse_failures([f"server0.nic3@{at}", f"server5.nic1@{at}"], own.cluster))
    assert mine.aborted is not None
    assert mine.aborted == whole.aborted
    assert mine.transfers < whole.transfers


def test_resuming_after_ranks_have_met_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: traffic that should have met does not."""
    own = job("tp8 pp2 overlap")
    timeline = parse_failures(["server0.nic3@0", "server5.nic1@0"], own.cluster)
    right, whole = both(own, "balance", timeline)
    first = resumption._first_meeting
    monkeypatch.setattr(resumption, "_first_meeting", lambda *given: 2 * first(*given))
    wrong, _ = both(own, "balance", timeline)
    assert right.elapsed_s == pytest.approx(whole.elapsed_s, rel=1e-12)
    assert wrong.elapsed_s != pytest.approx(whole.elapsed_s, rel=1e-3)


# Cells


def test_cells_are_replicas() -> None:
    """TP 8 and PP 2 on 8 servers: four replicas of two servers each, all alike, held apart by the 16 groups of DP."""
    own = job("tp8 pp2")
    found = cells(own)
    assert [sorted(own.ranks.rank[cell.rows] // 8) for cell in found.cells] == [[k] * 8 + [k + 4] * 8 for k in range(4)]
    assert {cell.kind for cell in found.cells} == {0}
    assert np.flatnonzero(found.held).tolist() == [
        g for g, kind in enumerate(own.ranks.kinds) if len(own.ranks.members[g]) == 4 and kind.startswith("dp")
    ]


def test_replicas_that_share_servers_are_one_cell() -> None:
    """TP 4 and PP 2: a server holds a stage of two replicas, whose traffic meets in its NICs."""
    own = job("tp4 pp2 sp")
    assert own.replica is not None
    assert [len(set(own.replica[cell.rows])) for cell in cells(own).cells] == [2] * 4


def test_rails_carry_a_cell_to_itself() -> None:
    """h100: four turns of the NICs of each NUMA node, and the exchange of the nodes."""
    assert len(cells(job("tp8 pp2")).moves[0]) == 32


@pytest.mark.parametrize(
    ("cluster", "options", "why"),
    [
        ("a100-leaf-spinex8", LAYOUTS["tp8 pp2"], "leaf switches tie servers together"),
        ("h100x8", LAYOUTS["tp8 pp2"] | {"use_distributed_optimizer": True, "overlap_param_gather": True}, "early"),
        ("h100x2", LAYOUTS["tp8 pp2"], "one replica"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_jobs_without_cells(make_job: Maker, cluster: str, options: dict[str, Any], why: str) -> None:
    if "overlap_param_gather" in options:
        options = options | {"overlap_grad_reduce": True}
    own = make_job(cluster, **options)
    assert cells_of(own.ranks, own.cluster) is None, why


# What is kept


def spy_on(monkeypatch: pytest.MonkeyPatch, most_bytes: int = 1 << 30) -> PreludeStore:
    store = PreludeStore(most_bytes)
    monkeypatch.setattr(resumption, "PRELUDES", store)
    return store


def run(own: TrainingJob, strategy: str, *failures: str) -> Iteration:
    return run_iteration(own.cluster, own.ranks, parse_strategy(strategy), parse_failures(list(failures), own.cluster))


@pytest.mark.parametrize("strategy", ["hot-repair", "balance", "r2cc-allreduce"])
def test_one_prelude_for_all_rails_and_replicas(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    """NICs of stage 0 in two replicas, whichever they are: one prelude, and one of the healthy replicas."""
    store = spy_on(monkeypatch)
    own = job("tp8 pp2")
    for first, second in [
        ("server0.nic0", "server2.nic0"),
        ("server0.nic5", "server3.nic7"),
        ("server1.nic3", "server2.nic4"),
    ]:
        run(own, strategy, f"{first}@0", f"{second}@0")
    assert store.made == 2
    run(own, strategy, "server4.nic0@0", "server7.nic1@0")  # of stage 1
    assert store.made == 3


def test_what_is_found_later_is_another_prelude(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept are preludes by what is known when: a failure of before the start is none of the middle."""
    store = spy_on(monkeypatch)
    own = job("tp8 pp2")
    run(own, "balance", "server0.nic0@0", "server2.nic1@0")
    run(own, "balance", "server0.nic0@0.02", "server2.nic1@0.02")
    assert store.made == 4  # the healthy replicas, too, make new plans once something is known
    run(own, "balance", "server0.nic0=0.5@0", "server2.nic1@0")
    assert store.made == 5


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The preludes that were not asked for longest go first; the last one stays."""
    store = spy_on(monkeypatch, most_bytes=1)
    own = job("tp8 pp2")
    first = run(own, "balance", "server0.nic0@0", "server2.nic1@0")
    made = store.made
    again = run(own, "balance", "server0.nic0@0", "server2.nic1@0")
    assert store.made > made
    assert again.elapsed_s == first.elapsed_s
    assert len(store._kept) == 1


def test_preludes_go_with_their_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that nobody holds any more takes its preludes along as soon as another one has its first."""
    store = spy_on(monkeypatch)
    passing = job.__wrapped__("tp8 pp2", EIGHT)
    run(passing, "balance", "server0.nic0@0", "server2.nic1@0")
    held = store.bytes
    del passing
    gc.collect()
    run(job("tp2 pp4 cp2"), "hot-repair", "server0.nic0@0", "server2.nic1@0")
    assert store.made == len(store._kept) + 2
    assert store.bytes == sum(prelude.bytes for _, prelude in store._kept.values())
    assert held > 0


def test_where_the_phases_of_probes_are_drawn_every_nic_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of detection then hangs on the number of the NIC: nothing is carried over."""
    store = spy_on(monkeypatch)
    failover = EIGHT.spec.failover
    assert isinstance(failover.detection, ProbesSpec)
    drawn = failover.model_copy(update={"detection": failover.detection.model_copy(update={"phase": "drawn"})})
    probes = EIGHT.spec.model_copy(update={"failover": drawn})
    run(job("tp8 pp2", Cluster("drawn", probes)), "balance", "server0.nic0@0.02", "server2.nic1@0.02")
    assert store.made == 0
