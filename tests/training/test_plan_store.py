"""Plans that are kept from state to state are those that the strategy would make anew."""

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.schedule import Pass
from r2cc_simai.errors import SimaiError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.strategies.adapcc import AdapCC
from r2cc_simai.strategies.auto import Auto
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training import plans
from r2cc_simai.training.iteration import Iteration, run_iteration
from r2cc_simai.training.job import TrainingJob
from r2cc_simai.training.plan_store import PlanStore, is_local

Maker = Callable[..., TrainingJob]

MIB = 2**20
LOCAL = [
    "ideal",
    "nccl",
    "hot-repair",
    "nccl-failover",
    "balance",
    "balance:split=weighted",
    "r2cc-allreduce",
    "r2cc-allreduce:y=opt,k=8",
    "optcc",
    "adapcc",
]
FABRICS: dict[str, dict[str, object]] = {
    "one switch": {"kind": "one-switch"},
    "rails": {"kind": "switch-per-rail"},
    "leaves": {"kind": "leaf-spine", "rail_optimized": True, "servers_per_leaf": 2, "oversubscription": 2},
}
OPS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send"]


def cluster_with(fabric: str) -> Cluster:
    """Six servers of 4 GPUs with 4 NICs."""
    h100 = load_cluster("h100x6").spec
    half = {"numa": [0, 0, 1, 1]}
    server = h100.model_dump(mode="json")["server"] | {
        "gpus": {"count": 4, **half},
        "nics": [{"count": 4, "rate_gbps": 400, **half}],
    }
    return Cluster(fabric, type(h100).model_validate(h100.model_dump() | {"server": server, "fabric": FABRICS[fabric]}))


CLUSTERS = {name: cluster_with(name) for name in FABRICS}


def outcome(strategy: Strategy, request: Request, view: View) -> list[object]:
    """All that a plan says, or the kind of error that there is none."""
    try:
        return content(strategy.plan(request, view))
    except SimaiError as error:
        return [type(error)]


def content(plan: Plan) -> list[object]:
    """A plan as plain values."""
    schedule, binding = plan.schedule, plan.binding
    head: list[object] = [schedule.n_ranks, schedule.bytes, schedule.wire_factor, plan.one_off_s, plan.note]
    columns = [getattr(binding, field.name).tolist() for field in fields(binding)]
    return [*head, [route.tolist() for route in schedule.routes], [parts(one) for one in schedule.passes], columns]


def parts(one: Pass) -> list[object]:
    values = [getattr(one, field.name) for field in fields(one)]
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


@settings(max_examples=300)
@given(
    strategy=st.sampled_from(LOCAL),
    fabric=st.sampled_from(sorted(FABRICS)),
    op=st.sampled_from(OPS),
    size=st.sampled_from([4096, 64 * MIB, 300_000_007]),
    group=st.lists(st.integers(0, 23), min_size=2, max_size=12, unique=True).map(tuple),
    lost=st.dictionaries(st.integers(0, 23), st.sampled_from([0.0, 0.0, 0.5]), max_size=8),
)
def test_a_plan_depends_on_the_servers_of_its_group(
    strategy: str, fabric: str, op: str, size: int, group: tuple[int, ...], lost: dict[int, float]
) -> None:
    """plan(request, state) = plan(request, state with all other servers healthy), bit by bit."""
    cluster = CLUSTERS[fabric]
    request = Request(op, group[:2] if op == "send" else group, size, group[0])
    own = {rank // 4 for rank in request.group}
    state = [lost.get(nic, 1.0) for nic in range(24)]
    alone = [left if nic // 4 in own else 1.0 for nic, left in enumerate(state)]
    assert is_local(parse_strategy(strategy))
    in_state = outcome(parse_strategy(strategy), request, View(cluster, tuple(state)))
    assert in_state == outcome(parse_strategy(strategy), request, View(cluster, tuple(alone)))


def test_a_replica_of_several_servers_is_not_local() -> None:
    """AdapCC drops rank 0 with its replica of 8 when a NIC beside rank 5 dies, two servers of 4 further on."""
    strategy = AdapCC(dp_replica=8)
    cluster = CLUSTERS["one switch"]
    hurt = View(cluster, tuple(float(nic != 5) for nic in range(24)))
    request = Request("all_reduce", (0, 8, 16), MIB, 0)
    assert outcome(strategy, request, hurt) != outcome(strategy, request, View.healthy(cluster))
    assert not is_local(strategy)


def test_a_strategy_that_is_not_known_is_not_local() -> None:
    """What a subclass or another package's strategy looks at, and what Auto simulates beside a group."""

    class Other(Balance):
        """A plug-in."""

    assert not is_local(Other())
    assert not is_local(Auto())


def test_other_servers_losses_make_no_new_plan() -> None:
    """A pair on servers 0 and 1 has one plan while others fail, and another one once a NIC of its own does."""
    store, cluster = PlanStore(), CLUSTERS["one switch"]
    request = Request("send", (0, 5), MIB)

    def plan(*dead: int) -> Plan:
        view = View(cluster, tuple(float(nic not in dead) for nic in range(24)))
        return store.plan(Balance(), request, MIB, view).plan

    assert plan() is plan(9) is plan(12, 23)
    assert plan(9) is not plan(9, 5)
    assert store.made == 2


def test_memory_is_bounded() -> None:
    """The plans asked for longest ago go first; the one just asked for stays whatever its size."""
    cluster = CLUSTERS["one switch"]
    requests = [Request("send", (0, dst), MIB) for dst in (4, 8, 12)]

    def ask(store: PlanStore, k: int) -> int:
        store.plan(Balance(), requests[k], MIB, View.healthy(cluster))
        return store.made

    whole = PlanStore()
    whole.plan(Balance(), requests[0], MIB, View.healthy(cluster))
    for most_bytes, made in (
        (0, [1, 2, 3, 4, 5]),
        (2 * whole.bytes, [1, 2, 2, 3, 4]),
        (3 * whole.bytes, [1, 2, 2, 3, 3]),
    ):
        store = PlanStore(most_bytes)
        assert [ask(store, k) for k in (0, 1, 0, 2, 1)] == made
        assert store.bytes <= max(most_bytes, whole.bytes)


@pytest.mark.parametrize("strategy", ["hot-repair", "balance", "r2cc-allreduce", "optcc", "adapcc"])
def test_a_run_after_others_is_a_run_alone(make_job: Maker, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers, bit by bit, whatever states were simulated before."""
    job = make_job(
        "h100x8",
        tensor_model_parallel_size=8,
        pipeline_model_parallel_size=2,
        global_batch_size=32,
        use_distributed_optimizer=True,
    )
    states = [["server1.nic3@0"], ["server1.nic3@0", "server5.nic0@0"], ["server1.nic3@0.02"], []]

    def run(failures: list[str]) -> Iteration:
        gone = [int(rank) for rank in range(64) if strategy == "adapcc" and failures and rank // 8 % 4 == 1]
        ranks = job.ranks.without(np.isin(job.ranks.rank, gone)) if gone else job.ranks
        return run_iteration(job.cluster, ranks, parse_strategy(strategy), parse_failures(failures, job.cluster))

    monkeypatch.setattr(plans, "STORE", PlanStore())
    shared = [run(failures) for failures in states]
    for failures, after_others in zip(states, shared, strict=True):
        monkeypatch.setattr(plans, "STORE", PlanStore())
        alone = run(failures)
        for field in fields(Iteration):
            if field.name not in ("ranks", "classes", "bytes", "log"):
                assert np.array_equal(getattr(alone, field.name), getattr(after_others, field.name)), field.name
        for field in fields(alone.classes):
            assert np.array_equal(getattr(alone.classes, field.name), getattr(after_others.classes, field.name))
