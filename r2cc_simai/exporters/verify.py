"""The proof of an exported file: in every order that it allows, each rank ends with every contribution exactly once.

Only what the file says orders anything: its dependencies, and that a message is received after it was sent. Three
things are checked.

1. Nothing waits for itself; else the run stops, and the cycle is named.
2. Two accesses to the same memory of a rank, one of them a write, are ordered; else the result depends on timing.
3. One execution, with the contributions as symbols, leaves what the collective promises.

With 1 and 2, all orders that the file allows do the same to every cell, so that one execution proves them all.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from r2cc_simai.collectives.checker import Wanted, all_reduced, judge
from r2cc_simai.exporters.program import NONE, Program

LONGEST_PATH = 8  # operations of a cycle that are printed

Cell = tuple[int, int, int]  # whose cell of the buffer it is, ranks that are in it, ranks that are in it more than once


class _FaultError(Exception):
    """What is wrong, as one line."""


def find_fault(program: Program, wanted: Wanted | None = None) -> str | None:
    """The first thing that is wrong with a program, as one line that names file and operation; None: it is proven.

    `wanted` is the postcondition as the checker of schedules takes it, AllReduce by default.
    """
    try:
        with _no_garbage_collection():
            order = _topological(program)
            memory = _Execution(program, order).run()
    except _FaultError as fault:
        return str(fault)
    return _judge(program, memory, wanted or all_reduced(program.n_ranks))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Millions of tuples, none of them in a cycle: looking for cycles among them takes as long as the proof itself."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _topological(program: Program) -> list[int]:
    """The operations in an order that the program allows.

    Raises:
        _FaultError: some wait for themselves.
    """
    count = len(program.rank)
    missing = [0] * count
    after: list[list[int]] = [[] for _ in range(count)]

    def edge(first: int, then: int) -> None:
        after[first].append(then)
        missing[then] += 1

    for node, before in enumerate(program.before):
        for one in before:
            edge(one, node)
    for node, feed in enumerate(program.feed):
        if feed != NONE:
            edge(feed, node)
    for node, one in program.blocked:
        edge(one, node)
    order = [node for node in range(count) if not missing[node]]
    for node in order:  # grows while it is read
        for then in after[node]:
            missing[then] -= 1
            if not missing[then]:
                order.append(then)
    if len(order) < count:
        raise _FaultError(_cycle(program, missing))
    return order


def _cycle(program: Program, missing: list[int]) -> str:
    held = {waits: one for waits, one in program.blocked if missing[waits] and missing[one]}

    def waits_for(node: int) -> int:
        for one in (*program.before[node], program.feed[node]):
            if one != NONE and missing[one]:
                return one
        return held[node]

    node = next(node for node, count in enumerate(missing) if count)
    path: list[int] = []
    seen: dict[int, int] = {}
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = waits_for(node)
    loop = path[seen[node] :]
    names = [program.name(one) for one in loop[:LONGEST_PATH]]
    if len(loop) > LONGEST_PATH:
        names.append(f"{len(loop) - LONGEST_PATH} more")
    room = any(held.get(one) == then for one, then in zip(loop, [*loop[1:], loop[0]], strict=True))
    return " waits for ".join([*names, program.name(node)]) + (" (connections are full)" if room else "")


class _Execution:
    """One run with symbols, and who touched which cell last."""

    def __init__(self, program: Program, order: list[int]) -> None:
        self._program = program
        self._order = order
        self._position = [0] * len(order)
        for position, node in enumerate(order):
            self._position[node] = position
        inputs = range(program.input_at, program.input_at + program.cells)
        self._memory: list[list[Cell | None]] = []
        for rank in range(program.n_ranks):
            own: list[Cell | None] = [None] * program.memory
            own[inputs.start : inputs.stop] = [(cell, 1 << rank, 0) for cell in range(program.cells)]
            self._memory.append(own)
        self._writer = [[NONE] * program.memory for _ in range(program.n_ranks)]
        self._readers: list[dict[int, list[int]]] = [{} for _ in range(program.n_ranks)]
        self._values: dict[int, list[Cell]] = {}
        self._fed = [0] * len(order)  # how many operations each one feeds
        for feed in program.feed:
            if feed != NONE:
                self._fed[feed] += 1

    def run(self) -> list[list[Cell | None]]:
        """Executes everything and returns the memories.

        Raises:
            _FaultError: two accesses are not ordered, or what is read makes no sense.
        """
        program = self._program
        for node in self._order:
            rank, width, write = program.rank[node], program.width[node], program.write[node]
            value = self._received(node)
            if program.read[node] != NONE:
                value = self._plus(node, value, self._load(node, rank, program.read[node], width))
            if program.adds[node]:
                value = self._plus(node, value, self._load(node, rank, write, width))
            if write != NONE:
                self._store(node, rank, write, value)
            if self._fed[node]:
                self._values[node] = value
        return self._memory

    def _received(self, node: int) -> list[Cell]:
        feed = self._program.feed[node]
        if feed == NONE:
            return []
        self._fed[feed] -= 1
        return self._values[feed] if self._fed[feed] else self._values.pop(feed)

    def _plus(self, node: int, a: list[Cell], b: list[Cell]) -> list[Cell]:
        if not a:
            return b
        if len(a) != len(b):
            raise _FaultError(f"{self._program.name(node)}: adds {self._bytes(a[0][0])}.. to {self._bytes(b[0][0])}..")
        total: list[Cell] = []
        for (cell, once, more), (other, more_once, more_more) in zip(a, b, strict=True):
            if cell != other:
                raise _FaultError(f"{self._program.name(node)}: adds {self._bytes(cell)} to {self._bytes(other)}")
            total.append((cell, once | more_once, more | more_more | once & more_once))
        return total

    def _load(self, node: int, rank: int, at: int, width: int) -> list[Cell]:
        memory, writer, readers = self._memory[rank], self._writer[rank], self._readers[rank]
        value: list[Cell] = []
        for cell in range(at, at + width):
            found = memory[cell]
            if found is None:
                raise _FaultError(f"{self._program.name(node)}: reads {self._place(cell)}, which nothing has written")
            if writer[cell] != NONE and not self._ordered(writer[cell], node):
                self._race(writer[cell], node, "writes", "reads", cell)
            readers.setdefault(cell, []).append(node)
            value.append(found)
        return value

    def _store(self, node: int, rank: int, at: int, value: list[Cell]) -> None:
        memory, writer, readers = self._memory[rank], self._writer[rank], self._readers[rank]
        for cell, one in enumerate(value, start=at):
            earlier = readers.pop(cell, None)
            if earlier:  # each is known to come after the last write, which so needs no look of its own
                for reader in earlier:
                    if reader != node and not self._ordered(reader, node):
                        self._race(reader, node, "reads", "writes", cell)
            elif writer[cell] != NONE and not self._ordered(writer[cell], node):
                self._race(writer[cell], node, "writes", "writes", cell)
            writer[cell] = node
            memory[cell] = one

    def _ordered(self, first: int, then: int) -> bool:
        """Whether the program says that `first` ends before `then` starts."""
        program, position = self._program, self._position
        if program.line[first] == program.line[then] != NONE:
            return first < then
        if first == program.feed[then] or first in program.before[then]:
            return True
        oldest = position[first]
        seen = {then}
        queue = [then]  # nearest first: what orders two accesses is seldom far
        for node in queue:
            for one in (*program.before[node], program.feed[node]):
                if one == first:
                    return True
                if one != NONE and position[one] > oldest and one not in seen:
                    seen.add(one)
                    queue.append(one)
        return False

    def _race(self, a: int, b: int, what_a: str, what_b: str, cell: int) -> None:
        names = f"{self._program.name(a)} {what_a} and {self._program.name(b)} {what_b}"
        raise _FaultError(f"{names} {self._place(cell)}, and nothing orders them")

    def _place(self, cell: int) -> str:
        for start in (self._program.input_at, self._program.output_at):
            if start <= cell < start + self._program.cells:
                return self._bytes(cell - start)
        return f"scratch cell {cell - self._program.memory}"

    def _bytes(self, cell: int) -> str:
        return f"bytes {self._program.cuts[cell]}..{self._program.cuts[cell + 1]}"


def _judge(program: Program, memory: list[list[Cell | None]], wanted: Wanted) -> str | None:
    cuts, start = program.cuts, program.output_at
    once: list[list[int]] = []
    more: list[list[int]] = []
    for rank, own in enumerate(memory):
        once.append([])
        more.append([])
        for cell, found in enumerate(own[start : start + program.cells]):
            lo, hi = cuts[cell], cuts[cell + 1]
            if lo < hi and wanted(rank, lo, hi) and (found is None or found[0] != cell):
                place = f"{program.file(rank)}: rank {rank}, bytes {lo}..{hi}"
                if found is None:
                    return f"{place}: nothing is written there"
                return f"{place}: hold bytes {cuts[found[0]]}..{cuts[found[0] + 1]}"
            once[-1].append(found[1] if found else 0)
            more[-1].append(found[2] if found else 0)
    violation = judge(np.array(cuts, dtype=np.int64), once, more, wanted)
    return None if violation is None else f"{program.file(violation.rank)}: {violation}"
