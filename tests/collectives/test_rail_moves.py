"""Rails of which a cluster's servers do not care which is which."""

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import NicSpec
from r2cc_simai.collectives.rail_moves import gpu_move, rail_moves

STILL = tuple(range(8))


def changed(**update: object) -> Cluster:
    """Two servers of eight NICs, with other failover options."""
    cluster = load_cluster("h100")
    spec = cluster.spec.model_copy(update={"failover": cluster.spec.failover.model_copy(update=update)})
    return Cluster("changed", spec)


def test_the_cyclic_backups_of_two_numa_nodes_leave_32_moves() -> None:
    """Backup NIC of k is k + 1 within its node of four: four turns of each node, and their exchange: 4 * 4 * 2."""
    moves = rail_moves(load_cluster("h100"))
    assert moves[0] == STILL
    assert len(set(moves)) == 32
    assert (1, 2, 3, 0, 4, 5, 6, 7) in moves
    assert (4, 5, 6, 7, 0, 1, 2, 3) in moves
    assert (1, 0, 2, 3, 4, 5, 6, 7) not in moves


def test_moves_are_a_group() -> None:
    """The product of two moves is a move."""
    moves = set(rail_moves(load_cluster("h100")))
    assert all(tuple(a[b[k]] for k in range(8)) in moves for a in moves for b in moves)


def test_backups_on_the_other_node_tell_rails_apart() -> None:
    """With seven backups, NIC k's fourth is NIC 4 for every k of the first node: only the exchange of both is left."""
    assert rail_moves(changed(backups_per_nic=7)) == (STILL, (4, 5, 6, 7, 0, 1, 2, 3))


def test_gpus_move_with_the_nics_beside_them() -> None:
    """One NIC a GPU."""
    assert gpu_move(load_cluster("h100"), (1, 2, 3, 0, 4, 5, 6, 7)) == (1, 2, 3, 0, 4, 5, 6, 7)


@pytest.mark.parametrize("rate", [200.0, 400.0])
def test_a_nic_of_another_rate_stays_in_its_place(rate: float) -> None:
    """The first NIC keeps its place unless it is like the others."""
    cluster = load_cluster("h100")
    numa = [0, 0, 0, 0, 1, 1, 1, 1]
    nics = [NicSpec(name="odd", rate_gbps=rate, numa=0), NicSpec(count=7, rate_gbps=400, numa=numa[1:])]
    spec = cluster.spec.model_copy(update={"server": cluster.spec.server.model_copy(update={"nics": nics})})
    moves = rail_moves(Cluster("odd", spec))
    assert (len(moves) == 32) == (rate == 400.0)
    assert all(move[0] == 0 for move in moves) == (rate != 400.0)


def test_a_host_bridge_and_servers_that_differ_leave_no_moves() -> None:
    """The r7525 servers have a host bridge; one server of its own among four."""
    assert len(rail_moves(load_cluster("r7525"))) == 1
    cluster = load_cluster("h100x4")
    spec = cluster.spec.model_copy(update={"overrides": {"server1": cluster.spec.server}})
    assert rail_moves(Cluster("own", spec)) == (STILL,)
