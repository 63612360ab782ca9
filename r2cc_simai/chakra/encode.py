"""A program as the bytes of a trace, with gaps for what differs between the ranks that run it: groups and peers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.chakra import schema
from r2cc_simai.chakra.schema import NodeType
from r2cc_simai.chakra.wire import (
    LENGTH,
    Bytes,
    MessageColumn,
    Rows,
    bytes_field,
    padded_varint,
    varint,
    varint_field,
    varint_lengths,
)

if TYPE_CHECKING:
    from r2cc_simai.workloads.program import Program

Int = NDArray[np.int64]
FIRST_ID = 1
NANOSECONDS_PER_MICROSECOND = 1000


@dataclass(frozen=True, eq=False)
class Encoded:
    """The bytes of a trace; gaps of one width, for each role the bytes at which they begin."""

    data: Bytes
    group_digits: int
    peer_bytes: int
    groups: Mapping[int, Int]
    peers: Mapping[int, Int]

    def fill(self, group_of: Mapping[int, int], peer_of: Mapping[int, int]) -> Bytes:
        """The bytes for a rank, given its group numbers and peers by role; valid until the next call."""
        for role, places in self.groups.items():
            self._write(places, str(group_of[role]).encode(), self.group_digits)
        for role, places in self.peers.items():
            self._write(places, padded_varint(peer_of[role], self.peer_bytes), self.peer_bytes)
        return self.data

    def _write(self, places: Int, raw: bytes, width: int) -> None:
        if len(raw) != width:
            raise ValueError(f"{raw!r} does not fill {width} bytes")
        self.data[places] = np.frombuffer(raw, dtype=np.uint8)


def encode(program: "Program", n_ranks: int, group_digits: int) -> Encoded:
    """The trace of a program for a job of `n_ranks` whose group numbers have `group_digits` digits."""
    column = MessageColumn(len(program))
    roles = _Gaps(column)
    column.constant(varint(schema.NODE_ID << 3))
    column.varint(np.arange(FIRST_ID, FIRST_ID + len(program), dtype=np.int64))
    column.choice([bytes_field(schema.NODE_NAME, name.encode()) for name in program.names], program.name)
    column.constant(varint(schema.NODE_TYPE << 3))
    column.varint(program.kind)
    column.packed(schema.NODE_DATA_DEPS, np.diff(program.dep_offsets), program.deps + FIRST_ID)
    column.constant(attribute_of("is_cpu_op", varint_field(schema.ATTR_BOOL, 0)))
    _compute(column, program)
    messages = (program.kind == NodeType.COMM_SEND) | (program.kind == NodeType.COMM_RECV)
    collectives = program.kind == NodeType.COMM_COLL
    rows = np.flatnonzero(collectives)
    attribute(column, "comm_type", schema.ATTR_INT64, program.comm_type[rows], rows)
    rows = np.flatnonzero(collectives | messages)
    attribute(column, "comm_size", schema.ATTR_INT64, program.bytes[rows], rows)
    rows = np.flatnonzero(messages)
    attribute(column, "comm_tag", schema.ATTR_INT32, program.tag[rows], rows)
    roles.add_groups(program, np.flatnonzero(collectives), group_digits)
    peer_bytes = len(varint(max(n_ranks - 1, 0)))
    roles.add_peers(program, peer_bytes)
    body, slots = column.to_buffer()
    head = np.frombuffer(_metadata(), dtype=np.uint8)
    groups, peers = roles.places(slots, len(head), group_digits, peer_bytes)
    return Encoded(np.concatenate((head, body)), group_digits, peer_bytes, groups, peers)


def attribute(column: MessageColumn, name: str, kind: int, values: Int, rows: Rows) -> None:
    """Adds an attribute; its name and key are the same in every row, its length depends on the value."""
    head = bytes_field(schema.ATTR_NAME, name.encode()) + varint(kind << 3)
    column.constant(varint(schema.NODE_ATTR << 3 | LENGTH), rows)
    column.varint(len(head) + varint_lengths(values), rows)
    column.constant(head, rows)
    column.varint(values, rows)


def attribute_of(name: str, value: bytes) -> bytes:
    """An attribute whose value is given as a field."""
    return bytes_field(schema.NODE_ATTR, bytes_field(schema.ATTR_NAME, name.encode()) + value)


def whole_microseconds(nanoseconds: Int) -> Int:
    """Durations in whole microseconds whose sums from the start are off by half a microsecond at most."""
    ends = (np.cumsum(nanoseconds) + NANOSECONDS_PER_MICROSECOND // 2) // NANOSECONDS_PER_MICROSECOND
    return np.diff(ends, prepend=0)


def _metadata() -> bytes:
    raw = bytes_field(schema.METADATA_VERSION, schema.VERSION)
    return varint(len(raw)) + raw


def _compute(column: MessageColumn, program: "Program") -> None:
    rows = np.flatnonzero(program.kind == NodeType.COMP)
    micros = whole_microseconds(program.duration_ns[rows])
    some = micros > 0
    column.constant(varint(schema.NODE_DURATION_MICROS << 3), rows[some])
    column.varint(micros[some], rows[some])
    attribute(column, "duration_nanos", schema.ATTR_INT64, program.duration_ns[rows], rows)
    for name, kind, values in (
        ("num_ops", schema.ATTR_INT64, program.num_ops),
        ("tensor_size", schema.ATTR_UINT64, program.tensor_bytes),
    ):
        some_rows = rows[values[rows] > 0]
        attribute(column, name, kind, values[some_rows], some_rows)


class _Gaps:
    """Attributes whose values are left open, and the role that each gap is for."""

    def __init__(self, column: MessageColumn) -> None:
        self._column = column
        self._roles: list[Int] = []

    def add_groups(self, program: "Program", rows: Int, digits: int) -> None:
        head = bytes_field(schema.ATTR_NAME, b"pg_name") + varint(schema.ATTR_STRING << 3 | LENGTH) + varint(digits)
        self._add(head, digits, program.group[rows], rows)

    def add_peers(self, program: "Program", width: int) -> None:
        for kind, name in ((NodeType.COMM_SEND, b"comm_dst"), (NodeType.COMM_RECV, b"comm_src")):
            rows = np.flatnonzero(program.kind == kind)
            head = bytes_field(schema.ATTR_NAME, name) + varint(schema.ATTR_INT32 << 3)
            self._add(head, width, program.peer[rows], rows)

    def _add(self, head: bytes, width: int, roles: Int, rows: Int) -> None:
        if (roles < 0).any():
            raise ValueError("a communication node without a group or peer")
        self._column.constant(varint(schema.NODE_ATTR << 3 | LENGTH) + varint(len(head) + width) + head, rows)
        self._column.slot(width, rows)
        self._roles.append(roles)

    def places(self, slots: list[Int], shift: int, digits: int, width: int) -> tuple[dict[int, Int], dict[int, Int]]:
        """By role of groups, and of peers: the bytes of all its gaps, shape (gaps, width)."""
        groups, *peers = zip(self._roles, slots, strict=True)
        return _by_role([groups], shift, digits), _by_role(peers, shift, width)


def _by_role(gaps: list[tuple[Int, Int]], shift: int, width: int) -> dict[int, Int]:
    roles = np.concatenate([role for role, _ in gaps])
    begins = np.concatenate([begin for _, begin in gaps]) + shift
    return {int(role): begins[roles == role][:, None] + np.arange(width) for role in np.unique(roles)}
