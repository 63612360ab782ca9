"""Splitting over NICs that cannot all run at their rate: unequal NICs, and a host bridge before some of them."""

import numpy as np
import pytest

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.bound import all_reduce_bound
from r2cc_simai.engine.run import Backend
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.strategies.carried_rates import lane_rates, nic_rates, shared

BOTH = pytest.mark.parametrize("backend", list(Backend))
GBPS = 1e9 / 8


def bridged(cluster_of, servers=4):
    """Per server a GPU and two 200 Gb/s NICs on NUMA node 0, two more on node 1 behind a bridge of 234 Gb/s."""
    return cluster_of(
        servers=servers,
        server={
            "gpus": {"count": 1, "numa": 0},
            "nics": [{"count": 4, "rate_gbps": 200, "header_bytes": 0, "numa": [0, 0, 1, 1]}],
            "host_bridge_gbps": 234,
        },
    )


@pytest.mark.parametrize(
    ("wanted", "capacity", "shares"),
    [([200, 200], 234, [117, 117]), ([50, 200, 200], 300, [50, 125, 125]), ([10, 20], 99, [10, 20]), ([], 5, [])],
)
def test_max_min_shares(wanted, capacity, shares):
    """Who wants less than an even share gets it, the others share the rest."""
    assert shared(np.array(wanted, dtype=float), capacity) == pytest.approx(shares)


def test_two_nics_behind_a_bridge_carry_half_of_it_each(cluster_of):
    """NVIDIA/nccl issue 2310: 234 Gb/s for two NICs of 200 Gb/s: 117 each."""
    cluster = bridged(cluster_of)
    view = View.healthy(cluster)
    lanes = [{s.index: s.nics[rail] for s in cluster.servers} for rail in range(4)]
    assert [rate / GBPS for rate in lane_rates(view, lanes)] == pytest.approx([200, 200, 117, 117])
    assert nic_rates(view)[:4] / GBPS == pytest.approx([200, 200, 117, 117])


def test_a_dead_nic_leaves_the_bridge_to_the_other(cluster_of):
    """NIC 2 dead: NIC 3 has its 200 Gb/s, which the bridge lets pass."""
    cluster = bridged(cluster_of)
    fraction = tuple(0.0 if nic.name == "nic2" else 1.0 for nic in cluster.nics)
    assert nic_rates(View(cluster, fraction))[:4] / GBPS == pytest.approx([200, 200, 0, 200])


@BOTH
def test_the_weighted_split_respects_the_bridge(backend, cluster_of, simulate):
    """n = 4: T = 3/2 D / (200+200+117+117 Gb/s), the bound of such servers; an even split waits for 117 Gb/s: 468."""
    cluster, size = bridged(cluster_of), 2**28
    weighted, even = (
        simulate(cluster, f"balance:split={split}", size, backend=backend).elapsed_s for split in ("weighted", "even")
    )
    assert weighted == pytest.approx(1.5 * size / (634 * GBPS), rel=0.02)
    assert even == pytest.approx(1.5 * size / (468 * GBPS), rel=0.02)
    bound = all_reduce_bound(cluster, size, Timeline())
    assert bound == pytest.approx(1.5 * size / (634 * GBPS))
    assert weighted >= bound * (1 - 1e-9)


@BOTH
def test_the_weighted_split_respects_a_slower_slot_and_unequal_nics(backend, cluster_of, simulate):
    """NICs of 200, of 100 and of 200 Gb/s in a slot of 64 Gb/s: T = 3/2 D / (364 Gb/s), n = 4."""
    nic = {"header_bytes": 0}
    nics = [{**nic, "rate_gbps": 200}, {**nic, "rate_gbps": 100}, {**nic, "rate_gbps": 200, "pcie_gbps": 64}]
    cluster, size = cluster_of(servers=4, server={"nics": nics}), 2**28
    time_s = simulate(cluster, "balance:split=weighted", size, backend=backend).elapsed_s
    assert time_s == pytest.approx(1.5 * size / (364 * GBPS), rel=0.02)
    assert time_s >= all_reduce_bound(cluster, size, Timeline()) * (1 - 1e-9)


def test_r2cc_with_two_failures_respects_the_bridge(cluster_of, simulate):
    """Two servers without a near NIC: levels over 434 of 634 Gb/s, never below the bound, no worse than Balance."""
    cluster, size = bridged(cluster_of, servers=8), 2**30
    lost = {0: 0.0, 4: 0.0}
    r2cc, balance = (simulate(cluster, s, size, lost=lost).elapsed_s for s in ("r2cc-allreduce", "balance"))
    assert r2cc < balance
    assert r2cc >= 1.75 * size / (634 * GBPS)
