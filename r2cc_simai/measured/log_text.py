"""A log as numbered lines, and the one-line errors that point into it."""

import re
from dataclasses import dataclass
from pathlib import Path

from r2cc_simai.errors import InputError

MIB = 1 << 20

_TAG = re.compile(r"^(?:\[\d+,\d+\](?:<std(?:out|err)>)?:|\s*\d+:)\s?")
"""What `mpirun --tag-output` and `srun --label` put before each line."""


@dataclass(frozen=True)
class LogText:
    """A log's name and its lines, without what a launcher put before them."""

    name: str
    lines: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    """Number of each line in the file from 1; where there are none, lines count on."""
    unended: frozenset[int] = frozenset()
    """Indices of lines whose line end never came: the last one of a file that was cut, or a rank's last words."""

    def number(self, index: int) -> int:
        """Number in the file of a line's index."""
        return self.numbers[index] if self.numbers else index + 1

    def where(self, index: int) -> str:
        """`file:line` of a line's index."""
        return f"{self.name}:{self.number(index)}"

    def error(self, index: int, expected: str) -> InputError:
        """An error at a line, which it quotes."""
        return InputError(f"{self.where(index)}: expected {expected}, found {shorten(self.lines[index])}")

    def truncated(self, expected: str) -> InputError:
        """An error at the end of the log, where something that should have followed is missing."""
        last = max((i for i, line in enumerate(self.lines) if line.strip()), default=0)
        return InputError(f"{self.where(last)}: expected {expected} before the end of the log")

    def find(self, pattern: re.Pattern[str]) -> tuple[int, re.Match[str]] | None:
        """The first line that the pattern matches, as (index, match)."""
        return next(iter(self.find_all(pattern)), None)

    def find_all(self, pattern: re.Pattern[str]) -> list[tuple[int, re.Match[str]]]:
        """Every line that the pattern matches, as (index, match)."""
        matches = ((index, pattern.search(line)) for index, line in enumerate(self.lines))
        return [(index, match) for index, match in matches if match is not None]

    def require(self, pattern: re.Pattern[str], expected: str) -> tuple[int, re.Match[str]]:
        """As `find`; raises InputError when no line matches."""
        found = self.find(pattern)
        if found is None:
            raise self.truncated(expected)
        return found


def log_text(name: str, text: str) -> LogText:
    """A log from its text."""
    return LogText(name, tuple(_TAG.sub("", line.rstrip("\r")) for line in text.rstrip().split("\n")))


def read_text(path: Path) -> str:
    """The file's text; bytes that are no UTF-8 become replacement characters.

    Raises InputError when the file cannot be read or is empty.
    """
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not text.strip():
        raise InputError(f"{path}:1: expected a log, found an empty file")
    return text


def shorten(text: str, limit: int = 60) -> str:
    """The text quoted on one line, cut to a readable length."""
    text = text.strip()
    return repr(text if len(text) <= limit else text[: limit - 2] + "..")
