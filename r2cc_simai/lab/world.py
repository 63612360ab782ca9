"""The emulated cluster: namespaces as servers, veth pairs as NICs, bridges as switches, token buckets as rates.

Everything lies in namespaces without a name, one for each server and one for all switches, which the world's
descriptors and the ranks' processes keep alive. Nothing is made outside of them, and no namespace has a way out.

A NIC's two directions are limited each where they begin: what it sends by the token bucket of its own device, what it
receives by that of the switch's port. Those two count what passes in bytes on the wire.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster, Nic
from r2cc_simai.errors import PartitionedError
from r2cc_simai.lab import bridge_port
from r2cc_simai.lab.connections import end_connections
from r2cc_simai.lab.counters import DeviceCounters
from r2cc_simai.lab.namespaces import inside, move_to, new_namespace, require_namespaces, set_sysctl
from r2cc_simai.lab.spec import LabSpec

if TYPE_CHECKING:
    from pyroute2 import IPRoute

_ROOT_QDISC = 0x10000

SETTINGS: dict[str, int | str] = {
    "ipv6.conf.all.disable_ipv6": 1,
    "ipv6.conf.default.disable_ipv6": 1,
    "ipv4.conf.all.rp_filter": 0,
    "ipv4.conf.default.rp_filter": 0,
    # With several NICs on one switch, the one that has an address answers for it, and no other.
    "ipv4.conf.all.arp_ignore": 1,
    "ipv4.conf.all.arp_announce": 2,
    "ipv4.tcp_slow_start_after_idle": 0,
    "ipv4.tcp_no_metrics_save": 1,
}
"""Of every namespace. IPv6 would add packets of its own to the counters; the rest keeps runs alike."""


class World:
    """A running emulation of a lab's cluster. NICs have the cluster's numbers.

    Raises on entry MissingComponentError where the process may not make namespaces, OSError where a device cannot be
    made.
    """

    def __init__(self, spec: LabSpec, cluster: Cluster) -> None:
        self.spec = spec
        self.cluster = cluster
        self.addresses = {nic.index: f"10.77.{nic.rail}.{nic.server + 1}" for nic in cluster.nics}
        self._servers: list[int] = []
        self._switches = -1
        self._ports: dict[int, int] = {}  # device numbers among the switches, by NIC
        self._devices: dict[int, int] = {}  # device numbers inside the server
        self._counters: list[DeviceCounters] = []
        self._silenced: set[int] = set()

    def __enter__(self) -> "World":
        require_namespaces()
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the namespaces; they vanish with the last process in them."""
        for counters in self._counters:
            counters.close()
        for namespace in [*self._servers, self._switches]:
            if namespace >= 0:
                os.close(namespace)
        self._counters, self._servers, self._switches = [], [], -1

    def devices(self, server: int) -> dict[int, str]:
        """Device names of a server's NICs."""
        return {n: self.cluster.nics[n].name for n in self.cluster.servers[server].nics}

    def join(self, server: int) -> None:
        """Moves the calling thread into a server for good."""
        move_to(self._servers[server])

    def interface_bytes(self, nic: int) -> tuple[int, int]:
        """Bytes that a NIC's interface has received and sent, cheap to read.

        A packet that the device cuts into several on its way counts with one header.
        """
        return self._counters[self.cluster.nics[nic].server].read(self.cluster.nics[nic].name)

    def wire_bytes(self) -> NDArray[np.int64]:
        """Bytes on the wire, headers of every packet included: shape (n_nics, 2), received and sent."""
        counted = np.zeros((len(self.cluster.nics), 2), dtype=np.int64)
        with self._netlink(self._switches) as netlink:
            passed = _bytes_by_device(netlink)
            for nic, port in self._ports.items():
                counted[nic, 0] = passed[port]
        for server in self.cluster.servers:
            with self._netlink(self._servers[server.index]) as netlink:
                passed = _bytes_by_device(netlink)
                for nic in server.nics:
                    counted[nic, 1] = passed[self._devices[nic]]
        return counted

    def set_link(self, nic: int, up: bool) -> None:
        """Sets a NIC up or down. A switch forwards again what comes from a link that has been down."""
        self._silenced.discard(nic)
        one = self.cluster.nics[nic]
        with self._netlink(self._servers[one.server]) as netlink:
            self._up(netlink, one) if up else netlink.link("set", index=self._devices[nic], state="down")

    def set_port(self, nic: int, up: bool) -> None:
        """Sets the switch's port of a NIC up or down."""
        self._silenced.discard(nic)
        with self._netlink(self._switches) as netlink:
            netlink.link("set", index=self._ports[nic], state="up" if up else "down")

    def set_silent(self, nic: int, silent: bool) -> None:
        """Lets the switch drop all that goes to and comes from a NIC, or forward it."""
        state = bridge_port.DISABLED if silent else bridge_port.FORWARDING
        with inside(self._switches):
            bridge_port.set_port_state(self._ports[nic], state)
        (self._silenced.add if silent else self._silenced.discard)(nic)

    def end_connections(self, nic: int) -> int:
        """Ends all connections of a NIC with an error, and returns how many there were."""
        with inside(self._servers[self.cluster.nics[nic].server]):
            return end_connections(self.addresses[nic])

    def set_rate(self, nic: int, fraction: float) -> None:
        """Sets both directions of a NIC to a part of its rate."""
        one = self.cluster.nics[nic]
        with self._netlink(self._servers[one.server]) as netlink:
            self._limit(netlink, "change", self._devices[nic], one.rate * fraction)
        with self._netlink(self._switches) as netlink:
            self._limit(netlink, "change", self._ports[nic], one.rate * fraction)

    def restore(self, nics: Sequence[int]) -> None:
        """Undoes all that may have been done to some NICs, and waits until their links are up.

        Raises:
            PartitionedError: a link is not up in time.
        """
        for nic in nics:
            self.raise_up(nic)
        self._await_links(nics)

    def raise_up(self, nic: int) -> None:
        """As `restore`, without waiting."""
        if nic in self._silenced:
            self.set_silent(nic, False)
        self.set_port(nic, True)
        self.set_link(nic, True)
        self.set_rate(nic, 1.0)

    def _await_links(self, nics: Sequence[int]) -> None:
        """Waits until the kernel sends over these NICs; a device that has just been set up drops what it gets."""
        limit = time.monotonic() + self.spec.limits.start_s
        waiting = list(nics)
        while waiting:
            waiting = [nic for nic in waiting if not self._sends(nic)]
            if waiting and time.monotonic() > limit:
                names = ", ".join(self.cluster.nics[nic].full_name for nic in waiting)
                raise PartitionedError(f"lab: waited {self.spec.limits.start_s:g} s for the links of {names}")
            time.sleep(0.01 if waiting else 0.0)

    def _sends(self, nic: int) -> bool:
        one = self.cluster.nics[nic]
        with self._netlink(self._servers[one.server]) as netlink:
            link = netlink.get_links(self._devices[nic])[0]
        return bool(link.get_attr("IFLA_OPERSTATE") == "UP")

    @contextlib.contextmanager
    def _netlink(self, namespace: int) -> "Iterator[IPRoute]":
        from pyroute2 import IPRoute

        with inside(namespace), IPRoute() as netlink:
            yield netlink

    def _build(self) -> None:
        self._switches = new_namespace()
        with inside(self._switches):
            self._apply_settings()
        for server in self.cluster.servers:
            self._servers.append(new_namespace())
            with inside(self._servers[-1]):
                self._apply_settings()
                self._counters.append(DeviceCounters())
            self._plug(server.index)
        self._await_links(range(len(self.cluster.nics)))

    def _apply_settings(self) -> None:
        for name, value in SETTINGS.items():
            set_sysctl(name, value)

    def _plug(self, server: int) -> None:
        """Makes the NICs of a server and plugs them into their switches."""
        with self._netlink(self._switches) as netlink:
            for n in self.cluster.servers[server].nics:
                self._plug_nic(netlink, self.cluster.nics[n])
        with self._netlink(self._servers[server]) as netlink:
            netlink.link("set", index=netlink.link_lookup(ifname="lo")[0], state="up")
            for n in self.cluster.servers[server].nics:
                nic = self.cluster.nics[n]
                self._devices[n] = netlink.link_lookup(ifname=nic.name)[0]
                self._limit(netlink, "add", self._devices[n], nic.rate)
                netlink.addr("add", index=self._devices[n], address=self.addresses[n], prefixlen=24)
                self._up(netlink, nic)

    def _plug_nic(self, netlink: "IPRoute", nic: Nic) -> None:
        port, mtu = f"p{nic.index}", self.spec.mtu_bytes
        peer = {"ifname": nic.name, "net_ns_fd": self._servers[nic.server], "mtu": mtu}
        netlink.link("add", ifname=port, kind="veth", peer=peer, mtu=mtu)
        index = netlink.link_lookup(ifname=port)[0]
        self._ports[nic.index] = index
        self._limit(netlink, "add", index, nic.rate)
        netlink.link("set", index=index, master=self._switch_of(netlink, nic), state="up")

    def _switch_of(self, netlink: "IPRoute", nic: Nic) -> int:
        """The device number of a NIC's switch, made with the first NIC."""
        name = f"rail{nic.rail}" if self.spec.fabric == "switch-per-rail" else "switch"
        found = netlink.link_lookup(ifname=name)
        if not found:
            netlink.link("add", ifname=name, kind="bridge", br_stp_state=0, br_mcast_snooping=0)
            found = netlink.link_lookup(ifname=name)
            netlink.link("set", index=found[0], mtu=self.spec.mtu_bytes, state="up")
        return int(found[0])

    def _up(self, netlink: "IPRoute", nic: Nic) -> None:
        """Sets a NIC up; with one switch for all, every NIC has a way to the subnets of the others."""
        index = self._devices[nic.index]
        netlink.link("set", index=index, state="up")
        if self.spec.fabric == "one-switch":
            netlink.route(
                "replace", dst="10.77.0.0/16", oif=index, scope=253, prefsrc=self.addresses[nic.index],
                priority=100 + nic.rail,
            )  # fmt: skip

    def _limit(self, netlink: "IPRoute", command: str, index: int, rate: float) -> None:
        """A token bucket of `rate` bytes per second."""
        netlink.tc(
            command, "tbf", index, _ROOT_QDISC,
            rate=round(rate), burst=self.spec.burst_bytes, limit=self.spec.queue_bytes,
        )  # fmt: skip


def _bytes_by_device(netlink: "IPRoute") -> dict[int, int]:
    """Bytes that have left the root queue of each device."""
    passed = {}
    for queue in netlink.get_qdiscs():
        basic = queue.get_nested("TCA_STATS2", "TCA_STATS_BASIC")
        if basic is not None:
            passed[int(queue["index"])] = int(basic["bytes"])
    return passed
