"""Direct sends: which NICs carry a pair's bytes, healthy and when NICs are gone."""

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.direct import Direct, nics_of_ranks
from r2cc_simai.errors import PartitionedError


def direct(cluster: Cluster, lost: dict[int, float] | None = None, weighted: bool = False) -> Direct:
    return Direct(cluster, np.array([(lost or {}).get(nic.index, 1.0) for nic in cluster.nics]), weighted)


def test_a_gpu_has_the_nics_of_its_numa_node() -> None:
    """h100: one each. r7525: GPU 0 has mlx5_0, GPU 1 has mlx5_2 and mlx5_3."""
    assert nics_of_ranks(load_cluster("h100"))[:9] == tuple((n,) for n in range(9))
    assert nics_of_ranks(load_cluster("r7525"))[:2] == ((0,), (1, 2))


def test_gpus_share_the_nics_where_they_are_fewer(cluster_of) -> None:
    assert nics_of_ranks(cluster_of(gpus=4, nics=2))[:4] == ((0,), (1,), (0,), (1,))


def test_on_one_switch_the_nearest_nics_meet() -> None:
    """Rank 2 to rank 13: NIC 2 to NIC 13; nothing inside a server."""
    paths = direct(load_cluster("h100"))
    assert paths.path(2, 13).pairs == [(2, 13, 1.0)]
    assert paths.path(2, 13).via is None
    assert paths.path(2, 3).pairs == []


def test_on_rails_the_gpu_on_the_receivers_rail_forwards() -> None:
    """Rank 2 to rank 13: rank 5 takes rail 5. On the same rail nobody forwards, nor does a rank outside the group."""
    paths = direct(load_cluster("hpn-h800x2"))
    assert (paths.path(2, 13).via, paths.path(2, 13).pairs) == (5, [(5, 13, 1.0)])
    assert (paths.path(5, 13).via, paths.path(5, 13).pairs) == (None, [(5, 13, 1.0)])
    assert (paths.path(2, 13, (2, 13)).via, paths.path(2, 13, (2, 13)).pairs) == (None, [(5, 13, 1.0)])


@pytest.mark.parametrize("name", ["h100", "hpn-h800x2"])
def test_a_dead_nic_is_spread_over_the_seven_others(name: str) -> None:
    """NIC 13 is down: what goes to rank 13 comes in by the others of server 1; all else stays."""
    paths = direct(load_cluster(name), {13: 0.0})
    into = paths.path(5, 13).pairs
    assert sorted(dst for _, dst, _ in into) == [8, 9, 10, 11, 12, 14, 15]
    assert [part for *_, part in into] == pytest.approx([1 / 7] * 7)
    assert paths.path(4, 12).pairs == [(4, 12, 1.0)]


def test_weighted_gives_every_gpu_of_the_server_what_each_nic_can_carry() -> None:
    """NIC 0 at half its rate: it has 0.5 of 7.5 parts of everything that server 0 sends."""
    paths = direct(load_cluster("h100"), {0: 0.5}, weighted=True)
    for rank in range(8):
        out = {src: part for src, _, part in paths.path(rank, 12).pairs}
        assert out[0] == pytest.approx(0.5 / 7.5)
        assert out[1] == pytest.approx(1 / 7.5)


def test_both_ends_spread_at_once() -> None:
    """NICs 0 and 8 are down: the parts of both ends hold, on at most 13 pairs."""
    pairs = direct(load_cluster("h100"), {0: 0.0, 8: 0.0}, weighted=True).path(0, 8).pairs
    assert len(pairs) <= 13
    for end in (0, 1):
        sums = {}
        for pair in pairs:
            sums[pair[end]] = sums.get(pair[end], 0) + pair[2]
        assert list(sums.values()) == pytest.approx([1 / 7] * 7)


def test_servers_without_a_rail_in_common_are_partitioned(cluster_of) -> None:
    cluster = cluster_of(nics=2, fabric={"kind": "switch-per-rail"})
    with pytest.raises(PartitionedError, match="server0 and server1: no rail works on both"):
        direct(cluster, {0: 0.0, 3: 0.0}).path(0, 1)
