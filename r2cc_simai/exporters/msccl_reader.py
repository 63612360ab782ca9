"""Reading MSCCL XML back as a program that can be proven.

What the runtime would pass over in silence is an error here: waits for a step that never reports, messages that nobody
receives, chunks outside a buffer.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass

from r2cc_simai.collectives.checker import Wanted
from r2cc_simai.errors import InputError, MismatchError
from r2cc_simai.exporters import msccl_limits as limits
from r2cc_simai.exporters.msccl import COLLECTIVES
from r2cc_simai.exporters.program import NONE, Program
from r2cc_simai.exporters.verify import find_fault

# type: whether it receives, reads its source, writes its target, adds to its target, sends
_KINDS = {
    "s": (False, True, False, False, True),
    "r": (True, False, True, False, False),
    "rcs": (True, False, True, False, True),
    "rrc": (True, True, True, False, False),
    "rrs": (True, True, False, False, True),
    "rrcs": (True, True, True, False, True),
    "re": (False, True, True, True, False),
    "cpy": (False, True, True, False, False),
}
_STEP = ("s", "srcoff", "dstoff", "cnt", "depid", "deps", "hasdep")


@dataclass(frozen=True)
class _Gpu:
    """Chunks of the buffers `i`, `o` and `s`, and where each begins in the rank's memory."""

    chunks: dict[str, int]
    start: dict[str, int]


@dataclass
class _Step:
    node: int  # NONE: a nop
    has_dep: bool
    waits: tuple[int, int]  # thread block and step; (-1, -1): none


def read_msccl(text: str, file: str, *, in_place: bool) -> Program:
    """The program of a file's text, with input and output in the same memory or in different ones.

    Raises:
        InputError: the file is broken or makes no sense; the message names file, GPU, thread block and step.
    """
    return _Reader(file, _parse(text, file), in_place).read()


def prove_msccl(text: str, file: str, wanted: Wanted | None = None) -> list[str]:
    """Proves a program in place and out of place, as far as it says that it can do either; returns which.

    Raises:
        InputError: the file is broken.
        MismatchError: it does not do what is wanted, AllReduce by default.
    """
    top = _parse(text, file)
    claimed = [name for name, key in (("in place", "inplace"), ("out of place", "outofplace")) if top.get(key) == "1"]
    if not claimed:
        raise InputError(f"{file}: algo: neither inplace nor outofplace is 1")
    for place in claimed:
        fault = find_fault(_Reader(file, top, place == "in place").read(), wanted)
        if fault:
            raise MismatchError(f"{fault} ({place})")
    return claimed


def _parse(text: str, file: str) -> ET.Element:
    try:
        return ET.fromstring(text)
    except ET.ParseError as error:
        raise InputError(f"{file}: no XML: {error}") from None


class _Reader:
    def __init__(self, file: str, top: ET.Element, in_place: bool) -> None:
        self._file = file
        self._top = top
        self._in_place = in_place
        self._names: list[str] = []
        self._lines = 0  # thread blocks read so far
        # (channel, source, destination) -> thread block and operations, of the sender and of the receiver
        self._sends: dict[tuple[int, int, int], tuple[int, list[int]]] = {}
        self._receives: dict[tuple[int, int, int], tuple[int, list[int]]] = {}

    def read(self) -> Program:
        gpus, chunks = self._head()
        own = self._gpus(gpus, chunks)
        size = self._number(self._top, "minBytes", "algo")
        if size < 1 or size % chunks:
            raise self._wrong("algo", f"minBytes {size} is no multiple of nchunksperloop, {chunks}")
        cuts = [size // chunks * i for i in range(chunks + 1)]
        layout = [self._layout(one, gpu, chunks) for gpu, one in enumerate(own)]
        memory = max(gpu.start["s"] + gpu.chunks["s"] for gpu in layout)
        file = self._file
        program = Program(gpus, cuts, memory, 0, layout[0].start["o"], self._names.__getitem__, lambda _: file)
        for gpu, element in enumerate(own):
            self._blocks(program, gpu, element, layout[gpu])
        self._connect(program)
        return program

    def _head(self) -> tuple[int, int]:
        if self._top.tag != "algo":
            raise self._wrong("", f"begins with <{self._top.tag}>, not with <algo>")
        if self._top.get("coll") not in COLLECTIVES.values():
            known = ", ".join(COLLECTIVES.values())
            raise self._wrong("algo", f"coll={self._top.get('coll')!r} cannot be proven (allowed: {known})")
        gpus, chunks, channels = (
            self._number(self._top, key, "algo") for key in ("ngpus", "nchunksperloop", "nchannels")
        )
        try:
            limits.check_size(chunks, gpus, channels)
        except InputError as error:
            raise self._wrong("algo", str(error)) from None
        return gpus, chunks

    def _gpus(self, gpus: int, chunks: int) -> list[ET.Element]:
        found: dict[int, ET.Element] = {}
        for element in self._top:
            gpu = self._number(element, "id", element.tag)
            if element.tag != "gpu" or gpu in found or not 0 <= gpu < gpus:
                raise self._wrong(f"{element.tag} {gpu}", f"ids of <gpu> go from 0 to {gpus - 1}, each once")
            for key in ("i_chunks", "o_chunks"):
                if self._number(element, key, f"gpu {gpu}") != chunks:
                    raise self._wrong(f"gpu {gpu}", f"{key} is not nchunksperloop, {chunks}")
            found[gpu] = element
        for gpu in range(gpus):
            if gpu not in found:
                raise self._wrong(f"gpu {gpu}", "missing")
        return [found[gpu] for gpu in range(gpus)]

    def _layout(self, element: ET.Element, gpu: int, chunks: int) -> _Gpu:
        scratch = self._number(element, "s_chunks", f"gpu {gpu}")
        output = 0 if self._in_place else chunks
        return _Gpu({"i": chunks, "o": chunks, "s": scratch}, {"i": 0, "o": output, "s": output + chunks})

    def _blocks(self, program: Program, gpu: int, element: ET.Element, layout: _Gpu) -> None:
        blocks: dict[int, list[_Step]] = {}
        channels = []
        for one in element:
            number = self._number(one, "id", f"gpu {gpu}: {one.tag}")
            place = f"gpu {gpu} tb {number}"
            if one.tag != "tb" or number != len(blocks):
                raise self._wrong(place, f"ids of <tb> count up from 0; {len(blocks)} is next")
            channels.append(self._number(one, "chan", place))
            if not 0 <= channels[-1] < self._number(self._top, "nchannels", "algo"):
                raise self._wrong(place, f"channel {channels[-1]} is not below nchannels")
            blocks[number] = self._steps(program, gpu, number, one, layout)
        try:
            limits.check_blocks(gpu, [len(steps) for steps in blocks.values()], channels, program.n_ranks)
        except InputError as error:
            raise self._wrong("", str(error)) from None
        self._order(program, gpu, blocks)

    def _steps(self, program: Program, gpu: int, block: int, element: ET.Element, layout: _Gpu) -> list[_Step]:
        place = f"gpu {gpu} tb {block}"
        send, receive, channel = (self._number(element, key, place) for key in ("send", "recv", "chan"))
        for peer in (send, receive):
            if peer == gpu or not -1 <= peer < program.n_ranks:
                raise self._wrong(place, f"its peer is gpu {peer} of {program.n_ranks}")
        if send >= 0:
            sends = self._claim(self._sends, (channel, gpu, send), block, place, "sends to", send)
        if receive >= 0:
            receives = self._claim(self._receives, (channel, receive, gpu), block, place, "receives from", receive)
        steps: list[_Step] = []
        self._lines += 1
        for one in element:
            where = f"{place} step {one.get('s')}"
            value = {key: self._number(one, key, where) for key in _STEP}
            if one.tag != "step" or value["s"] != len(steps):
                raise self._wrong(where, f"steps count up from 0; {len(steps)} is next")
            step = self._step(program, gpu, where, one, value, layout)
            steps.append(step)
            if step.node == NONE:
                continue
            comes, _, _, _, goes = _KINDS[one.get("type", "")]
            if (goes and send < 0) or (comes and receive < 0):
                raise self._wrong(where, f"type {one.get('type')}, but the thread block has no such peer")
            if goes:
                sends.append(step.node)
            if comes:
                receives.append(step.node)
        return steps

    def _claim(
        self,
        table: dict[tuple[int, int, int], tuple[int, list[int]]],
        key: tuple[int, int, int],
        block: int,
        place: str,
        verb: str,
        peer: int,
    ) -> list[int]:
        if key in table:
            raise self._wrong(place, f"{verb} gpu {peer} on channel {key[0]}, as tb {table[key][0]} does")
        table[key] = block, []
        return table[key][1]

    def _step(
        self, program: Program, gpu: int, where: str, element: ET.Element, value: dict[str, int], layout: _Gpu
    ) -> _Step:
        kind = element.get("type", "")
        waits, has_dep = (value["depid"], value["deps"]), value["hasdep"] == 1
        if kind == "nop":
            return _Step(NONE, has_dep, waits)
        if kind not in _KINDS:
            raise self._wrong(where, f"type {kind!r} (allowed: {', '.join(_KINDS)}, nop)")
        if not 1 <= value["cnt"] <= limits.MOST_COUNT:
            raise self._wrong(where, f"cnt {value['cnt']}; from 1 to {limits.MOST_COUNT} are possible")
        _, reads, writes, adds, _ = _KINDS[kind]
        source = self._address(element, "src", value, where, layout) if reads else NONE
        target = self._address(element, "dst", value, where, layout) if writes else NONE
        self._names.append(f"{self._file}: {where}")
        node = program.add(gpu, value["cnt"], read=source, write=target, adds=adds, line=self._lines)
        return _Step(node, has_dep, waits)

    def _address(self, element: ET.Element, end: str, value: dict[str, int], where: str, layout: _Gpu) -> int:
        buffer, offset = element.get(f"{end}buf", ""), value[f"{end}off"]
        if buffer not in layout.start:
            raise self._wrong(where, f"{end}buf={buffer!r} (allowed: i, o, s)")
        if not 0 <= offset <= layout.chunks[buffer] - value["cnt"]:
            raise self._wrong(
                where, f"chunks {offset}..{offset + value['cnt']} of {buffer}, which has {layout.chunks[buffer]}"
            )
        return layout.start[buffer] + offset

    def _order(self, program: Program, gpu: int, blocks: dict[int, list[_Step]]) -> None:
        """Steps of a thread block run in order; a step also waits for what it and the nops before it name."""
        for number, steps in blocks.items():
            waits: list[int] = []
            last: tuple[int, ...] = ()
            for i, step in enumerate(steps):
                where = f"gpu {gpu} tb {number} step {i}"
                if step.waits[0] >= 0:
                    waits.append(self._target(where, blocks, *step.waits))
                if step.node == NONE:
                    continue
                program.before[step.node] = (*last, *waits)
                waits, last = [], (step.node,)
            if steps and steps[-1].node == NONE:
                raise self._wrong(f"gpu {gpu} tb {number} step {len(steps) - 1}", "a nop must come before another step")

    def _target(self, where: str, blocks: dict[int, list[_Step]], block: int, step: int) -> int:
        if not 0 <= step < len(blocks.get(block, ())) or blocks[block][step].node == NONE:
            raise self._wrong(where, f"waits for tb {block} step {step}, which does not exist or is a nop")
        if not blocks[block][step].has_dep:
            raise self._wrong(where, f"waits for tb {block} step {step}, which has hasdep=0 and so never reports")
        return blocks[block][step].node

    def _connect(self, program: Program) -> None:
        """Joins the sends of every connection with its receives, first in, first out."""
        for key in sorted({*self._sends, *self._receives}):
            sends = self._sends.get(key, (0, []))[1]
            receives = self._receives.get(key, (0, []))[1]
            for i, (send, receive) in enumerate(zip(sends, receives, strict=False)):
                if program.width[send] != program.width[receive]:
                    counts = program.width[receive], program.width[send]
                    raise InputError(f"{self._names[receive]}: receives {counts[0]} chunks of {counts[1]} sent")
                program.feed[receive] = send
                if i >= limits.CHUNKS_UNDER_WAY:
                    program.blocked.append((send, receives[i - limits.CHUNKS_UNDER_WAY]))
            if len(sends) > len(receives):
                raise InputError(f"{self._names[sends[len(receives)]]}: sends to gpu {key[2]}, which never receives it")
            if len(receives) > len(sends):
                raise InputError(f"{self._names[receives[len(sends)]]}: receives what gpu {key[1]} never sends")

    def _number(self, element: ET.Element, key: str, place: str) -> int:
        try:
            return int(element.get(key, ""))
        except ValueError:
            raise self._wrong(place, f"{key}={element.get(key)!r} is no whole number") from None

    def _wrong(self, place: str, what: str) -> InputError:
        return InputError(f"{self._file}: {place}{': ' if place else ''}{what}")
