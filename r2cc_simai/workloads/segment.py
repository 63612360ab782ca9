"""A segment: the nodes of one pass of one micro-batch through one model chunk, built once and repeated by the schedule.

The builder follows a GPU's compute stream. `stream` is what the next compute node waits for: the compute node before
it and the collectives that the stream waits for. Nodes of other segments are named by the three marks below; the
assembler of a program replaces each by the nodes that it stands for there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.workloads.program import NONE, Int

STREAM = -1
"""What the compute stream waits for where the segment starts."""
ONE_BEFORE = -2
"""The same where the segment before this one starts: receives are posted one segment ahead."""
PENDING = -3
"""All nodes that earlier segments left pending (gradients on their way)."""

COLUMNS = ("name", "kind", "comm_type", "duration_ns", "num_ops", "tensor_bytes", "bytes", "group", "peer", "tag")


@dataclass(frozen=True, eq=False)
class Segment:
    """Columns as in Program; `edges` are pairs (node, node or mark it waits for)."""

    columns: dict[str, Int]
    edges: Int
    """Shape (edges, 2)."""
    tail: tuple[int, ...]
    """What the compute stream waits for behind the segment; the mark STREAM where the segment added nothing."""
    pending: tuple[int, ...]
    """Collectives that only the end of the iteration waits for."""
    recomputed_ops: int
    """FLOPs of the segment that repeat earlier ones."""

    def __len__(self) -> int:
        return len(self.columns["kind"])


@dataclass(frozen=True)
class Cost:
    """Of a compute node."""

    duration_ns: int
    flops: int
    bytes: int

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(
            max(0, self.duration_ns - other.duration_ns),
            max(0, self.flops - other.flops),
            max(0, self.bytes - other.bytes),
        )

    def share(self, part: int, parts: int) -> "Cost":
        """One of `parts` parts that add up to the whole exactly."""
        cut = [
            whole * (part + 1) // parts - whole * part // parts for whole in (self.duration_ns, self.flops, self.bytes)
        ]
        return Cost(*cut)


@dataclass
class Names:
    """Distinct names of a program and their numbers."""

    known: dict[str, int] = field(default_factory=dict)

    def __call__(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known))


class SegmentBuilder:
    """Adds nodes one after the other."""

    def __init__(self, names: Names, roles: tuple[str, ...]) -> None:
        self.stream: tuple[int, ...] = (STREAM,)
        self._names = names
        self._roles = {kind: k for k, kind in enumerate(roles)}
        self._rows: list[tuple[int, ...]] = []
        self._edges: list[tuple[int, int]] = []
        self._pending: list[int] = []
        self._recomputed = 0

    def compute(self, name: str, cost: Cost, *, again: bool = False) -> None:
        """A compute node at the end of the stream; none where there is nothing to do. `again`: it is recomputation."""
        if cost == Cost(0, 0, 0):
            return
        self._recomputed += cost.flops if again else 0
        row = (NodeType.COMP, NONE, cost.duration_ns, cost.flops, cost.bytes, 0, NONE, NONE, NONE)
        self.stream = (self._add(name, row, self.stream),)

    def start(self, name: str, comm_type: CommType, kind: str, size: int, after: Iterable[int] = ()) -> tuple[int, ...]:
        """A collective of `size` bytes on this rank's group of a kind, beside the stream.

        Args:
            name, comm_type, kind, size: as recorded in the node.
            after: what it waits for besides the stream.

        Returns:
            What to wait for; nothing where the group has one rank and so no collective is needed.
        """
        if kind not in self._roles:
            return ()
        row = (NodeType.COMM_COLL, comm_type, 0, 0, 0, size, self._roles[kind], NONE, NONE)
        return (self._add(name, row, (*self.stream, *after)),)

    def collective(self, name: str, comm_type: CommType, kind: str, size: int) -> None:
        """A collective that the stream waits for."""
        self.stream = self.start(name, comm_type, kind, size) or self.stream

    def send(self, name: str, peer: int, size: int, tag: int, after: Iterable[int] | None = None) -> None:
        """A message to a peer; it waits for the stream, or for `after` instead."""
        row = (NodeType.COMM_SEND, NONE, 0, 0, 0, size, NONE, peer, tag)
        self._add(name, row, self.stream if after is None else after)

    def receive(self, name: str, peer: int, size: int, tag: int, after: Iterable[int] | None = None) -> tuple[int, ...]:
        """A message from a peer, posted with the stream or after `after`; returns what to wait for."""
        row = (NodeType.COMM_RECV, NONE, 0, 0, 0, size, NONE, peer, tag)
        return (self._add(name, row, self.stream if after is None else after),)

    def wait(self, handles: Iterable[int]) -> None:
        """Makes the stream wait for nodes beside it."""
        self.stream = tuple(dict.fromkeys((*self.stream, *handles)))

    def leave_pending(self, handles: Iterable[int]) -> None:
        """Leaves nodes to the end of the iteration, which waits for them."""
        self._pending += handles

    def build(self) -> Segment:
        """The segment."""
        table = np.array(self._rows, dtype=np.int64).reshape(-1, len(COLUMNS))
        return Segment(
            columns={name: table[:, k].copy() for k, name in enumerate(COLUMNS)},
            edges=np.array(self._edges, dtype=np.int64).reshape(-1, 2),
            tail=self.stream,
            pending=tuple(self._pending),
            recomputed_ops=self._recomputed,
        )

    def _add(self, name: str, row: tuple[int, ...], after: Iterable[int]) -> int:
        node = len(self._rows)
        self._rows.append((self._names(name), *row))
        self._edges += [(node, other) for other in dict.fromkeys(after)]
        return node
