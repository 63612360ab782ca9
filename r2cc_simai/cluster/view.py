"""What a planner knows of the cluster at a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class View:
    """A cluster and the rate fraction of each NIC that is known (0: down). Views compare by value.

    What is asked for again and again is kept: a view of 16,384 NICs is walked once, not with every plan.
    """

    cluster: Cluster
    fraction: tuple[float, ...]

    @staticmethod
    @lru_cache(maxsize=64)
    def healthy(cluster: Cluster) -> "View":
        """A view in which everything works."""
        return View(cluster, (1.0,) * len(cluster.nics))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.cluster, self.fraction))

    @cached_property
    def fractions(self) -> NDArray[np.float64]:
        """`fraction` as an array that cannot be written to, shape (n_nics,)."""
        return _kept(np.array(self.fraction))

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """Which NICs work, shape (n_nics,); cannot be written to."""
        return _kept(self.fractions > 0)

    @cached_property
    def hurt_servers(self) -> frozenset[int]:
        """Servers that have lost bandwidth."""
        return frozenset(self.cluster.nics[n].server for n in np.nonzero(self.fractions < 1)[0])

    @cached_property
    def dead_servers(self) -> frozenset[int]:
        """Servers with a NIC that is down."""
        return frozenset(self.cluster.nics[n].server for n in np.nonzero(self.fractions == 0)[0])

    def degraded(self, servers: Iterable[int] | None = None) -> list[int]:
        """Servers that have lost bandwidth, sorted; of some servers only where those are given."""
        if servers is None:
            return sorted(self.hurt_servers)
        return sorted(server for server in servers if server in self.hurt_servers) if self.hurt_servers else []

    def payload_rate(self, nic: int) -> float:
        """Payload bytes per second that a NIC can carry now."""
        return self.cluster.nics[nic].payload_rate * self.fraction[nic]

    def lost(self, server: int) -> float:
        """The fraction X of a server's bandwidth that is gone."""
        nics = self.cluster.servers[server].nics
        whole = sum(self.cluster.nics[n].payload_rate for n in nics)
        return 1.0 - sum(self.payload_rate(n) for n in nics) / whole


def _kept(array: NDArray[T]) -> NDArray[T]:
    array.flags.writeable = False
    return array
