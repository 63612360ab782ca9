"""Which cluster a log was measured on: named by the user, or recognised by its hosts and NICs."""

import re

from r2cc_simai.cluster.load import load_cluster, preset_names
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError
from r2cc_simai.measured import Measurement


def cluster_of(measurement: Measurement, name: str | None) -> Cluster:
    """The cluster `name`, or where that is None the preset whose hosts and NICs the log names.

    Raises:
        InputError: no preset fits, or the cluster has other servers, ranks or NICs than the log.
    """
    cluster = _infer(measurement) if name is None else load_cluster(name)
    _check(measurement, cluster)
    return cluster


def _infer(measurement: Measurement) -> Cluster:
    for preset in preset_names():
        cluster = load_cluster(preset)
        if _fits(measurement, cluster):
            n = measurement.n_nodes
            return cluster if n in (None, len(cluster.servers)) else load_cluster(f"{preset}x{n}")
    hosts = ", ".join(measurement.host_names) or "none named"
    nics = ", ".join(measurement.nic_names) or "none named"
    raise InputError(
        f"{measurement.source}: no preset has these hosts ({hosts}) and NICs ({nics}); name the cluster with --cluster"
    )


def _fits(measurement: Measurement, cluster: Cluster) -> bool:
    match = cluster.spec.match
    hosts, nics = measurement.host_names, set(measurement.nic_names)
    if match is None or not hosts or not nics:
        return False
    if not all(re.fullmatch(match.hosts, host) for host in hosts):
        return False
    return nics <= {cluster.nics[nic].name for nic in cluster.servers[0].nics}


def _check(measurement: Measurement, cluster: Cluster) -> None:
    pairs = (
        ("servers", measurement.n_nodes, len(cluster.servers)),
        ("ranks", measurement.n_ranks, cluster.n_ranks),
    )
    for what, measured, own in pairs:
        if measured not in (None, own):
            raise InputError(f"{measurement.source}: {measured} {what}, but cluster {cluster.name} has {own}")
    if measurement.iterations is not None:
        for nic in measurement.iterations.iterations[0].rx_bytes:
            if f"server0.{nic}" not in cluster.nic_by_name:
                names = ", ".join(cluster.nics[i].name for i in cluster.servers[0].nics)
                raise InputError(f"{measurement.source}: cluster {cluster.name} has no NIC {nic!r} ({names})")
