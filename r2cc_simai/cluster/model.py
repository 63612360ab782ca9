"""The cluster as the planners see it: numbered NICs and ranks, rates in bytes per second."""

import math
from dataclasses import dataclass, field
from functools import cached_property

from r2cc_simai.cluster.leaf_spine import Leaf, leaves_of
from r2cc_simai.cluster.spec import ClusterSpec, NicSpec, ProbesSpec, ServerSpec
from r2cc_simai.errors import InputError
from r2cc_simai.units import gbps_to_bytes_per_s


@dataclass(frozen=True)
class Nic:
    """A network interface. Rates are bytes per second on the wire, per direction."""

    index: int
    server: int
    name: str
    rail: int
    numa: int
    rate: float
    line_rate: float
    burst_bytes: float
    mtu_bytes: int
    header_bytes: float
    backups: tuple[int, ...]

    @property
    def full_name(self) -> str:
        """`server0.mlx5_2`."""
        return f"server{self.server}.{self.name}"

    @property
    def payload_rate(self) -> float:
        """Payload bytes per second: each packet of `mtu_bytes` carries one header."""
        return self.rate / (1 + self.header_bytes / self.mtu_bytes)


@dataclass(frozen=True)
class Server:
    """A server: its ranks (one per GPU) and its NICs, by number."""

    index: int
    ranks: tuple[int, ...]
    gpu_numa: tuple[int, ...]
    nics: tuple[int, ...]
    link_rate: float
    link_latency_s: float
    bridge_rate: float


@dataclass(frozen=True, eq=False)
class Cluster:
    """Servers, ranks and NICs of one cluster; `name` is what the user asked for (`h100x16`).

    Clusters compare by name and specification, of which all else is made.
    """

    name: str
    spec: ClusterSpec
    servers: tuple[Server, ...] = field(init=False)
    nics: tuple[Nic, ...] = field(init=False)

    def __post_init__(self) -> None:
        servers, nics = _expand(self.spec)
        object.__setattr__(self, "servers", servers)
        object.__setattr__(self, "nics", nics)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Cluster) and (self.name, self.spec) == (other.name, other.spec)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.spec.model_dump_json()))

    @cached_property
    def n_ranks(self) -> int:
        """GPUs of the whole cluster."""
        return self.servers[-1].ranks[-1] + 1

    @cached_property
    def rails_connected(self) -> bool:
        """Whether a NIC reaches the NICs of other rails."""
        return self.spec.fabric.kind != "switch-per-rail"

    @cached_property
    def draws_detection(self) -> bool:
        """Whether the time that the detection of a failure takes is drawn, by the number of the NIC."""
        detection = self.spec.failover.detection
        return isinstance(detection, ProbesSpec) and detection.phase == "drawn"

    @cached_property
    def keeps_rails(self) -> bool:
        """Whether direct sends stay on the rail of the receiver where they can: other rails are far, or not joined."""
        fabric = self.spec.fabric
        return fabric.kind == "switch-per-rail" or (fabric.kind == "leaf-spine" and fabric.rail_optimized is not False)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The leaf switches of a leaf-spine fabric; none where no switch limits anything."""
        return leaves_of(self.spec.fabric, self.nics)

    @cached_property
    def leaf_of_nic(self) -> tuple[int, ...]:
        """The leaf switch of every NIC, by number; -1 where there is none."""
        leaf = [-1] * len(self.nics)
        for one in self.leaves:
            for nic in one.nics:
                leaf[nic] = one.index
        return tuple(leaf)

    @property
    def resume_delay_s(self) -> float:
        """Seconds from a NIC's failure until both ends of a broken connection use another one (worst probe phase)."""
        failover = self.spec.failover
        return (failover.delay_ms + failover.notify_ms + failover.migrate_ms) * 1e-3

    @property
    def chunk_bytes(self) -> int:
        """Largest piece in which a section is pipelined."""
        return max(1, round(self.spec.transport.chunk_kib * 1024))

    def wire_factor(self, size: int) -> float:
        """Bytes moved for each payload byte of a collective: the low-latency protocol sends a flag with all data."""
        transport = self.spec.transport
        return transport.ll_wire_factor if size <= transport.ll_threshold_kib * 1024 else 1.0

    @cached_property
    def nic_by_name(self) -> dict[str, int]:
        """NIC numbers by full name (`server0.nic3`)."""
        return {nic.full_name: nic.index for nic in self.nics}

    @property
    def remarks(self) -> list[str]:
        """What a user may not have meant: NICs of one rail that disagree on the MTU, where the smaller one counts."""
        sizes: dict[int, set[int]] = {}
        for nic in self.nics:
            sizes.setdefault(nic.rail, set()).add(nic.mtu_bytes)
        return [
            f"rail {rail} of {self.name}: NICs with MTU {' and '.join(map(str, sorted(mtus)))} bytes; "
            "their connections use the smaller"
            for rail, mtus in sorted(sizes.items())
            if len(mtus) > 1
        ]

    def resuming_after(self, delay_s: float) -> "Cluster":
        """The same cluster with a fixed delay from a failure until both ends use another NIC."""
        times = {"detection_ms": delay_s * 1e3, "detection": None, "notify_ms": 0.0, "migrate_ms": 0.0}
        failover = self.spec.failover.model_copy(update=times)
        return Cluster(self.name, self.spec.model_copy(update={"failover": failover}))

    def zero_latency(self) -> "Cluster":
        """The same cluster with every latency at zero; rates, headers, bursts and chunks stay."""
        transport = self.spec.transport.model_copy(update={"base_latency_us": 0.0, "step_latency_us": 0.0})

        def still(server: ServerSpec) -> ServerSpec:
            link = server.intra_server.model_copy(update={"latency_us": 0.0})
            return server.model_copy(update={"intra_server": link})

        overrides = {key: still(server) for key, server in self.spec.overrides.items()}
        update = {"transport": transport, "server": still(self.spec.server), "overrides": overrides}
        return Cluster(self.name, self.spec.model_copy(update=update))


def _expand(spec: ClusterSpec) -> tuple[tuple[Server, ...], tuple[Nic, ...]]:
    known = {f"server{i}" for i in range(spec.servers)}
    for key in spec.overrides:
        if key not in known:
            raise InputError(f"overrides.{key}: no such server (server0 to server{spec.servers - 1})")
    servers: list[Server] = []
    nics: list[Nic] = []
    rank = 0
    for i in range(spec.servers):
        one = spec.overrides.get(f"server{i}", spec.server)
        first = len(nics)
        nics.extend(_nics_of(i, one, first))
        gpus = one.gpus
        numa = tuple(gpus.numa) if isinstance(gpus.numa, list) else (gpus.numa,) * gpus.count
        bridge = math.inf if one.host_bridge_gbps is None else gbps_to_bytes_per_s(one.host_bridge_gbps)
        servers.append(
            Server(
                index=i,
                ranks=tuple(range(rank, rank + gpus.count)),
                gpu_numa=numa,
                nics=tuple(range(first, len(nics))),
                link_rate=gbps_to_bytes_per_s(one.intra_server.rate_gbps),
                link_latency_s=one.intra_server.latency_us * 1e-6,
                bridge_rate=bridge,
            )
        )
        rank += gpus.count
    return tuple(servers), tuple(nics)


def _nics_of(server: int, spec: ServerSpec, first: int) -> list[Nic]:
    flat: list[tuple[str, NicSpec, int]] = []  # name, entry, position within the entry
    for entry in spec.nics:
        for k in range(entry.count):
            flat.append((entry.name or f"nic{len(flat)}", entry, k))
    names = [name for name, _, _ in flat]
    if len(set(names)) < len(names):
        raise InputError("server.nics: two NICs have the same name")
    numas = [entry.numa[k] if isinstance(entry.numa, list) else entry.numa for _, entry, k in flat]
    nics = []
    for j, (name, entry, k) in enumerate(flat):
        if entry.backups is None:
            # Nearest first: the NICs of the same NUMA node, then the others, each from the next one on.
            others = [(j + step) % len(flat) for step in range(1, len(flat))]
            order = sorted(others, key=lambda o, j=j: numas[o] != numas[j])  # type: ignore[misc]
        else:
            unknown = [b for b in entry.backups if b not in names or b == name]
            if unknown:
                choice = ", ".join(n for n in names if n != name)
                raise InputError(f"server.nics.{name}.backups: no other NIC {unknown[0]!r} ({choice})")
            order = [names.index(b) for b in entry.backups]
        slot = entry.rate_gbps if entry.pcie_gbps is None else min(entry.rate_gbps, entry.pcie_gbps)
        line = entry.line_rate_gbps or entry.rate_gbps
        if entry.pcie_gbps is not None:
            line = max(slot, min(line, entry.pcie_gbps))
        nics.append(
            Nic(
                index=first + j,
                server=server,
                name=name,
                rail=entry.rail + k if entry.rail is not None else j,
                numa=numas[j],
                rate=gbps_to_bytes_per_s(slot),
                line_rate=gbps_to_bytes_per_s(line),
                burst_bytes=entry.burst_kb * 1e3,
                mtu_bytes=entry.mtu_bytes,
                header_bytes=entry.header_bytes,
                backups=tuple(first + o for o in order),
            )
        )
    return nics
