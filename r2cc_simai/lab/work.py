"""What the lab's runner and its rank processes say to each other; everything here can be pickled.

One rank is one process, which runs `RankWorker(endpoint, control).serve()` (`lab.rank`) in its server's namespace.
`control` is a duplex `multiprocessing` connection. The order of a collective::

    rank    -> runner   Ready                       it listens on all its NICs
    runner  -> all      Prepare(collective, ...)    connections, backup connections, units: anew for every plan
    rank    -> runner   Prepared
    runner  -> all      Load(iteration)             the rank's data of this iteration
    rank    -> runner   Loaded
    runner  -> all      Start(at_s)                 once all have loaded
    rank    -> runner   Result
    runner  -> all      Stop

At any time a rank may send `Notice`, which the runner passes on to all ranks as `Learn` at once, and the runner may
send a `Learn` of its own. After recoveries the runner may go on with `Load` (the streams stay on the NICs to which they
have moved) or `Prepare` anew. All times are CLOCK_MONOTONIC seconds (`time.monotonic()`), the same in all namespaces.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from r2cc_simai.collectives.binding import Binding
from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.strategies.base import Plan, Request

DType = Literal["float32", "float16", "int32"]
ReduceOp = Literal["sum", "max", "avg"]
Cause = Literal["reset", "ack-timeout", "link-event", "notice"]

UNIT_BYTES = 128 * 1024


@dataclass(frozen=True, eq=False)
class Collective:
    """What all ranks run: a plan, the request that it answers (what the result must be), and how elements are reduced.

    `unit_bytes`: largest piece that is sent, acknowledged and repeated as a whole.
    """

    schedule: Schedule
    binding: Binding
    request: Request
    dtype: DType = "float32"
    op: ReduceOp = "sum"
    unit_bytes: int = UNIT_BYTES

    @staticmethod
    def of(
        plan: Plan, request: Request, dtype: DType = "float32", op: ReduceOp = "sum", unit_bytes: int = UNIT_BYTES
    ) -> "Collective":
        """The collective of a plan, without the engine's copies, which cannot be pickled."""
        return Collective(replace(plan.schedule), replace(plan.binding), request, dtype, op, unit_bytes)


@dataclass(frozen=True)
class Endpoint:
    """One rank's view of the world. NICs have the cluster's numbers.

    `addresses` and `rails` name all NICs of the lab. `devices` are the names of the own server's NICs inside the
    namespace; where a NIC has none its connections are bound to its address alone. Rank r listens on port
    `base_port + r` of each NIC of its server. `local` is the prefix of abstract AF_UNIX names for hops inside the
    server; it must be unique on the machine (it names nothing on disk). `backups`: per NIC, in order of preference.
    A pair of NICs on different rails is used only where `rails_connected`.

    `send_buffer_bytes` of each connection: what it keeps under way, about 5 ms of a NIC's rate. More makes units that
    others wait for queue behind those of other streams; less leaves a NIC idle until its rank gets CPU time.

    A connection is given up when nothing is heard of its receiver for `ack_timeout_s` while units are under way: at
    least four times the time of a unit on a NIC that all its streams share. `kernel_counts`: while the receiver's
    kernel still acknowledges its process is only slow, and gets more time; false where a proxy's kernel would answer. A
    rank that makes no progress at all for `stall_timeout_s` ends the iteration with an error that says what it waited
    for; so does one that cannot connect.
    """

    rank: int
    servers: tuple[int, ...]
    nic_servers: Mapping[int, int]
    rails: Mapping[int, int]
    addresses: Mapping[int, str]
    devices: Mapping[int, str]
    backups: Mapping[int, tuple[int, ...]]
    local: str
    base_port: int = 20000
    send_buffer_bytes: int = 64 * 1024
    rails_connected: bool = False
    ack_timeout_s: float = 0.1
    kernel_counts: bool = True
    stall_timeout_s: float = 20.0
    connect_timeout_s: float = 10.0

    @property
    def server(self) -> int:
        """The server of this rank."""
        return self.servers[self.rank]


@dataclass(frozen=True, eq=False)
class Prepare:
    """New connections and units for a collective; nothing is connected over the NICs that are `down`."""

    collective: Collective
    down: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Load:
    """The data of an iteration; they differ from iteration to iteration."""

    iteration: int


@dataclass(frozen=True)
class Start:
    """Go at this time."""

    at_s: float


@dataclass(frozen=True)
class Learn:
    """A NIC is down, or up again; what runs over one that is down moves at once."""

    nic: int
    up: bool


@dataclass(frozen=True)
class Stop:
    """The process ends."""


Command = Prepare | Load | Start | Learn | Stop


@dataclass(frozen=True)
class Ready:
    """The rank listens."""

    rank: int


@dataclass(frozen=True)
class Prepared:
    """All connections are made, in `seconds`; or why not."""

    rank: int
    seconds: float
    connections: int
    error: str | None = None


@dataclass(frozen=True)
class Loaded:
    """The data are in place; or why not."""

    rank: int
    error: str | None = None


@dataclass(frozen=True)
class Notice:
    """A NIC is down or up again as far as this rank can tell. `certain`: the rank's own link event.

    Otherwise a connection between `nic` and `peer_nic` was silent, and `nic` is the one that probes blame; without a
    third server to probe the rank cannot tell the two ends apart and sends a notice for each.
    """

    rank: int
    nic: int
    up: bool
    cause: Cause
    time_s: float
    certain: bool = True
    peer_nic: int = -1


@dataclass(frozen=True)
class Recovery:
    """A broken connection whose stream went on over another: (source NIC, destination NIC) before and after.

    It is told by the rank that sends. `resent_bytes` had been sent before, but had not become a whole unit there.
    """

    channel: int
    src: int
    dst: int
    old_nics: tuple[int, int]
    new_nics: tuple[int, int]
    cause: Cause
    detected_s: float
    resumed_s: float
    resent_bytes: int


@dataclass(frozen=True)
class Result:
    """One rank's iteration. It ends when all it receives is reduced and all it sends is acknowledged; checking every
    element comes after that. `cpu_s`: CPU seconds of the process from start to end. `error`: why it did not end, or
    what the first wrong elements look like. `told`: what else the rank's payload has to say (`lab.payload`).
    """

    rank: int
    iteration: int
    start_s: float
    end_s: float
    cpu_s: float
    wrong_elements: int
    recoveries: list[Recovery] = field(default_factory=list)
    error: str | None = None
    told: object = None

    @property
    def seconds(self) -> float:
        """From start to end."""
        return self.end_s - self.start_s


Report = Ready | Prepared | Loaded | Notice | Result
