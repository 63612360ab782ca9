"""The lower bound of an AllReduce between servers, in every state and over time.

T >= max( max_i D / C_i,  2(n-1) D / sum_i C_i )        C_i: payload bandwidth of server i (consistent with OptCC)
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.collectives.bound import all_reduce_bound
from r2cc_simai.failures.timeline import Event, Timeline, sorted_timeline

B = 1e10
D = 10_000_000_000


def lost(*fractions):
    """NIC i at fractions[i] from the start on."""
    return Timeline(tuple(Event(i, f) for i, f in enumerate(fractions)))


@pytest.mark.parametrize("n", [2, 3, 8, 64])
def test_healthy_is_the_ring(n, cluster_of):
    """2(n-1)/n D/B: the fault-free ring is optimal."""
    assert all_reduce_bound(cluster_of(servers=n), D, Timeline()) == pytest.approx(2 * (n - 1) / n * D / B)


@pytest.mark.parametrize("n", [3, 8, 32])
@pytest.mark.parametrize("x", [1 / 8, 1 / 4, 1 / 2, 3 / 4])
def test_one_degraded_server(n, x, cluster_of):
    """max( D/((1-X)B), 2(n-1)D/((n-X)B) )."""
    expected = max(D / ((1 - x) * B), 2 * (n - 1) * D / ((n - x) * B))
    assert all_reduce_bound(cluster_of(servers=n), D, lost(1 - x)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("x", "n", "percent"),
    [(1 / 8, 8, 1.6), (1 / 8, 64, 0.2), (1 / 4, 16, 1.6), (1 / 2, 8, 14.3), (1 / 2, 32, 3.2), (1 / 2, 64, 1.6)],
)
def test_the_published_overheads_of_the_bound(x, n, percent, cluster_of):
    """Bound over the fault-free ring, as the table of OptCC has it; at X = 1/2 it is 1/(n-1)."""
    cluster = cluster_of(servers=n)
    ratio = all_reduce_bound(cluster, D, lost(1 - x)) / all_reduce_bound(cluster, D, Timeline())
    assert 100 * (ratio - 1) == pytest.approx(percent, abs=0.05)


@given(fractions=st.lists(st.floats(0.05, 1), min_size=2, max_size=8))
def test_several_degraded_servers(fractions, cluster_of):
    """max( max_i D/((1-X_i)B), 2(n-1)D/((n - sum X_i)B) )."""
    n = len(fractions)
    expected = max(D / (min(fractions) * B), 2 * (n - 1) * D / (sum(fractions) * B))
    assert all_reduce_bound(cluster_of(servers=n), D, lost(*fractions)) == pytest.approx(expected)


@pytest.mark.parametrize("n", [3, 4, 8, 100])
def test_both_sides_meet_at_x_star(n, cluster_of):
    """X* = (n-2)/(2n-3): below it all servers together decide, above it the degraded one alone."""
    cluster = cluster_of(servers=n)
    x = (n - 2) / (2 * n - 3)
    alone, together = D / ((1 - x) * B), 2 * (n - 1) * D / ((n - x) * B)
    assert alone == pytest.approx(together)
    assert all_reduce_bound(cluster, D, lost(1 - x)) == pytest.approx(alone)
    below, above = x - 0.05, x + 0.05
    assert all_reduce_bound(cluster, D, lost(1 - below)) == pytest.approx(2 * (n - 1) * D / ((n - below) * B))
    assert all_reduce_bound(cluster, D, lost(1 - above)) == pytest.approx(D / ((1 - above) * B))


def test_links_inside_a_server_are_free_and_its_nics_add_up(cluster_of):
    """2 servers x 4 GPUs x 2 NICs: n = 2, B = 2 NICs: D / (2 * 1e10)."""
    assert all_reduce_bound(cluster_of(gpus=4, nics=2), D, Timeline()) == pytest.approx(0.5 * D / B)


def test_headers_count(cluster_of):
    """Payload rate = rate / (1 + 62/1024)."""
    cluster = cluster_of(server={"nics": [{"rate_gbps": 80, "mtu_bytes": 1024}]})
    assert all_reduce_bound(cluster, D, Timeline()) == pytest.approx(D * (1 + 62 / 1024) / B)


def test_a_timeline_integrates(cluster_of):
    """n = 2, D/B = 1 s. Down 0.2..0.5 s, half from 0.8 s on: 0.2 + 0.3 by 0.8 s, the other half at B/2: 1.8 s."""
    timeline = sorted_timeline(
        [Event(0, 0.0, time_s=0.2), Event(0, 1.0, time_s=0.5), Event(0, 0.5, time_s=0.8)], "test"
    )
    assert all_reduce_bound(cluster_of(), D, timeline) == pytest.approx(1.8)


def test_a_collective_may_start_late_in_a_timeline(cluster_of):
    """The same failures seen from 0.6 s: 0.2 s at B, then B/2: 0.2 + 0.8 * 2 = 1.8 s; from 1 s on 2 s."""
    timeline = sorted_timeline(
        [Event(0, 0.0, time_s=0.2), Event(0, 1.0, time_s=0.5), Event(0, 0.5, time_s=0.8)], "test"
    )
    assert all_reduce_bound(cluster_of(), D, timeline, start_s=0.6) == pytest.approx(1.8)
    assert all_reduce_bound(cluster_of(), D, timeline, start_s=1.0) == pytest.approx(2.0)


def shaped(cluster_of):
    """1 GB/s, 10 GB/s until 1 MB above it has passed."""
    nic = {"rate_gbps": 8, "line_rate_gbps": 80, "burst_kb": 1000, "header_bytes": 0}
    return cluster_of(server={"nics": [nic]})


def test_a_burst_comes_on_top(cluster_of):
    """W = rate * t + burst, once t is past burst/(line - rate) = 0.11 ms; W = line * t before."""
    assert all_reduce_bound(shaped(cluster_of), 8_000_000, Timeline()) == pytest.approx(7e-3)
    assert all_reduce_bound(shaped(cluster_of), 1_000_000, Timeline()) == pytest.approx(1e-4)


def test_a_nic_at_half_its_rate_drains_its_bucket_at_half_the_speed(cluster_of):
    """W = f rate t + burst: 8e6 = 0.5e9 t + 1e6, t = 14 ms."""
    assert all_reduce_bound(shaped(cluster_of), 8_000_000, lost(0.5)) == pytest.approx(14e-3)


def test_a_nic_that_is_down_keeps_its_bucket(cluster_of):
    """Down until 0.1 s, then 1 MB at line rate: 0.1 s + 0.1 ms."""
    timeline = Timeline((Event(0, 0.0), Event(0, 1.0, time_s=0.1)))
    assert all_reduce_bound(shaped(cluster_of), 1_000_000, timeline) == pytest.approx(0.1001)


def test_a_server_that_stays_cut_off_never_ends(cluster_of):
    """Infinite; a single server or no bytes: nothing to bound."""
    assert all_reduce_bound(cluster_of(), D, lost(0.0)) == math.inf
    assert all_reduce_bound(cluster_of(servers=1), D, lost(0.0)) == 0
    assert all_reduce_bound(cluster_of(), 0, lost(0.0)) == 0


@given(
    n=st.integers(2, 9),
    fractions=st.lists(st.floats(0.1, 1), min_size=9, max_size=9),
    when=st.floats(0, 3),
)
def test_a_failure_never_lowers_the_bound(n, fractions, when, cluster_of):
    """Less bandwidth from some time on cannot help."""
    cluster = cluster_of(servers=n)
    timeline = Timeline(tuple(Event(i, f, time_s=when) for i, f in enumerate(fractions[:n])))
    assert all_reduce_bound(cluster, D, timeline) >= all_reduce_bound(cluster, D, Timeline()) * (1 - 1e-12)
