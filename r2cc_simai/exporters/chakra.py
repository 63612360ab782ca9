"""A schedule as Chakra traces, one file per rank: a custom collective for ASTRA-sim.

A file is a GlobalMetadata message and then Node messages, each preceded by its length. A message of the schedule is a
COMM_SEND node on one rank and a COMM_RECV node on the other; a receive that is added to the rank's own data is followed
by a COMP node. Attributes are those that ASTRA-sim's feeder reads, with the types that it expects; it ignores the
others, which say what the bytes are: `buffer_offset` of a node, `operand` (the receive that a COMP node adds), and in
the metadata `n_ranks`, `rank` and `buffer_bytes`.

Message and field numbers are those of Chakra's et_def.proto, as in the package mlc-chakra 1.0.0.
"""

from pathlib import Path

import numpy as np

from r2cc_simai.chakra.encode import attribute, attribute_of
from r2cc_simai.chakra.schema import (
    ATTR_BOOL,
    ATTR_INT32,
    ATTR_INT64,
    ATTR_NAME,
    ATTR_UINT64,
    METADATA_ATTR,
    METADATA_VERSION,
    NODE_DATA_DEPS,
    NODE_ID,
    NODE_NAME,
    NODE_TYPE,
    VERSION,
    NodeType,
)
from r2cc_simai.chakra.wire import MessageColumn, bytes_field, varint, varint_field
from r2cc_simai.collectives.schedule import Int, Schedule
from r2cc_simai.errors import InputError
from r2cc_simai.exporters.messages import Messages, RankOps

TAG_LIMIT = 500_000_000  # ASTRA-sim's own collectives use tags from here on
BYTES_PER_OP = 4  # an addition of one float32


def chakra_path(prefix: Path, rank: int) -> Path:
    """The file of a rank."""
    return prefix.with_name(f"{prefix.name}.{rank}.et")


def write_chakra(schedule: Schedule, prefix: Path, piece_bytes: int | None = None) -> list[Path]:
    """Writes `PREFIX.<rank>.et` for every rank and returns the paths.

    Messages are the schedule's chunks, or pieces of at most `piece_bytes` of a section (0: whole sections).

    Raises:
        InputError: there are more messages than tags.
    """
    messages = Messages(schedule, piece_bytes)
    if messages.count > TAG_LIMIT:
        raise InputError(f"{messages.count} messages: ASTRA-sim has tags for {TAG_LIMIT}; write a larger --piece")
    paths = []
    for rank in range(schedule.n_ranks):
        paths.append(chakra_path(prefix, rank))
        paths[-1].write_bytes(_metadata(schedule, rank) + _nodes(messages.of_rank(rank)))
    return paths


def _metadata(schedule: Schedule, rank: int) -> bytes:
    raw = bytes_field(METADATA_VERSION, VERSION)
    for name, value in (("n_ranks", schedule.n_ranks), ("rank", rank), ("buffer_bytes", schedule.bytes)):
        attribute = bytes_field(ATTR_NAME, name.encode()) + varint_field(ATTR_INT64, value)
        raw += bytes_field(METADATA_ATTR, attribute)
    return varint(len(raw)) + raw


def _nodes(ops: RankOps) -> bytes:
    """All nodes of a rank. A receive that is added takes two ids, its own and that of its COMP node."""
    width = 1 + ops.reduce
    last = np.cumsum(width)  # ids start at 1; the last node of each operation
    first = last - width + 1
    count = int(last[-1]) if len(last) else 0
    column = MessageColumn(count)
    column.constant(varint(NODE_ID << 3))
    column.varint(np.arange(1, count + 1, dtype=np.int64))

    sends, adds, takes = (np.flatnonzero(which) for which in (ops.send, ops.reduce, ~ops.send & ~ops.reduce))
    receives = np.flatnonzero(~ops.send)
    comp = last[adds] - 1
    sent, received = first[sends] - 1, first[receives] - 1
    for kind, name, rows in ((NodeType.COMM_SEND, b"send", sent), (NodeType.COMM_RECV, b"recv", received)):
        column.constant(bytes_field(NODE_NAME, name) + varint_field(NODE_TYPE, kind), rows)
    column.constant(bytes_field(NODE_NAME, b"add") + varint_field(NODE_TYPE, NodeType.COMP), comp)

    _dependencies(column, ops, first, last, count)
    column.constant(attribute_of("is_cpu_op", varint_field(ATTR_BOOL, 0)))
    size = ops.hi - ops.lo
    for peer, picked in (("comm_dst", sends), ("comm_src", receives)):
        attribute(column, peer, ATTR_INT32, ops.peer[picked], first[picked] - 1)
    every = first - 1
    attribute(column, "comm_size", ATTR_INT64, size, every)
    attribute(column, "comm_tag", ATTR_INT32, ops.tag, every)
    for picked in (sends, takes):
        attribute(column, "buffer_offset", ATTR_INT64, ops.lo[picked], first[picked] - 1)
    attribute(column, "buffer_offset", ATTR_INT64, ops.lo[adds], comp)
    attribute(column, "operand", ATTR_INT64, first[adds], comp)
    attribute(column, "num_ops", ATTR_INT64, -(-size[adds] // BYTES_PER_OP), comp)
    attribute(column, "tensor_size", ATTR_UINT64, size[adds], comp)
    return column.to_bytes()


def _dependencies(column: MessageColumn, ops: RankOps, first: Int, last: Int, count: int) -> None:
    """An operation waits for the last node of others; its COMP node waits for its receive.

    Waiting with the receive would do for both, but a receive into a place of its own need not wait: only the addition
    touches the rank's bytes.
    """
    adds = np.flatnonzero(ops.reduce)
    waits = np.diff(ops.waits_offset)
    owner = np.repeat(last, waits)  # the node that touches the bytes: of a receive that is added, the COMP node
    node = np.concatenate((owner, last[adds]))
    target = np.concatenate((last[ops.waits], first[adds]))
    order = np.lexsort((target, node))
    column.packed(NODE_DATA_DEPS, np.bincount(node - 1, minlength=count).astype(np.int64), target[order])
