"""What a NIC or a channel can really carry: its own rate, or its share of the host bridge that stands before it.

Two 200 Gb/s NICs behind a bridge of 234 Gb/s carry 117 Gb/s each (NVIDIA/nccl issue 2310); a split that looks at the
NICs alone gives them 200 each and waits for them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.bounds.fabric import behind_bridge
from r2cc_simai.cluster.model import Server
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import Lane, server_order


def nic_rates(view: View) -> NDArray[np.float64]:
    """Payload bytes/s of every NIC in the state of the view, shape (n_nics,).

    NICs on a NUMA node without a GPU share the host bridge of their server, max-min fair.
    """
    rates = np.array([view.payload_rate(nic.index) for nic in view.cluster.nics])
    for server in view.cluster.servers:
        far = [n for n in server.nics if behind_bridge(server, view.cluster.nics[n].numa)]
        rates[far] = shared(rates[far], server.bridge_rate)
    return rates


def lane_rates(view: View, lanes: Sequence[Lane]) -> list[float]:
    """Payload bytes/s of channels that run at once, each that of its narrowest place.

    A channel crosses the host bridge of a server where it comes in by a NIC of another NUMA node than its first GPU, or
    leaves by one of another than its last; those that do share the bridge, max-min fair.
    """
    rates = np.array([[view.payload_rate(nic) for nic in lane.values()] for lane in lanes])  # lane x server
    for i, s in enumerate(lanes[0] if lanes else ()):
        server = view.cluster.servers[s]
        for end in (0, -1):
            crossing = [_crosses(view, server, lane[s], end) for lane in lanes]
            rates[crossing, i] = shared(rates[crossing, i], server.bridge_rate)
    return [float(rate) for rate in rates.min(axis=1)] if lanes else []


def _crosses(view: View, server: Server, nic: int, end: int) -> bool:
    rank = server_order(view.cluster, nic)[end]
    return server.gpu_numa[server.ranks.index(rank)] != view.cluster.nics[nic].numa


def shared(wanted: NDArray[np.float64], capacity: float) -> NDArray[np.float64]:
    """Max-min fair shares of a capacity for those who want so much each."""
    shares = np.zeros_like(wanted)
    left = capacity
    for position, i in enumerate(np.argsort(wanted, kind="stable")):
        shares[i] = min(wanted[i], left / (len(wanted) - position))
        left -= shares[i]
    return shares
