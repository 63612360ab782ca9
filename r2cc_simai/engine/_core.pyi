"""Types of the compiled engine. Seconds, bytes, bytes per second."""

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

class Nic:
    def __init__(
        self,
        *,
        name: str,
        server: int,
        rail: int,
        numa: int,
        rate: float,
        line_rate: float,
        burst: float,
        mtu: float,
        header: float,
        backups: Sequence[int],
        leaf: int = -1,
    ) -> None: ...

class Cluster:
    def __init__(
        self,
        *,
        nics: Sequence[Nic],
        rank_server: Ints,
        rank_numa: Ints,
        rank_link_rate: Doubles,
        rank_link_latency_s: Doubles,
        bridge_rate: Sequence[float],
        rails_connected: bool,
        backups_per_nic: int,
        base_latency_s: float,
        net_latency_s: float,
        resume_delay_s: float,
        window_chunks: int,
        uplink_rate: Sequence[float] = (),
    ) -> None: ...

class Schedule:
    def __init__(
        self,
        *,
        n_ranks: int,
        bytes: int,
        wire_factor: float,
        route_offsets: Ints,
        route_ranks: Ints,
        channel: Ints,
        route: Ints,
        cyclic: Ints,
        reduce_hops: Ints,
        copy_hops: Ints,
        chunks: Ints,
        weight: Doubles,
        section_offsets: Ints,
        lo: Ints,
        hi: Ints,
        start: Ints,
        after_offsets: Ints,
        after: Ints,
    ) -> None: ...

class Binding:
    def __init__(
        self, *, channel: Ints, src: Ints, dst: Ints, src_nic: Ints, dst_nic: Ints, share: Doubles
    ) -> None: ...
    def __len__(self) -> int: ...
    def rows(self) -> list[tuple[int, int, int, int, int, float]]: ...

class Status(Enum):
    DONE = 0
    ABORTED = 1
    PARTITIONED = 2
    UNFINISHED = 3

class NicEvent:
    nic: int
    fraction: float
    time_s: float
    at_bytes: float
    def __init__(self, *, nic: int, fraction: float, time_s: float = 0.0, at_bytes: float = -1.0) -> None: ...

class Broken:
    time_s: float
    nic: int
    hops: list[int]

class Reaction:
    def __init__(self, *, rebind: Binding | None = None, abort: str | None = None) -> None: ...

class LogEntry:
    time_s: float
    what: str
    nic: int
    value: float

class Outcome:
    status: Status
    reason: str
    elapsed_s: float
    out_payload: list[float]
    in_payload: list[float]
    out_wire: list[float]
    in_wire: list[float]
    pass_start_s: list[float]
    pass_end_s: list[float]
    event_time_s: list[float]
    log: list[LogEntry]
    steps: int

def run_flow(
    cluster: Cluster,
    schedule: Schedule,
    binding: Binding,
    events: Sequence[NicEvent],
    react: Callable[[Broken], Reaction] | None = None,
    *,
    max_time_s: float = 1e6,
    max_steps: int = 2_000_000_000,
) -> Outcome: ...
def run_chunk(
    cluster: Cluster,
    schedule: Schedule,
    binding: Binding,
    events: Sequence[NicEvent],
    react: Callable[[Broken], Reaction] | None = None,
    *,
    provenance: Provenance | None = None,
    drop_duplicates: bool = True,
    max_time_s: float = 1e6,
    max_steps: int = 2_000_000_000,
) -> Outcome: ...

class Provenance:
    def __init__(self, schedule: Schedule) -> None: ...
    def cuts(self) -> NDArray[np.int64]: ...
    def once(self) -> NDArray[np.uint64]: ...
    def more(self) -> NDArray[np.uint64]: ...

def migrate(cluster: Cluster, binding: Binding, known_down: Sequence[bool]) -> Binding: ...
def max_min(
    capacity: Sequence[float],
    *,
    offsets: Ints,
    ports: Ints,
    amounts: Doubles,
    weights: Doubles,
    caps: Doubles,
) -> list[float]: ...

class Past:
    def __init__(self, *, ended: NDArray[np.bool_], nodes: Ints, start_s: Doubles, end_s: Doubles) -> None: ...
    @property
    def bytes(self) -> int: ...

class RankClass:
    def __init__(
        self,
        *,
        trace: Trace,
        rank: int,
        count: float,
        groups: Ints,
        peers: Ints,
        peer_ranks: Ints,
        recorded: bool = False,
        past: Past | None = None,
        resume_s: float = 0.0,
    ) -> None: ...

class Roofline:
    def __init__(self, *, flops_per_s: float, bytes_per_s: float, floor_s: float = 0.0) -> None: ...

class GroupClass:
    def __init__(self, *, name: str, size: int, copies: float, held: bool = False) -> None: ...

class PlanRequest:
    group: int
    src: int
    dst: int
    comm_type: int
    bytes: int
    epoch: int

class JobOutcome:
    network: Outcome
    nodes: int
    collectives: int
    def classes(self) -> Doubles: ...
    def spans(self) -> Doubles: ...
    def quiet_points(self) -> tuple[Doubles, Doubles, Doubles]: ...

def run_job(
    cluster: Cluster,
    *,
    ranks: Sequence[RankClass],
    groups: Sequence[GroupClass],
    fold_representative: Ints,
    fold_count: Doubles,
    known_s: Sequence[float],
    events: Sequence[NicEvent],
    planner: Callable[[PlanRequest], tuple[Schedule, Binding, float, int]],
    react: Callable[[Broken, int], Reaction] | None = None,
    roofline: Roofline | None = None,
    quiet_nics: Sequence[int] | None = None,
    max_time_s: float = 1e6,
    max_steps: int = 2_000_000_000,
) -> JobOutcome: ...

Octets = NDArray[np.uint8]

class TraceFinding:
    severity: str
    kind: str
    reason: str
    node: int
    position: int
    offset: int
    more: int

class Trace:
    names: list[str]
    groups: list[str]
    peers: list[int]
    id: Ints
    type: Ints
    comm_type: Ints
    on_cpu: NDArray[np.bool_]
    name: Ints
    group: Ints
    peer: Ints
    bytes: Ints
    tag: Ints
    num_ops: Ints
    tensor_bytes: Ints
    duration_s: Doubles
    dep_offsets: Ints
    deps: Ints
    def __len__(self) -> int: ...

class TraceReading:
    trace: Trace
    version: str
    findings: list[TraceFinding]
    errors: int
    digest: bytes
    collectives: list[int]
    sends: list[int]
    receives: list[int]

class TraceError(Exception): ...

def read_trace(file: Octets) -> TraceReading: ...
def critical_path(trace: Trace) -> tuple[float, Ints]: ...
def metadata_json(file: Octets) -> tuple[bytes, int]: ...
def nodes_json(file: Octets, at: int, limit: int) -> tuple[bytes, int]: ...
def port_loads(cluster: Cluster, schedule: Schedule, binding: Binding) -> tuple[Ints, Ints, Doubles]: ...
