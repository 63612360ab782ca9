"""What logs of real runs say, in bytes, seconds and bytes/s.

Servers are counted from 0 in the order in which a log lists its hosts, as in a cluster (`server0`..),
whatever number the host's own name carries.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FailedNic:
    """The NIC that a run lost or was told to treat as lost."""

    node: int
    nic: str


@dataclass(frozen=True)
class ColumnResult:
    """One half of an nccl-tests row: out-of-place or in-place. Bandwidths in bytes/s, as printed."""

    time_s: float
    algbw: float
    busbw: float
    wrong: int | None
    """Wrong elements; None where the run did not check them."""


@dataclass(frozen=True)
class SizeResult:
    """One row of nccl-tests: a message size and its two columns, of which at least one is there."""

    bytes: int
    count: int
    dtype: str
    redop: str
    root: int
    """Rank of the root; -1 for a collective without one."""
    out_of_place: ColumnResult | None
    in_place: ColumnResult | None

    @property
    def columns(self) -> tuple[ColumnResult, ...]:
        """The columns that hold a result."""
        return tuple(column for column in (self.out_of_place, self.in_place) if column is not None)

    @property
    def best(self) -> ColumnResult:
        """The faster column."""
        return min(self.columns, key=lambda column: column.time_s)

    @property
    def time_s(self) -> float:
        """Time of the faster column."""
        return self.best.time_s

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth of the faster column, bytes/s."""
        return self.best.algbw

    @property
    def busbw(self) -> float:
        """Bus bandwidth of the faster column, bytes/s."""
        return self.best.busbw

    @property
    def wrong(self) -> int:
        """Wrong elements in both columns together."""
        return sum(column.wrong or 0 for column in self.columns)


@dataclass(frozen=True)
class Cut:
    """The iteration during which a NIC went down. Times count from the start of the run."""

    nic: str
    iteration: int
    rx_bytes: int
    """Received on the NIC in this iteration before the cut, headers included."""
    full_rx_bytes: int
    """Received on the NIC in an iteration without a failure, headers included."""
    time_s: float
    """How long this iteration took."""
    command_s: tuple[float, float]
    """When the command that cuts the NIC began and ended."""
    window_s: tuple[float, float]
    """When the iteration began and ended."""
    later_strategy: str
    """Strategy of the iterations after the cut (of the re-captured graph, where there is one)."""


@dataclass(frozen=True)
class Iteration:
    """One iteration: its number from 1, its time and what each NIC of server 0 received in it."""

    number: int
    time_s: float
    rx_bytes: Mapping[str, int]

    @property
    def total_rx_bytes(self) -> int:
        """Received on all NICs of the server, headers included."""
        return sum(self.rx_bytes.values())


@dataclass(frozen=True)
class IterationSeries:
    """Equal collectives one after another, one of which a failure hits."""

    bytes: int
    iterations: tuple[Iteration, ...]
    cut: Cut

    @property
    def healthy(self) -> tuple[Iteration, ...]:
        """The iterations before the cut; the first one also pays the start-up costs."""
        return self.iterations[: self.cut.iteration - 1]

    @property
    def hit(self) -> Iteration:
        """The iteration during which the NIC went down."""
        return self.iterations[self.cut.iteration - 1]

    @property
    def later(self) -> tuple[Iteration, ...]:
        """The iterations after the cut; they run `cut.later_strategy`."""
        return self.iterations[self.cut.iteration :]


@dataclass(frozen=True)
class GraphRow:
    """A CUDA graph replayed again and again."""

    name: str
    strategy: str
    steady_time_s: float
    recapture_s: float | None
    """Cost of capturing it anew; None for the graph of before the failure."""


@dataclass(frozen=True)
class GraphTable:
    """Replayed CUDA graphs across a failure, and the iteration that the failure hit in each run."""

    bytes: int
    rows: tuple[GraphRow, ...]
    cuts: tuple[Cut, ...]


@dataclass(frozen=True)
class Measurement:
    """What one run measured, and on what."""

    source: str
    """`file:line`, and the section's heading where the file has sections."""
    collective: str
    """Name in nccl-tests without `_perf`: `all_reduce`, `all_gather`, .."""
    mode: str
    """Strategy spec that the run corresponds to; `nccl` when healthy."""
    host_names: tuple[str, ...] = ()
    nic_names: tuple[str, ...] = ()
    n_nodes: int | None = None
    n_ranks: int | None = None
    failed: FailedNic | None = None
    failures: tuple[str, ...] = ()
    """Of a simulated run: its failures, as `--fail` takes them."""
    cluster: str = ""
    """Of a simulated run: its cluster, as `--cluster` takes it."""
    sizes: tuple[SizeResult, ...] = ()
    iterations: IterationSeries | None = None
    graph: GraphTable | None = None
    section: str = ""
    warnings: tuple[str, ...] = ()
    """What makes the figures doubtful, one line each: wrong elements, a failed exit, .."""
