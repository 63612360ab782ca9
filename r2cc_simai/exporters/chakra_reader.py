"""Reading Chakra traces of a custom collective back as a program that can be proven.

Everything that ASTRA-sim passes over in silence is an error here: ids that occur twice, dependencies that do not exist,
sends without a receive, files that end too early.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from r2cc_simai.chakra import schema
from r2cc_simai.chakra.schema import NodeType
from r2cc_simai.chakra.wire import (
    FIXED32,
    FIXED64,
    VARINT,
    WireError,
    bytes_field,
    read_fields,
    read_list,
    read_messages,
    read_varint,
    varint,
    varint_field,
)
from r2cc_simai.errors import InputError
from r2cc_simai.exporters import chakra
from r2cc_simai.exporters.program import Program

_INTEGERS = {7, 9, 11, 13, 27}  # int32, int64, uint32, uint64, bool
_ZIGZAG = {15, 17}  # sint32, sint64
_FIXED = {19: False, 21: False, 23: True, 25: True}  # fixed32, fixed64, sfixed32, sfixed64: signed?
_TYPES: dict[int, str] = {NodeType.COMP: "COMP", NodeType.COMM_SEND: "COMM_SEND", NodeType.COMM_RECV: "COMM_RECV"}
_NEEDED: dict[int, tuple[str, ...]] = {
    NodeType.COMM_SEND: ("comm_dst", "comm_size", "comm_tag", "buffer_offset"),
    NodeType.COMM_RECV: ("comm_src", "comm_size", "comm_tag"),
    NodeType.COMP: ("operand", "tensor_size", "buffer_offset"),
}
# comm_size of a COMP node is its tensor_size; the peer of a message is its comm_dst or comm_src.
_USED = {name for names in _NEEDED.values() for name in names} | {"buffer_offset"}
# The usual bytes of an attribute up to its value, to its name: what the reader meets millions of times.
_HEADS = {
    bytes_field(schema.ATTR_NAME, name.encode()) + varint(kind << 3): name for name in _USED for kind in (7, 9, 11, 13)
}
_ON_GPU = bytes_field(schema.ATTR_NAME, b"is_cpu_op") + varint_field(schema.ATTR_BOOL, 0)
Node = tuple[int, int, tuple[int, ...], dict[str, int]]  # id, type, dependencies, attributes


@dataclass
class _Rank:
    """The nodes of one file, as columns. `number` tells where an id stands."""

    path: Path
    attributes: dict[str, int] = field(default_factory=dict)
    id: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    peer: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    tag: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)  # -1: the receive is set aside
    operand: list[int] = field(default_factory=list)
    deps: list[tuple[int, ...]] = field(default_factory=list)
    number: dict[int, int] = field(default_factory=dict)

    def node(self, number: int) -> str:
        return f"{self.path.name}: node {self.id[number]}"


def read_chakra(prefix: Path) -> Program:
    """The program of `PREFIX.<rank>.et` for all ranks that the first file's metadata count.

    Raises:
        InputError: a file is missing or broken, or a node makes no sense; the message names file and node.
    """
    first = _read_rank(chakra.chakra_path(prefix, 0), 0, None)
    shape = first.attributes["n_ranks"], first.attributes["buffer_bytes"]
    ranks = [first, *(_read_rank(chakra.chakra_path(prefix, r), r, shape) for r in range(1, shape[0]))]
    return _assemble(ranks, shape[1])


def _read_rank(path: Path, rank: int, shape: tuple[int, int] | None) -> _Rank:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    read = _Rank(path)
    where = "the metadata"
    try:
        messages = read_messages(data)
        start = next(messages, None)
        if start is None:
            raise InputError(f"{path.name}: empty; it must begin with the metadata")
        read.attributes = _metadata(data, *start)
        _check_metadata(read, rank, shape)
        where = "the first node"
        for at, end in messages:
            node = _node(data, at, end)
            where = f"what follows node {node[0]}"
            _append(read, node, rank)
    except WireError as error:
        raise InputError(f"{path.name}: {where}: no Chakra trace: {error}") from None
    return read


def _check_metadata(read: _Rank, rank: int, shape: tuple[int, int] | None) -> None:
    for name in ("n_ranks", "rank", "buffer_bytes"):
        if name not in read.attributes:
            raise InputError(f"{read.path.name}: the metadata have no {name}; only exported collectives can be proven")
    if read.attributes["rank"] != rank:
        raise InputError(f"{read.path.name}: the metadata say rank {read.attributes['rank']}")
    found = read.attributes["n_ranks"], read.attributes["buffer_bytes"]
    if found[0] < 1 or found[1] < 0 or (shape is not None and found != shape):
        other = f", those of rank 0 {shape[0]} and {shape[1]}" if shape else ""
        raise InputError(f"{read.path.name}: the metadata say {found[0]} ranks and {found[1]} bytes{other}")


def _metadata(data: bytes, at: int, end: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, _, a, b in read_fields(data, at, end):
        if number == schema.METADATA_ATTR:
            _attribute(data, a, b, found)
    return found


def _node(data: bytes, at: int, end: int) -> Node:
    node_id = kind = 0
    deps: list[int] = []
    attributes: dict[str, int] = {}
    for number, wire, a, b in read_fields(data, at, end):
        if number == schema.NODE_ATTR:
            _attribute(data, a, b, attributes)
        elif number == schema.NODE_ID:
            node_id = a
        elif number == schema.NODE_TYPE:
            kind = a
        elif number in (schema.NODE_CTRL_DEPS, schema.NODE_DATA_DEPS):
            deps.extend(read_list(data, wire, a, b))
    return node_id, kind, tuple(deps), attributes


def _attribute(data: bytes, at: int, end: int, found: dict[str, int]) -> None:
    """Notes an attribute that is a whole number; others say nothing here."""
    if data[at:end] == _ON_GPU:
        found["is_cpu_op"] = 0
        return
    head = at + 3 + data[at + 1] if end - at > 1 else end
    known = _HEADS.get(data[at:head])
    if known is not None:
        value, behind = read_varint(data, head, end)
        if behind == end:
            found[known] = value - (1 << 64) if value >> 63 else value
            return
    name = ""
    for number, wire, a, b in read_fields(data, at, end):
        if number == schema.ATTR_NAME:
            name = data[a:b].decode(errors="replace")
        elif wire == VARINT and number in _INTEGERS:
            found[name] = a - (1 << 64) if a >> 63 else a
        elif wire == VARINT and number in _ZIGZAG:
            found[name] = (a >> 1) ^ -(a & 1)
        elif wire in (FIXED32, FIXED64) and number in _FIXED:
            found[name] = int.from_bytes(data[a:b], "little", signed=_FIXED[number])


def _append(read: _Rank, node: Node, rank: int) -> None:
    node_id, kind, deps, attributes = node
    size = attributes.get("tensor_size" if kind == NodeType.COMP else "comm_size", 0)
    offset = attributes.get("buffer_offset", -1)
    peer = attributes.get("comm_dst" if kind == NodeType.COMM_SEND else "comm_src", -1)
    wrong = _wrong(read, node, rank, size, offset, peer)
    if wrong:
        raise InputError(f"{read.path.name}: node {node_id}: {wrong}")
    read.number[node_id] = len(read.id)
    read.id.append(node_id)
    read.kind.append(kind)
    read.peer.append(peer)
    read.size.append(size)
    read.tag.append(attributes.get("comm_tag", -1))
    read.offset.append(offset)
    read.operand.append(attributes.get("operand", -1))
    read.deps.append(deps)


def _wrong(read: _Rank, node: Node, rank: int, size: int, offset: int, peer: int) -> str:
    """What is wrong with a node by itself; empty if nothing is."""
    node_id, kind, _, attributes = node
    if kind not in _TYPES:
        return f"type {kind}; a custom collective has {', '.join(_TYPES.values())} nodes only"
    for name in _NEEDED[kind]:
        if name not in attributes:
            return f"{_TYPES[kind]} without a whole number {name}"
    if node_id in read.number:
        return "the id occurs twice"
    if attributes.get("is_cpu_op", 1):
        return "is_cpu_op must be false"
    whole = read.attributes["buffer_bytes"]
    if size < 1:
        return f"{size} bytes; a size must be 1 or more"
    if "buffer_offset" in attributes and not 0 <= offset <= whole - size:
        return f"bytes {offset}..{offset + size} of a buffer of {whole}"
    if kind == NodeType.COMP:
        return ""
    if not 0 <= peer < read.attributes["n_ranks"] or peer == rank:
        return f"its peer is rank {peer}; it is rank {rank} of {read.attributes['n_ranks']}"
    if not 0 <= attributes["comm_tag"] < chakra.TAG_LIMIT:
        return f"comm_tag {attributes['comm_tag']}; it must lie from 0 to {chakra.TAG_LIMIT - 1}"
    return ""


def _assemble(ranks: list[_Rank], size: int) -> Program:
    bases = [0]
    for one in ranks:
        bases.append(bases[-1] + len(one.id))
    edges = {0, size}
    for one in ranks:
        for lo, width in zip(one.offset, one.size, strict=True):
            if lo >= 0:
                edges.update((lo, lo + width))
    cuts = sorted(edges)
    cell = {at: i for i, at in enumerate(cuts)}

    def name(node: int) -> str:
        rank = bisect_right(bases, node) - 1
        return ranks[rank].node(node - bases[rank])

    cells = len(cuts) - 1
    program = Program(len(ranks), cuts, cells, 0, 0, name, lambda rank: ranks[rank].path.name)
    for rank, one in enumerate(ranks):
        _add_rank(program, one, rank, bases[rank], cell)
    _match(program, ranks, bases)
    return program


def _add_rank(program: Program, one: _Rank, rank: int, base: int, cell: dict[int, int]) -> None:
    for i, kind in enumerate(one.kind):
        for dep in one.deps[i]:
            if dep not in one.number:
                raise InputError(f"{one.node(i)}: waits for node {dep}, which does not exist")
        before = tuple(base + one.number[dep] for dep in one.deps[i])
        at, width = one.offset[i], 0
        if at >= 0:
            first = cell[at]
            width = cell[at + one.size[i]] - first
        if kind == NodeType.COMM_SEND:
            program.add(rank, width, read=first, before=before)
        elif at < 0:
            program.add(rank, width, before=before)
        else:
            program.add(rank, width, write=first, adds=kind == NodeType.COMP, before=before)
        if kind == NodeType.COMP:
            program.feed[-1] = base + _operand(one, i)


def _operand(one: _Rank, i: int) -> int:
    """The receive that a COMP node adds; it must be set aside, of the same size, and waited for."""
    operand = one.number.get(one.operand[i])
    if operand is None or one.kind[operand] != NodeType.COMM_RECV or one.offset[operand] >= 0:
        raise InputError(f"{one.node(i)}: its operand {one.operand[i]} is no COMM_RECV without a buffer_offset")
    if one.size[operand] != one.size[i]:
        raise InputError(f"{one.node(i)}: adds {one.size[i]} bytes, its operand has {one.size[operand]}")
    if one.operand[i] not in one.deps[i]:
        raise InputError(f"{one.node(i)}: does not wait for its operand {one.operand[i]}")
    return operand


def _match(program: Program, ranks: list[_Rank], bases: list[int]) -> None:
    """Gives every receive its send: the one with its tag, source and destination."""
    sends: dict[tuple[int, int, int], int] = {}  # tag, source, destination -> node of the source
    for rank, one in enumerate(ranks):
        for i, kind in enumerate(one.kind):
            if kind == NodeType.COMM_SEND:
                key = one.tag[i], rank, one.peer[i]
                if key in sends:
                    first = one.node(sends[key])
                    raise InputError(f"{one.node(i)}: sends to rank {key[2]} under tag {key[0]}, as does {first}")
                sends[key] = i
    for rank, one in enumerate(ranks):
        for i, kind in enumerate(one.kind):
            if kind == NodeType.COMM_RECV:
                _match_one(program, ranks, bases, rank, i, sends)
    for (tag, src, dst), i in sends.items():
        raise InputError(f"{ranks[src].node(i)}: sends to rank {dst} under tag {tag}, where no node receives it")


def _match_one(
    program: Program,
    ranks: list[_Rank],
    bases: list[int],
    rank: int,
    i: int,
    sends: dict[tuple[int, int, int], int],
) -> None:
    one = ranks[rank]
    src = one.peer[i]
    found = sends.pop((one.tag[i], src, rank), None)
    if found is None:
        raise InputError(f"{one.node(i)}: receives from rank {src} under tag {one.tag[i]}, which no node sends")
    sender = ranks[src]
    if sender.size[found] != one.size[i]:
        raise InputError(
            f"{one.node(i)}: receives {one.size[i]} bytes, {sender.node(found)} sends {sender.size[found]}"
        )
    if one.offset[i] >= 0 and one.offset[i] != sender.offset[found]:
        raise InputError(
            f"{one.node(i)}: puts at byte {one.offset[i]} what {sender.node(found)} has at byte {sender.offset[found]}"
        )
    program.feed[bases[rank] + i] = bases[src] + found
