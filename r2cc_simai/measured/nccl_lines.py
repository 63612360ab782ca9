"""Lines of an nccl-tests table that may have been torn: the rows that are certain, and why others are not.

nccl-tests prints a row piece by piece, and nothing keeps two ranks that share a stream from writing into each other's
lines. A row is read where the line holds it and nothing else, and no other rank's line is under way. When A is
interrupted after x characters of its row, by a row of B::

    A[0,x) B[0,L)      this line is longer than a row
    A[x,L)             the rest comes later, or behind a part of B's next row: B[0,y) A[x,L)

the last form is indistinguishable from a row when y = x. What is under way is therefore counted in characters: a line
of n characters adds n - L, and rows are read again once the sum is zero. Where the length L of a row is not known, or
what was interrupted is no row, nothing is read until a line shows that every rank is through with its table.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from r2cc_simai.errors import InputError
from r2cc_simai.measured.log_text import LogText
from r2cc_simai.measured.model import SizeResult
from r2cc_simai.measured.nccl_plausible import plausible
from r2cc_simai.measured.nccl_table import ROW, TableLayout, read_row
from r2cc_simai.measured.skipped import Skipped

CUT_SHORT = "row cut short"
PART = "part of a row"
TORN = "lines of several ranks run into one another"
GLUED = "a row and another line run into one another"
TWICE = "the same row again"
OUT_OF_LINE = "values that do not stand below their headings"

HEAD = re.compile(r"(?<!\S)\d+ +\d+ +[a-z]\w* +[a-z]+ +-?\d+(?!\S)")
"""Size, count, type, redop and root: how a row begins."""
_MESSAGE = re.compile(r"(?:\[[\d :.,-]+\] )?[A-Za-z][\w.-]{0,255}:\d+:\d+ \[\d+\] .*$")
"""What NCCL itself says, `host:pid:thread [device] NCCL ..`, wherever in a line it begins."""
_COMMENT = re.compile(
    r"\b(?:nThread|nGpus|minBytes|maxBytes|unalign|algbw|busbw|nccl-headers|out-of-place)\b|Using devices|"
    r"Rank +\d+ Group|Pid +\d+ on|Out of bounds|Avg bus|Collective test|\((?:GB/s|elements)\)"
)
"""What nccl-tests says in its comments."""
_OF_A_ROW = re.compile(r"[\d.e+\s:N/A-]*(?:[a-z]\w*\s+)?(?:[a-z]*\s+)?[\d.e+\s:N/A-]*")
"""Text that may be a part of a row: numbers, N/A, at most the end of a type and a redop."""
_TAIL = re.compile(r"(?:(?:^|\s)(?:\d[\d.e+-]*|N/A)){3,}\s*$|^\s*(?:(?:\d[\d.e+-]*|N/A)(?:\s+|$))+$")
"""The end of a row: three numbers or more, or fewer and nothing else."""
_VALUE = re.compile(r"-?\d[\d.e+-]*|N/A|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d")
"""What follows the root: a number, N/A, and the two words of a timestamp."""
LAUNCHER = "[nccl-tests]"
"""How a launcher's own lines begin, which repeat what nccl-tests said."""
SHORTEST_ROW = 100
"""Characters: nccl-tests pads its rows to at least 116."""


@dataclass
class RowReader:
    """Reads the rows of one table, line by line."""

    log: LogText
    layout: TableLayout
    skipped: Skipped
    several: bool = False
    """Whether several ranks are known to write into the stream."""
    rows: list[SizeResult] = field(default_factory=list)
    _under_way: float = 0
    """Characters of other lines that have begun and not ended; infinite where their number is unknown."""
    _held: int | None = None
    """Line of a row that a message of NCCL interrupted."""
    _held_text: str = ""
    _seen: set[str] = field(default_factory=set)
    _lengths: set[int] = field(default_factory=set)
    _lined_up: bool | None = None
    """Whether the first row stood below its headings."""

    def following(self, layout: TableLayout) -> "RowReader":
        """The reader of a table that begins while lines of this one may still be under way."""
        left = self._under_way if layout == self.layout else self._under_way and math.inf
        found = RowReader(self.log, layout, self.skipped, self.several, _under_way=left, _lengths=set(self._lengths))
        found._lined_up = self._lined_up
        return found

    def after(self, strays: Iterable[str]) -> None:
        """Rows stood before the table's heading: another rank's, and of one that is not whole the rest may come."""
        for stray in strays:
            self.several = True
            if not self._is_row(stray):
                self._under_way = math.inf

    def settle(self) -> None:
        """Every rank is known to have ended its lines."""
        if self._held is not None:
            self._skip(self._held, CUT_SHORT)
        self._held, self._under_way = None, 0

    def take(self, index: int) -> None:
        """Reads a line of the table, or says why not."""
        line = self.log.lines[index]
        if line.startswith("#"):
            self._comment(index, line)
        elif message := _MESSAGE.search(line):
            self._interrupted(index, line[: message.start()], message[0])
        elif _COMMENT.search(line) and not line.startswith(LAUNCHER):
            self._drop_held()
            self._engulfed(index, line)
        elif self._held is not None and not HEAD.search(line) and self._continued(index, self._held_text + line):
            self._held = None
        elif HEAD.search(line) or ROW.match(line) or _TAIL.search(line):
            self._drop_held()
            self._row_or_part(index, line)

    def _comment(self, index: int, line: str) -> None:
        if HEAD.search(line):
            self._engulfed(index, line)
        elif self._under_way and _TAIL.search(line):
            self._under_way = math.inf

    def _engulfed(self, index: int, line: str) -> None:
        """A row, or a part of one, with a comment or a message: where it is not whole, its rest is still to come."""
        self._skip(index, GLUED)
        self.several = True
        heads = list(HEAD.finditer(line))
        if not heads or not self._is_row(line[heads[-1].start() :]):
            self._under_way = math.inf

    def _interrupted(self, index: int, begun: str, message: str) -> None:
        """A message of NCCL, behind `begun`: the beginning of a row, or the end of one."""
        if HEAD.search(message):
            self._drop_held()
            self._engulfed(index, message)
        elif HEAD.search(begun) or _TAIL.search(begun):
            self._drop_held()
            if self._under_way or not HEAD.match(begun.lstrip()):
                self._skip(index, PART)
                self._under_way += len(begun) if self._under_way else 0
            else:
                self._held, self._held_text = index, begun

    def _continued(self, index: int, whole: str) -> bool:
        """Whether a line ends the row that is held, `whole` with it."""
        ended = index not in self.log.unended
        if not ended or not self._is_row(whole) or not plausible(whole.split(), self.layout):
            return False
        return self._keep(index, whole)

    def _drop_held(self) -> None:
        if self._held is not None:
            self._skip(self._held, CUT_SHORT)
            if self.several:
                self._begin(len(self._held_text))
            self._held = None

    def _row_or_part(self, index: int, line: str) -> None:
        """A line with at least the end of a row in it."""
        words = line.split()
        heads = list(HEAD.finditer(line))
        if self._under_way:
            self._skip(index, TORN)
            self._pass(line)
        elif index in self.log.unended:
            self._skip(index, CUT_SHORT)
        elif "#" in line:
            self._skip(index, GLUED)
            self._begin(line.index("#"))
        elif ROW.match(line) and len(words) == self.layout.n_values:
            self._whole(index, line)
        elif heads and (len(heads) > 1 or len(words) > self.layout.n_values or line[: heads[0].start()].strip()):
            self._glued(index, line, heads[0])
        else:
            self._short(index, line)

    def _whole(self, index: int, line: str) -> None:
        """A line with as many values as a row."""
        if self.several and not (self._is_row(line) and plausible(line.split(), self.layout)):
            self._skip(index, TORN)
            self._under_way = math.inf
        elif self._is_row(line) and self._out_of_line(line):
            self._skip(index, TORN if self.several else OUT_OF_LINE)
            if self.several:
                self._under_way = math.inf
        elif self._keep(index, line):  # values beside a result, such as i_min, are not looked at
            self._lengths.add(len(line))

    def _out_of_line(self, line: str) -> bool:
        """Whether the row breaks the columns that the table's first row kept; a program may pad its rows otherwise."""
        fits = self.layout.lined_up(line)
        if self._lined_up is None and not self.several:
            self._lined_up = fits
        return not fits and self._lined_up is not False

    def _glued(self, index: int, line: str, head: re.Match[str]) -> None:
        """A row with something before or behind it: of another row, or of a line that cannot be mistaken for one."""
        words = line[head.start() :].split()
        row, rest = words[: self.layout.n_values], words[self.layout.n_values :]
        around = f"{line[: head.start()]} {' '.join(rest)}"
        if _OF_A_ROW.fullmatch(around) or HEAD.search(" ".join(words[5:])):
            self._skip(index, TORN)
            self._begin(len(line) - self._row_length)
        elif rest or not self._is_row(" ".join(row)) or not plausible(row, self.layout):
            self._skip(index, GLUED)
        else:
            self._keep(index, " ".join(row))

    def _short(self, index: int, line: str) -> None:
        begins = ROW.match(line) is not None
        complaint = self.log.error(index, f"{self.layout.n_values} values as in the table's heading")
        self._skip(index, CUT_SHORT if begins else PART, complaint)
        if self.several:
            self._begin(len(line) if begins else math.inf)

    def _is_row(self, text: str) -> bool:
        words = text.split()
        rest = words[5:]
        whole = len(words) == self.layout.n_values and HEAD.match(text.lstrip()) is not None
        return whole and all(_VALUE.fullmatch(word) for word in rest)

    def _keep(self, index: int, text: str) -> bool:
        """Whether the text is a row; it is kept unless it was there before."""
        try:
            row = read_row(self.log, index, self.layout, text)
        except InputError as error:
            reason = str(error).partition("expected ")[2].partition(", found")[0]
            self._skip(index, f"expected {reason}", error)
            return False
        words = " ".join(text.split())
        if words in self._seen:
            self._skip(index, TWICE)
        else:
            self._seen.add(words)
            self.rows.append(row)
        return True

    @property
    def _row_length(self) -> float:
        """Characters of a row of this table where all rows so far agree on it, else not a number."""
        (length, *others) = self._lengths or {0}
        return length if not others and length >= SHORTEST_ROW else math.nan

    def _begin(self, characters: float) -> None:
        """Another rank's line is under way, of which so many characters have come."""
        self.several = True
        self._under_way = characters if characters > 0 and not math.isnan(self._row_length) else math.inf

    def _pass(self, line: str) -> None:
        """A line among others that are under way: they are all through when the sum is exactly zero."""
        left = self._under_way + len(line) - self._row_length
        self._under_way = left if left >= 0 and "#" not in line else math.inf

    def _skip(self, index: int, reason: str, complaint: InputError | None = None) -> None:
        self.skipped.line(self.log.number(index), reason, complaint)
