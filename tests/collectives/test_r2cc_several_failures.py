"""R2CC-AllReduce with several degraded servers: level by level (R2CC paper, arXiv 2512.25059).

With X_1 the largest loss, y=x:  T/T0 = 1 + (1+1/K) n X_1 / (2(n-1)(1-X_1)): the most degraded server alone decides,
while Balance pays 1/(1-X_1).
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.bound import all_reduce_bound
from r2cc_simai.collectives.checker import check_schedule, check_trace
from r2cc_simai.collectives.r2cc_allreduce import chains
from r2cc_simai.collectives.ring_order import bridged_order
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.timeline import Event, Timeline
from r2cc_simai.strategies.r2cc_levels import best_division, peeled, predicted_s

GIB = 2**30
MIB = 2**20
B = 50e9  # of the uniform preset
BOTH = pytest.mark.parametrize("backend", list(Backend))

# Lost fractions by server.
LOSSES = [
    {0: 1 / 4, 1: 1 / 4},
    {0: 1 / 2, 3: 1 / 4},
    {1: 1 / 8, 2: 1 / 2, 5: 3 / 8},
    {0: 1 / 2, 1: 1 / 2, 4: 1 / 4, 6: 1 / 8},
]


def view_of(cluster, left):
    """The view in which the NICs of `left` have that fraction of their rate."""
    return View(cluster, tuple(left.get(nic.index, 1.0) for nic in cluster.nics))


def time_of(cluster, plan, left, backend=Backend.FLOW):
    """Seconds of a plan with the NICs in that state."""
    events = tuple(Event(nic, f) for nic, f in left.items())
    return run_schedule(cluster, plan.schedule, plan.binding, events, backend).elapsed_s


# Chunk: 1 GiB within 2 %, of which filling chains and the windows of small chunks are the most.
@pytest.mark.parametrize(("backend", "size", "percent"), [(Backend.FLOW, 16 * GIB, 0.2), (Backend.CHUNK, GIB, 2)])
@pytest.mark.parametrize("lost", LOSSES)
@pytest.mark.parametrize(("n", "k"), [(8, 4), (16, 16)])
def test_the_most_degraded_server_alone_decides(n, k, lost, backend, size, percent, plan_for):
    """1 + (1+1/K) n X_1 / (2(n-1)(1-X_1)), as if the others were healthy."""
    cluster = load_cluster(f"uniformx{n}").zero_latency()
    left = {server: 1 - x for server, x in lost.items()}
    time_s = time_of(cluster, plan_for(cluster, f"r2cc-allreduce:k={k}", size, left), left, backend)
    x = max(lost.values())
    t0 = 2 * (n - 1) / n * size / B
    assert time_s / t0 == pytest.approx(1 + (1 + 1 / k) * n * x / (2 * (n - 1) * (1 - x)), rel=percent / 100)
    assert time_s < t0 / (1 - x)  # Balance
    assert time_s >= all_reduce_bound(cluster, size, Timeline(tuple(Event(n, f) for n, f in left.items())))


@settings(max_examples=40)
@given(
    n=st.integers(3, 17),
    losses=st.lists(st.sampled_from([1 / 8, 1 / 4, 3 / 8, 1 / 2, 0.6]), min_size=2, max_size=5),
    k=st.sampled_from([1, 4, 32]),
    y=st.sampled_from(["x", "opt"]),
)
def test_simulated_time_is_the_formula_of_the_levels(n, losses, k, y, plan_for):
    """max over levels of T1 + T3, within 1 %; never worse than Balance, never below the bound; single-NIC servers."""
    size = 16 * GIB
    cluster = load_cluster(f"uniformx{n}").zero_latency()
    left = {i * (n // len(losses[:n])): 1 - x for i, x in enumerate(losses[:n])}
    division, expected = best_division(view_of(cluster, left), size, k, y)
    time_s = time_of(cluster, plan_for(cluster, f"r2cc-allreduce:k={k},y={y}", size, left), left)
    assert predicted_s(view_of(cluster, left), division, k) == expected
    assert time_s == pytest.approx(expected, rel=0.01)
    assert time_s <= 2 * (n - 1) / n * size / B / min(left.values()) * (1 + 1e-6)
    assert time_s >= all_reduce_bound(cluster, size, Timeline(tuple(Event(n, f) for n, f in left.items())))


def test_the_optimal_shares_are_no_worse(plan_for):
    """y=opt lets all rings end at once: no slower than y=x, n = 16."""
    cluster = load_cluster("uniformx16").zero_latency()
    left = {0: 0.5, 3: 0.75, 5: 0.875, 9: 0.5}
    x, opt = (time_of(cluster, plan_for(cluster, f"r2cc-allreduce:k=32,y={y}", GIB, left), left) for y in ("x", "opt"))
    assert opt <= x


@pytest.mark.parametrize("left", [{0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5}, {0: 0.5, 1: 0.5, 2: 0.5}])
def test_plain_rings_where_no_smaller_ring_saves_time(left, plan_for):
    """All servers at half: nothing to peel. Three of four: the one left would have to serve all others alone."""
    cluster = load_cluster("uniformx4").zero_latency()
    plan = plan_for(cluster, "r2cc-allreduce", GIB, left)
    assert "plain rings" in plan.note
    assert len(plan.schedule.passes) == 1
    assert plan.one_off_s == 0


def test_the_levels_of_a_spectrum_of_losses():
    """X = 1/2, 1/4, 1/4, 1/8 of 8 servers: rings of 8, 7, 5 and 4 servers over 1/2, 1/4, 1/8 and 1/8 of B."""
    rings = peeled(view_of(load_cluster("uniformx8"), {6: 0.5, 2: 0.75, 3: 0.75, 0: 0.875}))
    assert [len(ring.servers) for ring in rings] == [8, 7, 5, 4]
    whole = sum(sum(ring.widths) for ring in rings)
    assert [sum(ring.widths) / whole for ring in rings] == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 8])


def test_dead_nics_on_one_switch_leave_as_many_channels_as_the_poorest_server_has(cluster_of):
    """Server 0 without NIC 0, server 1 without NIC 1: seven global channels, one for the healthy servers beside."""
    rings = peeled(view_of(cluster_of(servers=6, nics=8), {0: 0.0, 9: 0.0}))
    assert [(len(ring.servers), len(ring.tracks)) for ring in rings] == [(6, 7), (4, 1)]


def test_every_server_that_was_left_out_ends_one_chain(cluster_of):
    """Each member is in one chain, the root starts all of them."""
    division, _ = best_division(view_of(cluster_of(servers=9), {0: 0.5, 4: 0.5, 5: 0.5}), 2**24, 64, "x")
    (level,) = division.levels
    for part in level.parts:
        made = chains(part, level.left_out)
        assert {chain[0] for chain in made} == {part.root}
        assert sorted(chain[-1] for chain in made) == [0, 4, 5]
        assert sorted(s for chain in made for s in chain[1:]) == sorted({*range(9)} - {part.root})
    assert {part.root for part in level.parts} == {1, 2, 3, 6, 7, 8}


@st.composite
def degraded_clusters(draw, cluster_of):
    """3 to 17 servers on either fabric, several of them without a NIC or with slow ones."""
    nics = draw(st.integers(1, 4))
    n = draw(st.integers(3, 17))
    fabric = draw(st.sampled_from(["one-switch", "switch-per-rail"]))
    gpus = draw(st.sampled_from([1, 1, 2]))
    cluster = cluster_of(servers=n, nics=nics, gpus=gpus, fabric={"kind": fabric}, transport={"chunk_kib": 512})
    hit = draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=5, unique=True))
    left = {}
    for server in hit:
        nic = cluster.servers[server].nics[draw(st.integers(0, nics - 1))]
        left[nic] = draw(st.sampled_from([0.0, 0.0, 0.5, 0.75])) if nics > 1 else draw(st.sampled_from([0.5, 0.75]))
    return cluster, left


@pytest.mark.parametrize("n", range(3, 18))
@pytest.mark.parametrize("k", [1, 4, 9])
def test_every_size_of_ring_on_paper(n, k, cluster_of, plan_for):
    """n = 3..17 servers, two, three and nearly all of them degraded, a size that does not divide."""
    cluster, y = cluster_of(servers=n, nics=1), "opt" if n % 2 else "x"
    for many in {2, min(3, n - 1), n - 2, n - 1} - {0, 1}:
        left = {i * n // many: 1 - (1 + i % 4) / 8 for i in range(many)}
        assert check_schedule(plan_for(cluster, f"r2cc-allreduce:k={k},y={y}", 17_000_003, left).schedule) is None


@settings(max_examples=60)
@given(
    data=st.data(),
    size=st.sampled_from([16 * MIB, 16 * MIB + 5, 17_000_003]),
    k=st.sampled_from([1, 3, 4, 7]),
    y=st.sampled_from(["x", "opt"]),
    cut=st.floats(0, 1.1),
    backend=st.sampled_from(list(Backend)),
)
def test_every_contribution_exactly_once(data, size, k, y, cut, backend, cluster_of, plan_for):
    """On paper, and executed with another NIC that fails at any time; no run beats the bound."""
    cluster, left = data.draw(degraded_clusters(cluster_of))
    try:
        plan = plan_for(cluster, f"r2cc-allreduce:k={k},y={y}", size, left)
    except PartitionedError:
        assert not cluster.rails_connected  # no rail works on two neighbours
        return
    assert check_schedule(plan.schedule) is None
    bound = all_reduce_bound(cluster, size, Timeline(tuple(Event(n, f) for n, f in left.items())))
    whole_s = time_of(cluster, plan, left, backend)
    assert whole_s >= bound * (1 - 1e-9)
    victim = data.draw(st.integers(0, len(cluster.nics) - 1))
    events = [_core.NicEvent(nic=n, fraction=f) for n, f in left.items()]
    events.append(_core.NicEvent(nic=victim, fraction=0.0, time_s=cut * whole_s))
    provenance = _core.Provenance(plan.schedule.core)
    out = _core.run_chunk(
        core_cluster(cluster), plan.schedule.core, plan.binding.core, events, None, provenance=provenance
    )
    if out.status != _core.Status.DONE:
        assert "no NIC is left" in out.reason
        return
    assert check_trace(plan.schedule, provenance) is None


RAILS = {"fabric": {"kind": "switch-per-rail"}}


def test_neighbours_that_lost_different_rails_get_a_bridge_between_them(cluster_of):
    """Server 0 without rail 0, server 1 without rail 1: neighbours share 6 of 8 rails, apart each has 7 with others."""
    cluster = cluster_of(servers=6, nics=8, **RAILS)
    order = bridged_order(cluster, range(6), lambda nic: nic not in (0, 9))
    assert sorted(order) == list(range(6))
    assert abs(order.index(0) - order.index(1)) not in (1, 5)
    rings = peeled(view_of(cluster, {0: 0.0, 9: 0.0}))
    assert [(len(ring.servers), len(ring.tracks)) for ring in rings] == [(6, 7), (4, 1)]


@pytest.mark.parametrize("dead", [(0, 8), (0, 32), ()])
def test_an_order_that_needs_no_bridge_stays(dead, cluster_of):
    """The same rail lost twice, no neighbours, or nothing lost."""
    cluster = cluster_of(servers=8, nics=8, **RAILS)
    assert bridged_order(cluster, range(8), lambda nic: nic not in dead) == tuple(range(8))


def test_bridges_join_servers_that_share_no_rail_at_all(cluster_of, plan_for):
    """Rails 0-3 dead on server 0, 4-7 on server 1: no rail works on all, yet rings run through the other two."""
    cluster = cluster_of(servers=4, nics=8, **RAILS)
    left = dict.fromkeys([0, 1, 2, 3, 12, 13, 14, 15], 0.0)
    with pytest.raises(PartitionedError, match="no rail works on both"):
        plan_for(cluster, "balance", 2**26, left)
    plan = plan_for(cluster, "r2cc-allreduce", 2**26, left)
    assert check_schedule(plan.schedule) is None
    # A ring of 4 over half of the NICs: 3/2 D / (4 NICs).
    assert time_of(cluster, plan, left) <= 1.5 * 2**26 / 4e10 * 1.01


def test_two_servers_without_a_common_rail_are_refused(cluster_of, plan_for):
    """Nothing stands between them."""
    cluster = cluster_of(servers=2, nics=2, **RAILS)
    with pytest.raises(PartitionedError, match="no rail works on both"):
        plan_for(cluster, "r2cc-allreduce", 2**26, {0: 0.0, 3: 0.0})


@BOTH
def test_dead_nics_on_several_servers(backend, cluster_of, plan_for):
    """10 servers x 4 NICs, one dead on three of them, X = 1/4: the formula within 2 %, where Balance pays 1/(1-X)."""
    cluster = cluster_of(servers=10, nics=4)
    left, n, x, k, size = {0: 0.0, 5: 0.0, 14: 0.0}, 10, 1 / 4, 8, GIB
    time_s = time_of(cluster, plan_for(cluster, f"r2cc-allreduce:k={k}", size, left), left, backend)
    t0 = 2 * (n - 1) / n * size / 4e10
    assert time_s / t0 == pytest.approx(1 + (1 + 1 / k) * n * x / (2 * (n - 1) * (1 - x)), rel=0.02)


def test_many_failures_of_large_servers(plan_for):
    """16 servers of 8 GPUs and 8 NICs, three without one: 3% less than Balance's 8/7; GPU links are priced as well."""
    cluster = load_cluster("h100x16").zero_latency()
    left, size = {0: 0.0, 9: 0.0, 42: 0.0}, 16 * GIB
    time_s = time_of(cluster, plan_for(cluster, "r2cc-allreduce:k=16", size, left), left)
    balance_s = time_of(cluster, plan_for(cluster, "balance", size, left), left)
    assert time_s == pytest.approx(best_division(view_of(cluster, left), size, 16, "x")[1], rel=0.01)
    assert time_s < 0.975 * balance_s


def test_more_chunks_than_bytes_are_refused(plan_for):
    """K counts for every part of stage 2."""
    with pytest.raises(InputError, match="more chunks than"):
        plan_for(load_cluster("uniformx8"), "r2cc-allreduce:k=100000000", 16 * MIB, {0: 0.5, 1: 0.5})
