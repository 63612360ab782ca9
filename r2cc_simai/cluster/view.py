"""What a planner knows of the cluster at a time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster


@dataclass(frozen=True)
class View:
    """A cluster and the rate fraction of each NIC that is known (0: down). Views compare by value."""

    cluster: Cluster
    fraction: tuple[float, ...]

    @staticmethod
    def healthy(cluster: Cluster) -> "View":
        """A view in which everything works."""
        return View(cluster, (1.0,) * len(cluster.nics))

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which NICs work, shape (n_nics,)."""
        return np.array(self.fraction) > 0

    def payload_rate(self, nic: int) -> float:
        """Payload bytes per second that a NIC can carry now."""
        return self.cluster.nics[nic].payload_rate * self.fraction[nic]

    def lost(self, server: int) -> float:
        """The fraction X of a server's bandwidth that is gone."""
        nics = self.cluster.servers[server].nics
        whole = sum(self.cluster.nics[n].payload_rate for n in nics)
        return 1.0 - sum(self.payload_rate(n) for n in nics) / whole

    def degraded(self) -> list[int]:
        """Servers that have lost bandwidth."""
        hit = {self.cluster.nics[n].server for n, f in enumerate(self.fraction) if f < 1}
        return sorted(hit)
