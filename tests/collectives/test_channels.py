"""How channels lie on NICs and ranks, as NCCL lays its rings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import channel_lanes, lane_rows, ring_route, server_of_rank, server_order
from r2cc_simai.errors import PartitionedError


def test_one_channel_per_rail_that_works_everywhere():
    """r7525, mlx5_2 of server 1 down: rails 0 and 2 on all three servers."""
    cluster = load_cluster("r7525")
    alive = np.ones(9, dtype=bool)
    alive[4] = False
    assert channel_lanes(cluster, range(3), alive) == [{0: 0, 1: 3, 2: 6}, {0: 2, 1: 5, 2: 8}]


@given(dead=st.sets(st.integers(0, 8)))
def test_as_many_channels_as_the_poorest_server_has_nics(dead):
    """One switch joins all rails; no NIC is used twice, no dead one at all."""
    cluster = load_cluster("r7525")
    alive = np.array([i not in dead for i in range(9)])
    left = alive.reshape(3, 3).sum(axis=1)
    if left.min() == 0:
        with pytest.raises(PartitionedError, match=f"server{left.argmin()}: no NIC left"):
            channel_lanes(cluster, range(3), alive)
        return
    lanes = channel_lanes(cluster, range(3), alive)
    used = [nic for lane in lanes for nic in lane.values()]
    assert len(lanes) == left.min()
    assert len(set(used)) == len(used)
    assert alive[used].all()


def test_a_channel_starts_at_the_gpu_nearest_to_its_nic():
    """r7525: mlx5_0 is on the node of GPU 0, mlx5_2 and mlx5_3 on that of GPU 1; h100: each NIC has its own GPU."""
    assert [server_order(load_cluster("r7525"), nic)[0] for nic in range(3)] == [0, 1, 1]
    assert [server_order(load_cluster("h100"), nic)[0] for nic in range(8, 16)] == list(range(8, 16))
    assert server_order(load_cluster("h100"), 9) == (9, 10, 11, 12, 13, 14, 15, 8)


@pytest.mark.parametrize("name", ["r7525", "h100x4", "uniformx7"])
def test_a_flat_ring_crosses_each_border_once_per_channel(name):
    """Every rank once; as many hops between servers as there are servers, all bound to the lane's NICs."""
    cluster = load_cluster(name)
    servers = server_of_rank(cluster)
    for lane in channel_lanes(cluster, range(len(cluster.servers)), np.ones(len(cluster.nics), dtype=bool)):
        route = ring_route(cluster, lane)
        rows = lane_rows(cluster, 0, route, lane, cyclic=True)
        assert sorted(route.tolist()) == list(range(cluster.n_ranks))
        assert len(rows) == len(cluster.servers)
        for _, src, dst, src_nic, dst_nic, share in rows:
            assert (src_nic, dst_nic, share) == (lane[int(servers[src])], lane[int(servers[dst])], 1.0)


def test_what_a_view_says_of_a_server():
    """X = lost payload bandwidth / all of it: 1/3 by rate, a little more where the lost NIC has the longer packets."""
    cluster = load_cluster("r7525")
    view = View(cluster, tuple(0.0 if i == 4 else 1.0 for i in range(9)))
    r0, r2, r3 = (nic.payload_rate for nic in cluster.nics[3:6])
    assert view.degraded() == [1]
    assert view.lost(1) == pytest.approx(r2 / (r0 + r2 + r3))
    assert view.lost(0) == 0
    assert View(cluster, (0.5,) + (1.0,) * 8).lost(0) == pytest.approx(0.5 * r0 / (r0 + r2 + r3))
