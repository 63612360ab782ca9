"""A schedule as MSCCL XML, the program that MSCCL's runtime executes on GPUs.

A thread block has one peer that it sends to and one that it receives from, on one channel, and runs its steps in order.
Every connection of the schedule (channel, source, destination) belongs to one thread block at each end; where all that
comes over one connection leaves over another, a receive and the send that follows are one step. Both ends of a
connection take its messages in the same order: by pass, hop and section. Waits between thread blocks of a GPU are
`depid`/`deps`, with a `nop` for each beyond the first.

Sections are not cut into the schedule's chunks: the runtime pipelines by itself. All its chunks are of one size, so
that the buffer is cut in the largest chunks of which every section is a whole number.

A rank's own contribution is read from the input `i`; what has been received stands in the output `o`. The program so
works in place and out of place. NICs do not occur in MSCCL: the runtime gives each channel its own.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

import numpy as np

from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.errors import InputError
from r2cc_simai.exporters import msccl_limits as limits
from r2cc_simai.exporters.messages import Bool, Messages, RankOps

Connection = tuple[int, bool, int]  # channel, whether it sends, peer
Place = tuple[int, int]  # thread block, step (nops not counted)

COLLECTIVES = {"all_reduce": "allreduce"}


class _MixedError(Exception):
    """A step would read partly what came and partly the rank's own data."""


@dataclass
class _Step:
    kind: str
    source: str
    target: str
    at: int
    count: int
    waits: list[Place]


@dataclass
class _Block:
    channel: int
    send: int = -1
    receive: int = -1
    steps: list[_Step] = field(default_factory=list)


def msccl_xml(schedule: Schedule, name: str, op: str = "all_reduce") -> str:
    """The XML of a schedule, ASCII alone.

    Raises:
        UnevenError: the sections have no common chunk of a size that MSCCL can use.
        InputError: the collective is none that can be written, or larger than MSCCL's limits.
    """
    if op not in COLLECTIVES:
        raise InputError(f"MSCCL: {op} cannot be exported (allowed: {', '.join(COLLECTIVES)})")
    messages = Messages(schedule, piece_bytes=0)
    unit = common_chunk(messages)
    channels = _channels(schedule)
    chunks = schedule.bytes // unit
    limits.check_size(chunks, schedule.n_ranks, max(channels.values(), default=0) + 1)
    try:
        body, apart = _all_gpus(messages, unit, channels, apart=True), 1
    except _MixedError:
        body, apart = _all_gpus(messages, unit, channels, apart=False), 0
    head = f'<algo name={_quoted(name)} proto="Simple" nchannels="{max(channels.values()) + 1}"'
    head += f' nchunksperloop="{chunks}" ngpus="{schedule.n_ranks}" coll="{COLLECTIVES[op]}" inplace="1"'
    # For this size alone: the runtime takes sizes from minBytes up to, but not including, maxBytes.
    head += f' outofplace="{apart}" minBytes="{schedule.bytes}" maxBytes="{schedule.bytes + 1}">'
    return "\n".join([head, *body, "</algo>", ""])


def _all_gpus(messages: Messages, unit: int, channels: dict[int, int], *, apart: bool) -> list[str]:
    lines = []
    chunks, gpus = messages.schedule.bytes // unit, messages.schedule.n_ranks
    for gpu in range(gpus):
        blocks = _blocks(messages.of_rank(gpu), unit, chunks, channels, apart=apart)
        lines += _gpu_lines(gpu, blocks, chunks, gpus)
    return lines


def common_chunk(messages: Messages) -> int:
    """Bytes of the largest chunk of which every section is a whole number.

    Raises:
        UnevenError: it is too small, or a section is too many of them.
    """
    size = messages.schedule.bytes
    if messages.count == 0 or size == 0:
        raise InputError("MSCCL: no rank sends anything; there is nothing to export")
    unit = math.gcd(*messages.cuts.tolist())
    whole = math.gcd(unit, limits.LARGEST_ELEMENT) == limits.LARGEST_ELEMENT
    if not whole or size // unit > limits.MOST_CHUNKS:
        raise limits.UnevenError(
            f"MSCCL: chunks are of one size; the sections of {size} bytes have only {unit} B in common, "
            f"{size // unit} chunks (at most {limits.MOST_CHUNKS}, each a multiple of {limits.LARGEST_ELEMENT} B)"
        )
    longest = messages.longest // unit
    if longest > limits.MOST_COUNT:
        raise limits.UnevenError(
            f"MSCCL: a section is {longest} of the common chunks; a step moves {limits.MOST_COUNT}"
        )
    if longest > 1 and messages.longest > limits.CHUNK_BYTES:
        raise InputError(
            f"MSCCL: unequal sections must fit in a connection's buffer of {limits.CHUNK_BYTES} B, one is "
            f"{messages.longest} B; write a --size of at most {size // messages.longest * limits.CHUNK_BYTES}"
        )
    return unit


def _channels(schedule: Schedule) -> dict[int, int]:
    """MSCCL's channel of each of the schedule's: its own, or one shared with channels over other hops if need be."""
    hops: dict[int, set[tuple[int, int]]] = {}
    for channel, src, dst in sorted(schedule.hops()):
        hops.setdefault(channel, set()).add((src, dst))
    if len(hops) <= limits.MOST_CHANNELS:
        return {channel: i for i, channel in enumerate(hops)}
    taken: list[set[tuple[int, int]]] = []
    found: dict[int, int] = {}
    for channel, own in hops.items():
        free = next((i for i, used in enumerate(taken) if not used & own), len(taken))
        if free == len(taken):
            taken.append(set())
        taken[free] |= own
        found[channel] = free
    return found


def _blocks(ops: RankOps, unit: int, chunks: int, channels: dict[int, int], *, apart: bool) -> list[_Block]:
    """The thread blocks of a rank; `apart`: input and output may be different memory."""
    keys: list[Connection] = list(zip(ops.channel.tolist(), ops.send.tolist(), ops.peer.tolist(), strict=True))
    fused = _fused(ops, keys)
    partner = {keys[came]: keys[left] for came, left in fused.items()}
    partner |= {left: came for came, left in partner.items()}
    blocks: list[_Block] = []
    block_of: dict[Connection, int] = {}
    for key in dict.fromkeys(keys):
        if key not in block_of:
            for one in (key, partner.get(key, key)):
                block_of[one] = len(blocks)
            pair = {sends: peer for _, sends, peer in (key, partner.get(key, key))}
            blocks.append(_Block(channels[key[0]], pair.get(True, -1), pair.get(False, -1)))
    _add_steps(ops, unit, chunks, [block_of[key] for key in keys], fused, blocks, apart=apart)
    return blocks


def _fused(ops: RankOps, keys: list[Connection]) -> dict[int, int]:
    """Receives that are one step with the send that follows: receive -> send.

    Connections are paired one to one. All that comes at a hop of a pass is joined or nothing, so that each connection
    keeps the order of its messages.
    """
    onward: dict[tuple[Connection, Connection], list[tuple[int, int]]] = {}
    for op, before in enumerate(ops.before.tolist()):
        if before >= 0 and ops.send[op] and not ops.send[before]:
            onward.setdefault((keys[before], keys[op]), []).append((before, op))
    stages = list(zip(ops.pass_.tolist(), ops.hop.tolist(), keys, strict=True))
    all_of = Counter(stages)
    taken: set[Connection] = set()
    fused: dict[int, int] = {}
    for (came, left), pairs in sorted(onward.items(), key=lambda item: -len(item[1])):
        if came in taken or left in taken:
            continue
        together = Counter((stages[a], stages[b]) for a, b in pairs)
        joined = {a: b for a, b in pairs if together[stages[a], stages[b]] == all_of[stages[a]] == all_of[stages[b]]}
        if joined:
            taken |= {came, left}
            fused |= joined
    return fused


def _add_steps(
    ops: RankOps,
    unit: int,
    chunks: int,
    block_of: list[int],
    fused: dict[int, int],
    blocks: list[_Block],
    *,
    apart: bool,
) -> None:
    received = np.zeros(chunks, dtype=np.bool_)
    place: dict[int, Place] = {}
    sent_on = set(fused.values())
    for op in range(len(ops.send)):
        if op in sent_on:
            continue
        at, count = int(ops.lo[op]) // unit, int(ops.hi[op] - ops.lo[op]) // unit
        mine = (op, fused[op]) if op in fused else (op,)
        block = blocks[block_of[op]]
        latest: dict[int, int] = {}
        for wait in (int(w) for one in mine for w in ops.waits_of(one) if int(w) not in mine):
            other, step = place[wait]
            if other != block_of[op]:  # steps of one thread block are in order by themselves
                latest[other] = max(step, latest.get(other, -1))
        for one in mine:
            place[one] = block_of[op], len(block.steps)
        source = "o" if not apart else _buffer(received[at : at + count])
        if ops.send[op]:
            kind, target = "s", source
        else:
            kind, target = ("rrc" if ops.reduce[op] else "r"), "o"
            source = source if ops.reduce[op] else "o"
            received[at : at + count] = True
        if op in fused:
            kind = "rrcs" if ops.reduce[op] else "rcs"
        block.steps.append(_Step(kind, source, target, at, count, sorted(latest.items())))


def _buffer(received: Bool) -> str:
    """Where a rank's current data lies: in the output where something was received, else in the input.

    Raises:
        _MixedError: partly here, partly there.
    """
    if received.any() and not received.all():
        raise _MixedError
    return "o" if received.all() else "i"


def _gpu_lines(gpu: int, blocks: list[_Block], chunks: int, gpus: int) -> list[str]:
    needed = {wait for block in blocks for step in block.steps for wait in step.waits}
    number: dict[Place, int] = {}  # the step numbers in the file, nops counted
    sizes = []
    for b, block in enumerate(blocks):
        at = 0
        for i, step in enumerate(block.steps):
            at += max(1, len(step.waits))
            number[b, i] = at - 1
        sizes.append(at)
    limits.check_blocks(gpu, sizes, [block.channel for block in blocks], gpus)
    lines = [f'  <gpu id="{gpu}" i_chunks="{chunks}" o_chunks="{chunks}" s_chunks="0">']
    for b, block in enumerate(blocks):
        lines.append(f'    <tb id="{b}" send="{block.send}" recv="{block.receive}" chan="{block.channel}">')
        for i, step in enumerate(block.steps):
            waits = [(other, number[other, wait]) for other, wait in step.waits] or [(-1, -1)]
            first = number[b, i] - len(waits) + 1
            for s, wait in enumerate(waits[:-1], start=first):
                lines.append(_step_line(s, _Step("nop", "i", "o", -1, 0, []), wait, has_dep=False))
            lines.append(_step_line(number[b, i], step, waits[-1], has_dep=(b, i) in needed))
        lines.append("    </tb>")
    return [*lines, "  </gpu>"]


def _quoted(name: str) -> str:
    return quoteattr(name.encode("ascii", "replace").decode()[: limits.LONGEST_NAME])


def _step_line(s: int, step: _Step, wait: Place, *, has_dep: bool) -> str:
    where = f'srcbuf="{step.source}" srcoff="{step.at}" dstbuf="{step.target}" dstoff="{step.at}" cnt="{step.count}"'
    dep = f'depid="{wait[0]}" deps="{wait[1]}" hasdep="{int(has_dep)}"'
    return f'      <step s="{s}" type="{step.kind}" {where} {dep}/>'
