"""What an exported file says, whatever its format: operations on the memories of ranks, and their order."""

from collections.abc import Callable
from dataclasses import dataclass, field

NONE = -1


@dataclass(eq=False)
class Program:
    """Operations of all ranks. Memory is counted in cells; cell i of a buffer is the bytes `cuts[i]:cuts[i + 1]`.

    Every rank has `memory` cells. The collective's input starts at cell `input_at`, its output at `output_at` (the same
    in place), both as long as the buffer. Operation i belongs to `rank[i]` and makes a value of `width[i]` cells: what
    operation `feed[i]` made (a message, or a receive that was set aside), plus its own rank's cells from `read[i]` on,
    plus, where `adds[i]`, those from `write[i]` on; then it stores the value from `write[i]` on. -1: not.

    `before[i]` are operations that must have ended, as the file says; an operation also starts after its feed. Pairs in
    `blocked` (waits, for) come from limited room in a connection: they can stop a run but do not order accesses.
    Operations of one `line` (-1: none) run in the order of their numbers, which `before` says as well.
    """

    n_ranks: int
    cuts: list[int]
    memory: int
    input_at: int
    output_at: int
    name: Callable[[int], str]  # of an operation, with its file
    file: Callable[[int], str]  # of a rank
    rank: list[int] = field(default_factory=list)
    feed: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    write: list[int] = field(default_factory=list)
    width: list[int] = field(default_factory=list)
    adds: list[bool] = field(default_factory=list)
    before: list[tuple[int, ...]] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    blocked: list[tuple[int, int]] = field(default_factory=list)

    def add(
        self,
        rank: int,
        width: int,
        *,
        read: int = NONE,
        write: int = NONE,
        adds: bool = False,
        before: tuple[int, ...] = (),
        line: int = NONE,
    ) -> int:
        """Appends an operation; its feed is set later. Returns its number."""
        self.rank.append(rank)
        self.feed.append(NONE)
        self.read.append(read)
        self.write.append(write)
        self.width.append(width)
        self.adds.append(adds)
        self.before.append(before)
        self.line.append(line)
        return len(self.rank) - 1

    @property
    def cells(self) -> int:
        """Cells of a buffer."""
        return len(self.cuts) - 1
