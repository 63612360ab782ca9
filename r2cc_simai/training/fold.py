"""Which port stands for which when equal ranks are simulated once; the numbering is that of `Ports` in the engine.

A port's class is its server's, and its place there; for the links of GPUs it is the rank's class. Ranks of the cluster
without a part in the job stand for themselves; nothing passes their links.
"""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.training.classes import Classes
from r2cc_simai.training.ranks import Ranks

Int = NDArray[np.int64]


class Fold(TypedDict):
    """The two columns of the engine's port fold: a port for each port, and how many ports that one stands for."""

    fold_representative: Int
    fold_count: NDArray[np.float64]


def no_fold() -> Fold:
    """Every port for itself."""
    return Fold(fold_representative=np.zeros(0, dtype=np.int64), fold_count=np.zeros(0))


def port_fold(cluster: Cluster, ranks: Ranks, classes: Classes) -> Fold:
    """The ports of equal servers and ranks as one."""
    server = classes.of_server
    nic_place = np.array([n.index - cluster.servers[n.server].nics[0] for n in cluster.nics], dtype=np.int64)
    nic_server = server[np.array([n.server for n in cluster.nics], dtype=np.int64)]
    nic = nic_server * (int(nic_place.max()) + 1) + nic_place
    gpu = np.arange(cluster.n_ranks, dtype=np.int64) + int(classes.of_rank.max(initial=0)) + 1
    gpu[ranks.rank] = classes.of_rank
    first = 0
    representative, count = [], []
    for kind in (nic, gpu, server):
        _, one, inverse, size = np.unique(kind, return_index=True, return_inverse=True, return_counts=True)
        unit = first + one[inverse]  # a unit has two ports, out and in
        representative.append(np.column_stack((2 * unit, 2 * unit + 1)).reshape(-1))
        count.append(np.repeat(size[inverse], 2).astype(np.float64))
        first += len(kind)
    return Fold(fold_representative=np.concatenate(representative), fold_count=np.concatenate(count))
