"""A log as the program wrote it: without colours, line ends of other systems, and what launchers put before lines."""

import re
from dataclasses import replace

from r2cc_simai.measured.log_text import LogText
from r2cc_simai.measured.untangle import untangled

_COLOUR = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""Escape sequences of a terminal: colours and cursor movements, titles, single-character ones."""

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_DAY = rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?"
_MONTH = rf"(?:[A-Z][a-z]{{2}} )?[A-Z][a-z]{{2}} [ \d]?\d {_CLOCK}(?: \d{{4}})?"
_STAMP = rf"(?:{_DAY}|{_MONTH}|{_CLOCK})"
_TIME = re.compile(rf"^(?:\[{_STAMP}\]|{_STAMP})(?:<std(?:out|err)>)?:? (?=\s*\S)")
"""A time before a line: ISO 8601, that of `date`, syslog and `ts`, or a time of day; in brackets or not."""

_SPEAKER = re.compile(
    r"^(?:\[\d+\] |\[[\w./-]+\] |[\w.-]+ *\| |[\w.-]+: )"
    r"(?=\s*(?:#|\d+\s+\d+\s+[a-z]\w*\s+[a-z]+\s+-?\d)|\[nccl-tests\])"
)
"""A rank, host or container before a line of nccl-tests (`mpiexec -prepend-rank`, pdsh, docker compose, kubectl)."""


def clean_log(name: str, text: str) -> LogText:
    """The log of a text; lines keep their numbers. A carriage return inside a line counts as a blank."""
    text = _COLOUR.sub("", text.removeprefix("\ufeff").replace("\x00", ""))
    body = text.rstrip(" \t\n\r")
    ended = any(end in text[len(body) :] for end in "\n\r")
    lines = [replace(line, ended=line.ended or (ended and not line.torn)) for line in untangled(body)]
    return LogText(
        name,
        tuple(_bare(line.text) for line in lines),
        tuple(line.number for line in lines),
        frozenset(index for index, line in enumerate(lines) if not line.ended),
    )


def _bare(line: str) -> str:
    """A line without the times and names before it."""
    line = line.replace("\r", " ")
    for _ in range(3):  # a time, a name, and a time again
        shorter = _SPEAKER.sub("", _TIME.sub("", line, count=1), count=1)
        if shorter == line:
            break
        line = shorter
    return line
