"""What failures do to each part of a cluster at worst: NICs, servers, rails, leaves; and which servers to show."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.failures.component import component_of, kind_of, nics_of
from r2cc_simai.failures.incident import Incident

MOST_SERVERS = 8


@dataclass(frozen=True)
class States:
    """The lowest rate fraction that any incident leaves: `nic` of shape (n_nics,), of switches by their number.

    `alone` counts, for each server, the NICs that failed by themselves, not with a switch that others share.
    """

    nic: NDArray[np.float64]
    rail: dict[int, float]
    leaf: dict[int, float]
    server: dict[int, float]
    alone: NDArray[np.int64]

    def lost(self, cluster: Cluster) -> NDArray[np.float64]:
        """Bandwidth that each server loses at worst, as a fraction, shape (n_servers,)."""
        rates = np.array([nic.rate for nic in cluster.nics])
        owner = [nic.server for nic in cluster.nics]
        whole = np.bincount(owner, rates, len(cluster.servers))
        return 1.0 - np.bincount(owner, rates * self.nic, len(cluster.servers)) / whole


def worst_states(incidents: Sequence[Incident], cluster: Cluster) -> States:
    """The worst state of every part over the whole time.

    Raises:
        InputError: the cluster lacks a component.
    """
    worst: dict[str, float] = {}
    for one in incidents:
        worst[one.component] = min(one.state, worst.get(one.component, 1.0))
    found = States(np.ones(len(cluster.nics)), {}, {}, {}, np.zeros(len(cluster.servers), dtype=np.int64))
    for name, state in worst.items():
        nics = nics_of(cluster, component_of(name)[0])
        found.nic[nics] = np.minimum(found.nic[nics], state)
        kind = kind_of(name)
        if kind == "rail":
            _lower(found.rail, {cluster.nics[n].rail for n in nics}, state)
        elif kind == "leaf":
            _lower(found.leaf, {cluster.leaf_of_nic[n] for n in nics}, state)
        else:
            if kind == "server":
                _lower(found.server, {cluster.nics[n].server for n in nics}, state)
            np.add.at(found.alone, [cluster.nics[n].server for n in nics], 1)
    return found


def servers_to_show(states: States, cluster: Cluster, most: int = MOST_SERVERS) -> list[int]:
    """Numbers of the servers to draw, in order: all where there is room, else those that the failures hit most.

    Failures of a server's own NICs count more than those of a switch, which many servers share.
    """
    count = len(cluster.servers)
    if count <= most:
        return list(range(count))
    lost = states.lost(cluster)
    order = sorted(range(count), key=lambda s: (states.alone[s] == 0, -lost[s], s))
    hurt = [s for s in order if lost[s] > 0]
    return sorted((hurt or order)[: max(1, min(most, len(hurt)))])


def _lower(states: dict[int, float], numbers: set[int], state: float) -> None:
    for number in numbers:
        states[number] = min(state, states.get(number, 1.0))
