"""Bounds on leaf-spine fabrics: what goes in or out of a pod takes the uplinks of its leaves."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.bound import all_reduce_bound
from r2cc_simai.collectives.operations import OPERATIONS, Call, default_group, lower_bound
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Event, Timeline
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.registry import parse_strategy

D = 10_000_000_000
NIC = 1e10  # bytes/s


def fabric(oversubscription, by_rail=False):
    return {
        "kind": "leaf-spine",
        "servers_per_leaf": 2,
        "rail_optimized": by_rail,
        "oversubscription": oversubscription,
    }


def state(lost):
    return Timeline(tuple(Event(nic, f) for nic, f in lost.items()))


def partitions(n):
    """All partitions of range(n), as lists of parts."""
    for labels in product(range(n), repeat=n):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield [[s for s in range(n) if labels[s] == part] for part in range(max(labels) + 1)]


def enters(part, rates, uplinks):
    """What can enter a part, servers by leaf: the least cut over the sides on which the leaves and the spine lie."""
    pods = range(len(uplinks))
    inside = [sum(rate for s, rate in enumerate(rates) if s // 2 == pod and s in part) for pod in pods]
    outside = [sum(rate for s, rate in enumerate(rates) if s // 2 == pod and s not in part) for pod in pods]
    spine_outside = sum(min(i, o + up) for i, o, up in zip(inside, outside, uplinks, strict=True))
    spine_inside = sum(min(i + up, o) for i, o, up in zip(inside, outside, uplinks, strict=True))
    return min(spine_outside, spine_inside)


@settings(max_examples=60)
@given(
    fractions=st.lists(st.sampled_from([0.25, 0.5, 1.0, 1.0]), min_size=3, max_size=6),
    oversubscription=st.sampled_from([1, 1.5, 2, 4]),
)
def test_all_partitions_say_no_more(fractions, oversubscription, cluster_of):
    """Up to 6 servers with a NIC each in pods of two: the search finds the tightest of all partitions."""
    n = len(fractions)
    cluster = cluster_of(servers=n, fabric=fabric(oversubscription))
    uplinks = [min(2, n - 2 * pod) * NIC / oversubscription for pod in range(-(-n // 2))]
    rates = [NIC * f for f in fractions]
    expected = max(
        2 * (len(parts) - 1) * D / sum(enters(part, rates, uplinks) for part in parts)
        for parts in partitions(n)
        if len(parts) > 1
    )
    assert all_reduce_bound(cluster, D, state(dict(enumerate(fractions)))) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("by_rail", [True, False])
@pytest.mark.parametrize(("oversubscription", "servers", "exact"), [(1, 4, 1.5), (4, 4, 2), (8, 4, 4), (8, 8, 6)])
def test_the_uplinks_of_pods(oversubscription, servers, exact, by_rail, cluster_of):
    """k pods of two servers with C = 2B: D o/C for two of them, 2(k-1)/k D o/C for k; the servers' own bound at 1:1."""
    cluster = cluster_of(servers=servers, nics=2, fabric=fabric(oversubscription, by_rail))
    assert all_reduce_bound(cluster, D, Timeline()) == pytest.approx(exact * D / (2 * NIC))


def test_a_group_in_one_pod_is_not_bound_by_uplinks(cluster_of):
    cluster = cluster_of(servers=4, gpus=2, nics=2, fabric=fabric(64))
    for op in OPERATIONS:
        group = (0, 2) if op == "send" else (0, 1, 2, 3)
        there = cluster_of(servers=4, gpus=2, nics=2)
        mine, plain = (lower_bound(one, op, Call(group, D, 0), Timeline()) for one in (cluster, there))
        assert mine == plain > 0


@pytest.mark.parametrize(
    ("op", "units"),
    [("all_gather", 2 / 4), ("reduce_scatter", 2 / 4), ("broadcast", 1), ("reduce", 1), ("all_to_all", 1), ("send", 1)],
)
def test_what_other_collectives_send_between_pods(op, units, cluster_of):
    """4 ranks in 2 pods, 8:1, C = B/4 of a pod: half of all blocks, the whole buffer, 2 x D/2 of an AllToAll."""
    cluster = cluster_of(servers=4, fabric=fabric(8))
    group = (0, 2) if op == "send" else (0, 1, 2, 3)
    assert lower_bound(cluster, op, Call(group, D, 0), Timeline()) == pytest.approx(units * 4 * D / NIC)


def test_headers_take_their_part_of_an_uplink():
    """Two pods of 4 servers with 4 x 25 GB/s / 16 a rail, 62 bytes a packet of 4096: 8 uplinks of 6.25 GB/s carry D."""
    preset = load_cluster("a100-leaf-spine")
    thin = preset.spec.fabric.model_copy(update={"oversubscription": 16})
    cluster = Cluster("thin", preset.spec.model_copy(update={"fabric": thin}))
    assert all_reduce_bound(cluster, D, Timeline()) == pytest.approx(D * (1 + 62 / 4096) / (8 * 6.25e9))


@settings(max_examples=80)
@given(
    op=st.sampled_from(list(OPERATIONS)),
    strategy=st.sampled_from(["hot-repair", "balance", "balance:split=weighted", "r2cc-allreduce:k=2", "optcc:k=4"]),
    servers=st.integers(3, 6),
    gpus=st.integers(1, 2),
    by_rail=st.booleans(),
    oversubscription=st.sampled_from([1, 2, 5]),
    lost=st.dictionaries(st.integers(0, 11), st.sampled_from([0.0, 0.5]), max_size=3),
    backend=st.sampled_from(list(Backend)),
)
def test_no_run_beats_the_bound(op, strategy, servers, gpus, by_rail, oversubscription, lost, backend, cluster_of):
    """Any collective, strategy and state, without latency."""
    cluster = cluster_of(servers=servers, gpus=gpus, nics=2, fabric=fabric(oversubscription, by_rail))
    left = {nic % len(cluster.nics): f for nic, f in lost.items()}
    view = View(cluster, tuple(left.get(nic.index, 1.0) for nic in cluster.nics))
    group, size = default_group(op, cluster), 17 * 2**20
    try:
        plan = parse_strategy(strategy).plan(Request(op, group, size), view)
    except PartitionedError:
        return
    events = state(left).events
    run = run_schedule(cluster, plan.schedule, plan.binding, events, backend)
    assert run.elapsed_s >= lower_bound(cluster, op, Call(group, size, 0), Timeline(events)) * (1 - 1e-6)
