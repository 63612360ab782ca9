"""The table of nccl-tests: what its heading says of the columns, and a row read by it.

13 values a row: size, count, type, redop, root, then time, algbw, busbw and #wrong out-of-place and
in-place. With per-iteration timing each half has i_min, i_max, i_p99 and i_cv% as well (21 values), and
with timestamps a date and a time of day follow. The heading names them, so it is the heading that is read.
"""

import re
from dataclasses import dataclass
from math import isfinite

from r2cc_simai.measured.log_text import LogText
from r2cc_simai.measured.model import ColumnResult, SizeResult

HEADING = re.compile(r"^#\s+size\s+count\s+type\b")
ROW = re.compile(r"^\s*\d+\s+\d+(\s|$)")

_HALF = r"(?:time|cputime)\s+algbw\s+busbw\s+#wrong(?:\s+i_min\s+i_max\s+i_p99\s+i_cv%)?"
WHOLE_HEADING = re.compile(rf"#\s+size\s+count\s+type\s+redop\s+root\s+{_HALF}\s+{_HALF}(?:\s+timestamp)?(?!\S)")
"""A heading as nccl-tests prints it, wherever in a line."""

PADDED = (12, 26, 36, 44, 52, 61, 69, 77, 85)
"""Columns at which nccl-tests ends the names of its heading, from `size` to the first `#wrong`."""
_TIMES = ("time", "cputime")
_LEADING = ("size", "count", "type", "redop", "root")


@dataclass(frozen=True)
class TableLayout:
    """Names of the columns in order; the two halves begin at `halves`."""

    names: tuple[str, ...]
    halves: tuple[int, int]
    ends: tuple[int, ...] = ()
    """Column at which each name ends in the heading, from its '#'."""

    @property
    def n_values(self) -> int:
        """Words in a row; a timestamp is two."""
        return len(self.names) + self.names.count("timestamp")

    def lined_up(self, row: str) -> bool:
        """Whether each value of a row ends below its name, as `printf` with the heading's widths leaves it.

        A value wider than its column moves those behind it, N/A is printed one character short, and a launcher's tag
        may have taken the blank at the start of the row. A heading that is not padded says nothing.
        """
        if self.ends[: len(PADDED)] != PADDED:
            return True
        words = list(re.finditer(r"\S+", row))
        return any(self._lined_up(words, moved) for moved in (0, -1))

    def _lined_up(self, words: list[re.Match[str]], moved: int) -> bool:
        before = 0
        for name, end, word in zip(self.names, self.ends, words, strict=False):
            if name == "timestamp":
                break
            width = end - before - (2 if before else 0)
            moved += max(0, len(word[0]) - width) - (name == "#wrong" and word[0] == "N/A")
            if word.end() != end + moved:
                return False
            before = end
        return True

    @property
    def cpu_time(self) -> bool:
        """Whether the times are those of the CPU (`-C`)."""
        return "cputime" in self.names


def read_heading(log: LogText, index: int) -> TableLayout:
    """The layout that a heading announces. Other lines may have run into its line.

    Raises:
        InputError: columns are missing.
    """
    line = log.lines[index]
    whole = WHOLE_HEADING.search(line)
    text = whole[0] if whole else line
    names = tuple(text.lstrip("# ").split())
    halves = [i for i, name in enumerate(names) if name in _TIMES]
    complete = all({"algbw", "busbw", "#wrong"} <= set(_half(names, start)) for start in halves)
    if names[: len(_LEADING)] != _LEADING or len(halves) != 2 or not complete:
        raise log.error(index, "the columns size count type redop root and twice time algbw busbw #wrong")
    ends = tuple(match.end() for match in re.finditer(r"[^\s#]\S*|#wrong", text))
    return TableLayout(names, (halves[0], halves[1]), ends)


def read_row(log: LogText, index: int, layout: TableLayout, text: str | None = None) -> SizeResult:
    """A row as the layout orders it, from a line or from `text`, which that line ends.

    Raises:
        InputError: missing, surplus or odd values.
    """
    words = (log.lines[index] if text is None else text).split()
    if len(words) != layout.n_values:
        raise log.error(index, f"{layout.n_values} values as in the table's heading")
    try:
        root = int(words[4])
        columns = [_column(words, layout.names, start) for start in layout.halves]
    except ValueError as error:
        raise log.error(index, "numbers (or N/A) in the result columns and the root") from error
    if columns == [None, None]:
        raise log.error(index, "a result out-of-place or in-place")
    return SizeResult(int(words[0]), int(words[1]), words[2], words[3], root, columns[0], columns[1])


def _half(names: tuple[str, ...], start: int) -> tuple[str, ...]:
    """The names from a time column to the next."""
    end = next((i for i in range(start + 1, len(names)) if names[i] in _TIMES), len(names))
    return names[start:end]


def _column(words: list[str], names: tuple[str, ...], start: int) -> ColumnResult | None:
    values = dict(zip(_half(names, start), words[start:], strict=False))
    if words[start] == "N/A":
        return None
    wrong = values["#wrong"]
    return column_result(
        float(words[start]),
        float(values["algbw"]),
        float(values["busbw"]),
        None if wrong == "N/A" else float(wrong),
    )


def column_result(time_us: float, algbw_gbytes: float, busbw_gbytes: float, wrong: float | None) -> ColumnResult:
    """A result from the units of nccl-tests (us, GB/s). Raises ValueError on what is no measured number."""
    if not all(isfinite(value) and value >= 0 for value in (time_us, algbw_gbytes, busbw_gbytes, wrong or 0)):
        raise ValueError(f"time {time_us} us, {algbw_gbytes} GB/s, {busbw_gbytes} GB/s, {wrong} wrong")
    count = None if wrong is None else int(wrong)
    return ColumnResult(time_us / 1e6, algbw_gbytes * 1e9, busbw_gbytes * 1e9, count)
