"""The cut argument: for any partition of the servers in k parts, what enters the parts is at least 2(k-1)D.

On one switch it says what the closed forms say; on a switch per rail, or behind host bridges, more.
"""

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.bounds.cuts import raise_bound
from r2cc_simai.bounds.fabric import fabric_of, server_classes
from r2cc_simai.collectives.bound import all_reduce_bound, closed_form_bound
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.timeline import Event, Timeline, sorted_timeline

D = 10_000_000_000
NIC = 1e10  # bytes/s
RAILS = {"fabric": {"kind": "switch-per-rail"}}


def state(lost):
    """NICs at fractions of their rate from the start on."""
    return Timeline(tuple(Event(nic, f) for nic, f in lost.items()))


def partitions(n):
    """All partitions of range(n), as lists of parts."""
    for labels in product(range(n), repeat=n):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield [[s for s in range(n) if labels[s] == part] for part in range(max(labels) + 1)]


def brute_force(rates, size):
    """max over all partitions of 2(k-1)D / sum of in(V), rates[server][rail]; in(V) rail by rail."""
    n, rails = len(rates), range(len(rates[0]))

    def enters(part):
        inside = [sum(rates[s][r] for s in part) for r in rails]
        outside = [sum(rates[s][r] for s in range(n) if s not in part) for r in rails]
        return sum(map(min, inside, outside))

    bound = 0.0
    for parts in partitions(n):
        if len(parts) > 1:
            capacity = sum(map(enters, parts))
            bound = max(bound, 2 * (len(parts) - 1) * size / capacity if capacity else math.inf)
    return bound


fractions = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.0])


@settings(max_examples=120)
@given(
    rates=st.integers(2, 5).flatmap(
        lambda n: st.lists(st.lists(fractions, min_size=3, max_size=3), min_size=n, max_size=n)
    )
)
def test_all_partitions_say_no_more(rates, cluster_of):
    """Switch per rail, up to 5 servers x 3 rails: the search finds the tightest of all partitions."""
    cluster = cluster_of(servers=len(rates), nics=3, **RAILS)
    lost = {3 * s + r: f for s, row in enumerate(rates) for r, f in enumerate(row)}
    found = all_reduce_bound(cluster, D, state(lost))
    expected = brute_force([[NIC * f for f in row] for row in rates], D)
    assert found == (math.inf if math.isinf(expected) else pytest.approx(expected, rel=1e-9))


@given(n=st.integers(2, 12), lost=st.dictionaries(st.integers(0, 35), st.floats(0.05, 1), max_size=12))
def test_on_one_switch_cuts_say_what_the_closed_forms_say(n, lost, cluster_of):
    """max( max_i D/C_i, 2(n-1)D / sum C_i ): no partition is violated there."""
    cluster = cluster_of(servers=n, nics=3)
    events = tuple(Event(nic, f) for nic, f in lost.items() if nic < 3 * n)
    classes = server_classes(cluster, events, 0.0)
    closed = closed_form_bound(classes, D)
    assert raise_bound(fabric_of(classes), D, closed) == pytest.approx(closed, rel=1e-9)
    # Found by the search alone, from nothing.
    assert raise_bound(fabric_of(classes), D, 1e-9) == pytest.approx(closed, rel=1e-9)


def test_two_servers_that_lost_opposite_rails_never_end(cluster_of):
    """Server 0 without rails 0-3, server 1 without 4-7: nothing goes directly between them, and there is no third."""
    lost = dict.fromkeys([0, 1, 2, 3, 12, 13, 14, 15], 0.0)
    assert all_reduce_bound(cluster_of(nics=8, **RAILS), D, state(lost)) == math.inf
    assert math.isfinite(all_reduce_bound(cluster_of(nics=8), D, state(lost)))


def test_a_third_server_relays_for_them(cluster_of):
    """With a whole server between: each of the two receives D over its four NICs, D / 4 NICs."""
    lost = dict.fromkeys([0, 1, 2, 3, 12, 13, 14, 15], 0.0)
    assert all_reduce_bound(cluster_of(servers=3, nics=8, **RAILS), D, state(lost)) == pytest.approx(D / (4 * NIC))


@pytest.fixture
def islands(cluster_of):
    """Two islands of two servers: three rails join 0 and 1, three others 2 and 3; one rail joins servers 0 and 2.

    Returns the cluster and what is lost of 7 rails.
    """
    has = {0: {0, 1, 2, 6}, 1: {0, 1, 2}, 2: {3, 4, 5, 6}, 3: {3, 4, 5}}
    lost = {7 * s + r: 0.0 for s in range(4) for r in range(7) if r not in has[s]}
    return cluster_of(servers=4, nics=7, **RAILS), lost


def test_islands_joined_by_one_rail(islands):
    """D / NIC: each island needs the sum of the other. Alone a server has 3 or 4 NICs, and all 14: 6 D / 14 NICs."""
    cluster, lost = islands
    assert all_reduce_bound(cluster, D, state(lost)) == pytest.approx(D / NIC)
    assert closed_form_bound(server_classes(cluster, state(lost).events, 0.0), D) == pytest.approx(6 * D / (14 * NIC))


def test_a_cut_over_time(islands):
    """The rail between the islands is down from 0.2 to 0.7 s: D / NIC = 1 s later by half a second."""
    cluster, lost = islands
    flap = [Event(6, 0.0, time_s=0.2), Event(6, 1.0, time_s=0.7)]
    timeline = sorted_timeline([*state(lost).events, *flap], "test")
    assert all_reduce_bound(cluster, D, timeline) == pytest.approx(1.5)
    assert all_reduce_bound(cluster, D, timeline, start_s=0.5) == pytest.approx(1.2)


def test_a_rail_that_works_on_one_server_carries_nothing(cluster_of):
    """3 servers x 2 rails, rail 1 alive on server 2 only: a ring on one rail, 4/3 D / NIC, not 4 D / 4 NICs."""
    cluster = cluster_of(servers=3, nics=2, **RAILS)
    assert all_reduce_bound(cluster, D, state({1: 0.0, 3: 0.0})) == pytest.approx(4 / 3 * D / NIC)


def bridged_server(gbps):
    """A GPU and a NIC on NUMA node 0, two NICs on node 1, behind a bridge."""
    return {
        "gpus": {"count": 1, "numa": 0},
        "nics": [{"count": 3, "rate_gbps": 80, "header_bytes": 0, "numa": [0, 1, 1]}],
        "host_bridge_gbps": gbps,
    }


@pytest.mark.parametrize(("gbps", "nics"), [(80, 2), (120, 2.5), (1000, 3)])
@pytest.mark.parametrize("fabric", ["one-switch", "switch-per-rail"])
def test_a_host_bridge_caps_what_its_nics_carry(gbps, nics, fabric, cluster_of):
    """A server carries 80 Gb/s and at most the bridge: n = 4, T >= 3/2 D over that."""
    cluster = cluster_of(servers=4, server=bridged_server(gbps), fabric={"kind": fabric})
    assert all_reduce_bound(cluster, D, Timeline()) == pytest.approx(1.5 * D / (nics * NIC))


def test_a_bridge_that_a_gpu_can_go_round_does_not_count(cluster_of):
    """With a GPU on the far node as well, links inside the server lead to the NICs there."""
    server = {**bridged_server(10), "gpus": {"count": 2, "numa": [0, 1]}}
    assert all_reduce_bound(cluster_of(servers=4, server=server), D, Timeline()) == pytest.approx(1.5 * D / (3 * NIC))


STRATEGIES = ["hot-repair", "balance", "balance:split=weighted", "r2cc-allreduce:k=3", "r2cc-allreduce:k=2,y=opt"]


@settings(max_examples=80)
@given(
    servers=st.integers(2, 5),
    gpus=st.integers(1, 2),
    bridge=st.sampled_from([None, 90, 130]),
    fabric=st.sampled_from(["one-switch", "switch-per-rail"]),
    known=st.dictionaries(st.integers(0, 14), st.sampled_from([0.0, 0.5, 0.875]), max_size=4),
    drawn=st.lists(st.tuples(st.integers(0, 14), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.01, 1.5)), max_size=2),
    strategy=st.sampled_from(STRATEGIES),
    backend=st.sampled_from(list(Backend)),
)
def test_no_run_beats_the_bound(servers, gpus, bridge, fabric, known, drawn, strategy, backend, cluster_of, simulate):
    """Any fabric, state, strategy and failure during the run, host bridges included, without latency."""
    size = 20 * 2**20
    server = {**bridged_server(bridge), "gpus": {"count": gpus, "numa": 0}}
    cluster = cluster_of(servers=servers, server=server, fabric={"kind": fabric}, transport={"chunk_kib": 512})
    lost = {nic: f for nic, f in known.items() if nic < len(cluster.nics)}
    unit = size / NIC
    events = tuple(Event(nic, f, time_s=t * unit) for nic, f, t in drawn if nic < len(cluster.nics))
    try:
        run = simulate(cluster, strategy, size, lost=lost, events=events, backend=backend)
    except PartitionedError:
        return
    timeline = sorted_timeline([*state(lost).events, *events], "drawn")
    assert run.elapsed_s >= all_reduce_bound(cluster, size, timeline) * (1 - 1e-6)


@given(
    fractions=st.lists(st.floats(0.1, 1), min_size=12, max_size=12),
    better=st.integers(0, 11),
)
def test_more_bandwidth_never_raises_the_bound(fractions, better, cluster_of):
    """Switch per rail, 4 servers x 3 rails: one NIC back at its full rate."""
    cluster = cluster_of(servers=4, nics=3, **RAILS)
    before = all_reduce_bound(cluster, D, state(dict(enumerate(fractions))))
    after = all_reduce_bound(cluster, D, state({**dict(enumerate(fractions)), better: 1.0}))
    assert after <= before * (1 + 1e-9)
