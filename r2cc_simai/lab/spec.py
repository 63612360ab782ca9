"""The lab file: what is emulated, what runs on it, what is cut, and how often. Every key names its unit."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import ClusterSpec
from r2cc_simai.config import Strict, read_yaml, validated
from r2cc_simai.errors import InputError
from r2cc_simai.paths import labs_dir
from r2cc_simai.units import parse_size

if TYPE_CHECKING:
    from r2cc_simai.lab.cuts import Cut
    from r2cc_simai.strategies.base import Strategy

HEALTHY = "ideal"
"""The strategy that runs where nothing fails."""

_BYTES = re.compile(r"bytes:([\d.]+\w*)")

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=64)]

IP_HEADER_BYTES = 52  # IPv4 20, TCP 20 and its time stamps 12: the part of the MTU that is no payload
ETHERNET_BYTES = 14  # beside the MTU, and counted by the rate limit
MOST_RANKS = 64  # processes
LINE_RATE_GBPS = 20.0  # of a veth pair, while its token bucket lets a burst pass
LOCAL_RATE_GBPS = 32.0  # of a socket pair between two ranks of a server
LINK_EVENT_MS = 1.0  # from a link that goes down until its server's kernel has told the ranks


class LabNic(Strict):
    """One NIC of every server, or `count` equal ones that are named nic0, nic1 and so on."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,13}$")] | None = None
    count: Annotated[int, Field(ge=1, le=16)] = 1
    rate_mbps: Annotated[float, Field(ge=1, le=10_000)]
    backups: list[str] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "LabNic":
        if self.name is not None and self.count > 1:
            raise ValueError("a NIC with a name cannot have a count above 1")
        return self


class LabFailure(Strict):
    """A named failure pattern: a script of `component[=kind]@when[..until]` (see `cuts`).

    It runs with the lab's strategies, or with its own ones.
    """

    name: Annotated[str, Field(min_length=1, pattern=r"^[^/]+$")]
    script: Annotated[list[str], Field(min_length=1)]
    strategies: Annotated[list[str], Field(min_length=1)] | None = None


class Limits(Strict):
    """How long the lab waits before it gives up, in seconds; a collective `factor` times as long as it should take.

    `turn_s`: for another lab on the machine to end.
    """

    turn_s: Positive = 1800.0
    start_s: Positive = 20.0
    collective_s: Positive = 10.0
    factor: Positive = 5.0


class Tolerances(Strict):
    """How far the simulation may be from the lab, in percent."""

    time_pct: Positive = 2.0
    ratio_pct: Positive = 1.0
    bytes_pct: Positive = 0.5
    cut_pct: Positive = 5.0
    cut_bytes_pct: Positive = 5.0


class LabSpec(Strict):
    """A lab file.

    Every server has `ranks_per_server` ranks and all of `nics`; the k-th NICs of all servers are on one rail.
    `unit_kib` is the piece in which a section is pipelined. A silent failure is found when acknowledgements make no
    progress for `ack_timeout_ms`.
    """

    description: str = ""
    servers: Annotated[int, Field(ge=2, le=64)]
    ranks_per_server: Count
    nics: Annotated[list[LabNic], Field(min_length=1)]
    fabric: Literal["switch-per-rail", "one-switch"] = "switch-per-rail"
    mtu_bytes: Annotated[int, Field(ge=1280, le=9000)] = 9000
    burst_kib: Annotated[float, Field(ge=64, le=4096)] = 128.0
    queue_kib: Annotated[float, Field(ge=256, le=65536)] = 8192.0
    unit_kib: Annotated[float, Field(ge=4, le=4096)] = 128.0
    ack_timeout_ms: Annotated[float, Field(ge=1, le=10_000)] = 200.0
    collective: str = "all_reduce"
    bytes: Annotated[int, Field(ge=4096, le=2**30)]
    small_bytes: Annotated[int, Field(ge=256, le=65536)] = 4096
    datatype: Literal["float32", "float16", "int32"] = "float32"
    reduction: Literal["sum", "max", "avg"] = "sum"
    strategies: Annotated[list[str], Field(min_length=1)]
    failures: list[LabFailure] = Field(default_factory=list)
    repetitions: Annotated[int, Field(ge=1, le=100)] = 5
    warmup: Annotated[int, Field(ge=0, le=20)] = 1
    limits: Limits = Limits()
    tolerances: Tolerances = Tolerances()

    @model_validator(mode="after")
    def _consistent(self) -> "LabSpec":
        ranks = self.servers * self.ranks_per_server
        if ranks > MOST_RANKS:
            raise ValueError(f"{ranks} ranks: a lab has at most {MOST_RANKS}, each a process")
        if self.bytes % self.element_bytes:
            raise ValueError(f"bytes: {self.bytes} is no whole number of {self.datatype} elements")
        names = [failure.name for failure in self.failures]
        if len(set(names)) < len(names):
            raise ValueError("failures: two of them have the same name")
        return self

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return 2 if self.datatype == "float16" else 4

    @property
    def burst_bytes(self) -> int:
        """Bytes that a rate limit lets pass at once."""
        return round(self.burst_kib * 1024)

    @property
    def queue_bytes(self) -> int:
        """Bytes that wait before a rate limit at most; more are dropped."""
        return round(self.queue_kib * 1024)

    def cluster(self, name: str) -> Cluster:
        """The lab as planners and backends see it.

        `mtu_bytes` of the cluster is what a full packet carries, `header_bytes` all around it that the rate limit
        counts, so that its payload rate is that of the emulated NIC. A link that goes down is known after
        `LINK_EVENT_MS`, a silent failure after the acknowledgement timeout.
        """
        payload = self.mtu_bytes - IP_HEADER_BYTES
        common: dict[str, Any] = {
            "mtu_bytes": payload,
            "header_bytes": IP_HEADER_BYTES + ETHERNET_BYTES,
            "line_rate_gbps": LINE_RATE_GBPS,
            "burst_kb": self.burst_bytes * 1e-3,
        }
        nics = [
            {"name": nic.name, "count": nic.count, "rate_gbps": nic.rate_mbps * 1e-3, "backups": nic.backups} | common
            for nic in self.nics
        ]
        link = {"kind": "pcie", "rate_gbps": LOCAL_RATE_GBPS, "latency_us": 0.0}
        detection = {
            "mechanism": "link-event",
            "event_ms": LINK_EVENT_MS,
            "timeout_ms": self.ack_timeout_ms,
            "retries": 0,
        }
        data: dict[str, Any] = {
            "description": self.description,
            "servers": self.servers,
            "server": {"gpus": {"count": self.ranks_per_server}, "nics": nics, "intra_server": link},
            "fabric": {"kind": self.fabric},
            "transport": {"chunk_kib": self.unit_kib, "algorithms": ["ring"]},
            "failover": {"detection": detection},
        }
        try:
            return Cluster(name, validated(ClusterSpec, data, name))
        except InputError as error:
            raise InputError(f"{name}: {error}") from None


@dataclass(frozen=True)
class LabCase:
    """A strategy under a failure pattern; `failure` is the pattern's name, "none" where nothing fails.

    `bytes`: of the buffer, where that is not the lab's.
    """

    strategy: str
    failure: str
    script: tuple[str, ...]
    bytes: int | None = None

    @property
    def key(self) -> str:
        """What names it in messages and in the run folder."""
        return f"{self.strategy} | {self.failure}"

    @property
    def pattern(self) -> str:
        """Its script in one line, as rows name it: counts of bytes are whole numbers."""
        text = " ".join(self.script) or "none"
        return _BYTES.sub(lambda found: f"bytes:{parse_size(found[1])}", text)

    @property
    def file_name(self) -> str:
        """Of its raw record."""
        return re.sub(r"[^A-Za-z0-9.]+", "-", f"{self.strategy}.{self.failure}").strip("-") + ".json"

    def cuts(self, cluster: Cluster) -> "tuple[Cut, ...]":
        """What its script does."""
        from r2cc_simai.lab.cuts import parse_script

        return parse_script(self.script, cluster)

    def parsed_strategy(self) -> "Strategy":
        """The strategy with its options."""
        from r2cc_simai.strategies.registry import parse_strategy

        return parse_strategy(self.strategy)


def cases_of(spec: LabSpec) -> list[LabCase]:
    """The healthy lab first, which is what all others are compared with, also with a buffer so small that its time is
    that of its steps; then every failure with every strategy."""
    healthy = [LabCase(HEALTHY, "none", ()), LabCase(HEALTHY, "none, small buffer", (), spec.small_bytes)]
    return healthy + [
        LabCase(strategy, failure.name, tuple(failure.script))
        for failure in spec.failures
        for strategy in failure.strategies or spec.strategies
    ]


def preset_names() -> list[str]:
    """Names of the shipped labs, sorted."""
    return sorted(path.stem for path in labs_dir().glob("*.yml"))


def load_lab(name: str) -> tuple[str, LabSpec]:
    """The lab `name`, a preset or a YAML file: its short name and what it says, strategies and failures checked.

    Raises:
        InputError: there is no such preset or file, or the file is wrong.
    """
    path = labs_dir() / f"{name}.yml" if name in preset_names() else Path(name)
    if path.suffix not in (".yml", ".yaml") and not path.is_file():
        raise InputError(f"{name!r}: no such lab; write a preset ({', '.join(preset_names())}) or a .yml file")
    return path.stem, checked_lab(path.stem, read_yaml(path), str(path))


def checked_lab(name: str, data: dict[str, Any], source: str) -> LabSpec:
    """The lab that `data` describes, with strategies and failures that exist.

    Raises:
        InputError: one line that names `source`, the key and what would be right.
    """
    from r2cc_simai.collectives.operations import operation
    from r2cc_simai.strategies.registry import parse_strategy

    spec = validated(LabSpec, data, source)
    try:
        cluster = spec.cluster(name)
        operation(spec.collective)
        for strategy in spec.strategies:
            parse_strategy(strategy)
        for case in cases_of(spec):
            case.parsed_strategy()
            case.cuts(cluster)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return spec
