"""The cluster file: what a user writes. Every key names its unit."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from r2cc_simai.config import Strict

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class NicSpec(Strict):
    """One NIC, or `count` equal ones that are named nic0, nic1 and so on."""

    name: str | None = None
    count: Count = 1
    rate_gbps: Positive
    line_rate_gbps: Positive | None = None
    burst_kb: NotNegative = 0.0
    pcie_gbps: Positive | None = None
    mtu_bytes: Annotated[int, Field(ge=256, le=16384)] = 4096
    header_bytes: NotNegative = 62.0
    rail: Annotated[int, Field(ge=0)] | None = None
    numa: int | list[int] = 0
    backups: list[str] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "NicSpec":
        if self.name is not None and self.count > 1:
            raise ValueError("a NIC with a name cannot have a count above 1")
        if self.line_rate_gbps is not None and self.line_rate_gbps < self.rate_gbps:
            raise ValueError("line_rate_gbps must not be below rate_gbps")
        if isinstance(self.numa, list) and len(self.numa) != self.count:
            raise ValueError(f"numa: {len(self.numa)} entries for {self.count} NICs")
        return self


class GpuSpec(Strict):
    """The GPUs of a server; `numa` is one node for all, or one for each GPU."""

    count: Count
    model: str = ""
    numa: int | list[int] = 0

    @model_validator(mode="after")
    def _consistent(self) -> "GpuSpec":
        if isinstance(self.numa, list) and len(self.numa) != self.count:
            raise ValueError(f"numa: {len(self.numa)} entries for {self.count} GPUs")
        return self


class LinkSpec(Strict):
    """What joins the GPUs of one server, per GPU and direction."""

    kind: Literal["nvlink", "pcie"] = "nvlink"
    rate_gbps: Positive
    latency_us: NotNegative = 0.0


class ServerSpec(Strict):
    """One server. `host_bridge_gbps` caps all that crosses between its NUMA nodes, per direction."""

    gpus: GpuSpec
    nics: Annotated[list[NicSpec], Field(min_length=1)]
    intra_server: LinkSpec
    host_bridge_gbps: Positive | None = None


class FabricSpec(Strict):
    """`one-switch`: every NIC reaches every NIC; `switch-per-rail`: only those of its own rail.

    `leaf-spine`: NICs hang on leaf switches, which a spine joins. `servers_per_leaf` servers in a row are a pod. With
    `rail_optimized` a pod has a leaf for each rail, otherwise one leaf for all NICs of its servers. What a leaf sends
    to the spine, and gets from it, is limited to the rates of the NICs below it over `oversubscription`.
    """

    kind: Literal["one-switch", "switch-per-rail", "leaf-spine"]
    rail_optimized: bool | None = None
    servers_per_leaf: Count | None = None
    oversubscription: Positive | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "FabricSpec":
        keys = ("rail_optimized", "servers_per_leaf", "oversubscription")
        given = [key for key in keys if getattr(self, key) is not None]
        if self.kind != "leaf-spine" and given:
            raise ValueError(f"{given[0]} belongs to kind leaf-spine, not to {self.kind}")
        if self.kind == "leaf-spine" and self.servers_per_leaf is None:
            raise ValueError("leaf-spine needs servers_per_leaf")
        return self


class TransportSpec(Strict):
    """How collectives move: latency of the start and of each hop, chunks, window, low-latency protocol.

    `algorithms` are those that NCCL may choose from for an AllReduce, as NCCL_ALGO says it.
    """

    base_latency_us: NotNegative = 0.0
    step_latency_us: NotNegative = 0.0
    chunk_kib: Positive = 512.0
    window_chunks: Annotated[int, Field(ge=0)] = 8
    ll_threshold_kib: NotNegative = 0.0
    ll_wire_factor: Annotated[float, Field(ge=1)] = 2.0
    algorithms: Annotated[tuple[Literal["ring", "tree"], ...], Field(min_length=1)] = ("ring", "tree")


class RetryTimeoutSpec(Strict):
    """The transport repeats a packet `retries` times, each after `timeout_ms`, and then reports an error.

    InfiniBand: a timeout is 4.096 us * 2^n, and the adapter may take up to four times as long (InfiniBand
    Architecture Specification, volume 1, local ACK timeout).
    """

    mechanism: Literal["retry-timeout"]
    timeout_ms: Positive
    retries: Annotated[int, Field(ge=0, le=1000)] = 7

    @property
    def delay_ms(self) -> float:
        """Milliseconds from the failure until a sender knows: the first try and the repetitions time out."""
        return self.timeout_ms * (self.retries + 1)


class LinkEventSpec(Strict):
    """The driver reports a link that went down; a path that breaks without that is found by retry timeouts."""

    mechanism: Literal["link-event"]
    event_ms: NotNegative
    timeout_ms: Positive
    retries: Annotated[int, Field(ge=0, le=1000)] = 7

    @property
    def delay_ms(self) -> float:
        """Milliseconds from the failure of a NIC, port or cable until its own server knows."""
        return self.event_ms

    @property
    def silent_ms(self) -> float:
        """Milliseconds until a sender finds a break that no link reports."""
        return self.timeout_ms * (self.retries + 1)


class ProbesSpec(Strict):
    """Both ends probe each other every `interval_ms`; `misses` probes in a row without a reply within `timeout_ms`.

    Then three probes, as long as one timeout, say which part is to blame. `phase: worst` has the failure right after
    a probe, `phase: drawn` draws where in the interval it falls, from `seed`.
    """

    mechanism: Literal["probes"]
    interval_ms: Positive
    misses: Annotated[int, Field(ge=1, le=1000)] = 2
    timeout_ms: Positive
    phase: Literal["worst", "drawn"] = "worst"
    seed: int = 0

    @property
    def delay_ms(self) -> float:
        """Milliseconds from the failure until an end has its verdict, at the worst phase."""
        return self.misses * self.interval_ms + 2 * self.timeout_ms


DetectionSpec = Annotated[RetryTimeoutSpec | LinkEventSpec | ProbesSpec, Field(discriminator="mechanism")]


class FailoverSpec(Strict):
    """How long a broken connection takes to move, and to how many backups.

    Detection is either a fixed delay (`detection_ms`) or a mechanism (`detection`).
    """

    detection_ms: NotNegative | None = None
    detection: DetectionSpec | None = None
    notify_ms: NotNegative = 0.0
    migrate_ms: NotNegative = 0.0
    backups_per_nic: Count = 1

    @model_validator(mode="after")
    def _one_detection(self) -> "FailoverSpec":
        if (self.detection_ms is None) == (self.detection is None):
            raise ValueError("write either detection_ms or detection")
        return self

    @property
    def delay_ms(self) -> float:
        """Milliseconds from the failure of a NIC until one end knows."""
        if self.detection is not None:
            return self.detection.delay_ms
        assert self.detection_ms is not None
        return self.detection_ms


class CostSpec(Strict):
    """One-off costs around a change of plan."""

    first_collective_s: NotNegative = 0.0
    communicator_split_s: NotNegative = 0.0
    graph_capture_s: NotNegative = 0.0


class MatchSpec(Strict):
    """How a log of a real run is recognised as one of this cluster."""

    hosts: str


class ClusterSpec(Strict):
    """A cluster file. `overrides` replaces the description of single servers (`server3`)."""

    description: str = ""
    servers: Annotated[int, Field(ge=1, le=100_000)]
    server: ServerSpec
    overrides: dict[str, ServerSpec] = Field(default_factory=dict)
    fabric: FabricSpec
    transport: TransportSpec = TransportSpec()
    failover: FailoverSpec
    costs: CostSpec = CostSpec()
    match: MatchSpec | None = None
