"""Which NICs hang on which leaf, what its uplinks carry, and names of leaves as components."""

from pathlib import Path

import pytest
import yaml

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.component import nics_of


def fabric(**keys):
    return {"kind": "leaf-spine", "servers_per_leaf": 2, **keys}


def test_a_rail_optimised_pod_has_a_leaf_for_each_rail(cluster_of) -> None:
    """4 servers x 2 NICs, 2 servers a pod: leaf 0 has rail 0 of the first pod; uplinks 2 NICs / 4."""
    cluster = cluster_of(servers=4, nics=2, fabric=fabric(oversubscription=4))
    assert [leaf.nics for leaf in cluster.leaves] == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert [leaf.pod for leaf in cluster.leaves] == [0, 0, 1, 1]
    assert {leaf.uplink_rate for leaf in cluster.leaves} == {2 * 1e10 / 4}
    assert cluster.leaf_of_nic == (0, 1, 0, 1, 2, 3, 2, 3)
    assert cluster.rails_connected
    assert cluster.keeps_rails


def test_otherwise_a_leaf_holds_all_nics_of_its_servers(cluster_of) -> None:
    """The last pod may have fewer servers; oversubscription is 1 unless the file says otherwise."""
    cluster = cluster_of(servers=3, nics=2, fabric=fabric(rail_optimized=False))
    assert [leaf.nics for leaf in cluster.leaves] == [(0, 1, 2, 3), (4, 5)]
    assert [leaf.uplink_rate for leaf in cluster.leaves] == [4e10, 2e10]
    assert not cluster.keeps_rails


@pytest.mark.parametrize("kind", ["one-switch", "switch-per-rail"])
def test_other_fabrics_have_no_leaves(kind: str, cluster_of) -> None:
    cluster = cluster_of(servers=3, nics=2, fabric={"kind": kind})
    assert cluster.leaves == ()
    assert set(cluster.leaf_of_nic) == {-1}
    assert cluster.keeps_rails == (kind == "switch-per-rail")


def test_the_preset() -> None:
    """8 servers in 2 pods, 8 rails: 16 leaves of 4 NICs of 25 GB/s, a quarter of which goes up."""
    cluster = load_cluster("a100-leaf-spine")
    assert len(cluster.leaves) == 16
    assert {leaf.uplink_rate for leaf in cluster.leaves} == {25e9}
    assert len(load_cluster("a100-leaf-spinex16").leaves) == 32


def test_a_file_may_change_the_fabric_of_a_preset(tmp_path: Path) -> None:
    """Keys of the preset's fabric stay unless the kind is another one."""
    path = tmp_path / "my.yml"
    path.write_text(yaml.safe_dump({"preset": "a100-leaf-spine", "fabric": {"oversubscription": 2}}))
    assert {leaf.uplink_rate for leaf in load_cluster(str(path)).leaves} == {50e9}
    other = tmp_path / "other.yml"
    other.write_text(yaml.safe_dump({"preset": "a100-leaf-spine", "fabric": {"kind": "one-switch"}}))
    assert load_cluster(str(other)).leaves == ()


def test_a_leaf_is_a_component(cluster_of) -> None:
    """Its NICs go down with it; fabrics without leaves have none."""
    cluster = cluster_of(servers=4, nics=2, fabric=fabric())
    assert nics_of(cluster, "leaf3") == [5, 7]
    assert nics_of(cluster, "leaf[0-1]") == [0, 2, 1, 3]
    with pytest.raises(InputError, match=r"serverN \(0 to 3\), railN or leafN \(0 to 3\)"):
        nics_of(cluster, "leaf4")
    with pytest.raises(InputError, match=r"no such component; write serverN.NIC, serverN \(0 to 1\) or railN"):
        nics_of(cluster_of(), "leaf0")
