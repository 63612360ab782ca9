"""The engine's copy of a cluster."""

from functools import lru_cache

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.engine import _core


@lru_cache(maxsize=64)
def core_cluster(cluster: Cluster) -> _core.Cluster:
    """The cluster as the engine holds it; made once per cluster."""
    transport = cluster.spec.transport
    leaf = cluster.leaf_of_nic
    ranks = [(s.index, numa, s.link_rate, s.link_latency_s) for s in cluster.servers for numa in s.gpu_numa]
    return _core.Cluster(
        nics=[
            _core.Nic(
                name=nic.full_name,
                server=nic.server,
                rail=nic.rail,
                numa=nic.numa,
                rate=nic.rate,
                line_rate=nic.line_rate,
                burst=nic.burst_bytes,
                mtu=nic.mtu_bytes,
                header=nic.header_bytes,
                backups=nic.backups,
                leaf=leaf[nic.index],
            )
            for nic in cluster.nics
        ],
        rank_server=np.array([r[0] for r in ranks], dtype=np.int64),
        rank_numa=np.array([r[1] for r in ranks], dtype=np.int64),
        rank_link_rate=np.array([r[2] for r in ranks], dtype=np.float64),
        rank_link_latency_s=np.array([r[3] for r in ranks], dtype=np.float64),
        bridge_rate=[s.bridge_rate for s in cluster.servers],
        rails_connected=cluster.rails_connected,
        backups_per_nic=cluster.spec.failover.backups_per_nic,
        base_latency_s=transport.base_latency_us * 1e-6,
        net_latency_s=transport.step_latency_us * 1e-6,
        resume_delay_s=cluster.resume_delay_s,
        window_chunks=transport.window_chunks,
        uplink_rate=[one.uplink_rate for one in cluster.leaves],
    )
