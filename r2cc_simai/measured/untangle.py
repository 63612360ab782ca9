"""Output of several ranks that a launcher wrote into one stream, line by line again.

A launcher's tag may stand in the middle of a line, where one rank was interrupted by another. The parts of each rank's
lines are put together; a line takes the place of its end. What carries no tag stays where it is.
"""

import re
from dataclasses import dataclass

_DATE = r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
_TAG = re.compile(_DATE + r"\[(?:[\w.-]+@)?\d+,(\d+)\](?:\[[\w.:-]+\])?(?:<std(?:out|err)>)?: ?")
"""What Open MPI writes where a rank begins to speak (`--tag-output`, `--output tag`, with or without the time)."""
_LABEL = re.compile(r"^\s*\d+: ?")
"""What `srun --label` writes before each line."""


@dataclass(frozen=True)
class Line:
    """A line, and its number in the text from 1. `ended` is False for one whose line end never came.

    Of these one is `torn` where another rank's line follows it.
    """

    number: int
    text: str
    ended: bool = True
    torn: bool = False


def plain(line: str) -> str:
    """A line without what a launcher wrote into it."""
    return _LABEL.sub("", _TAG.sub("", line))


def untangle(text: str) -> list[str]:
    """The lines of the text, each of one rank alone, without tags.

    A piece that ends where the next tag begins goes on in the next piece of the same rank.
    """
    return [line.text for line in untangled(text)]


def untangled(text: str) -> list[Line]:
    """As `untangle`, with the number of each line."""
    lines: list[Line] = []
    pending: dict[str, Line] = {}
    parts = text.split("\n")
    for number, line in enumerate(parts, start=1):
        ended = number < len(parts)
        pieces = _TAG.split(line.rstrip("\r"))
        if len(pieces) == 1:
            lines.append(Line(number, plain(pieces[0]), ended))
            continue
        if pieces[0]:
            lines.append(Line(number, pieces[0]))
        ranks, bodies = pieces[1::2], pieces[2::2]
        for rank, body in zip(ranks[:-1], bodies[:-1], strict=True):
            pending[rank] = Line(number, _begun(pending, rank) + body, ended=False, torn=True)
        lines.append(Line(number, _begun(pending, ranks[-1]) + bodies[-1], ended))
        pending.pop(ranks[-1], None)
    lines += [rest for rest in pending.values() if rest.text]
    return lines


def _begun(pending: dict[str, Line], rank: str) -> str:
    return pending[rank].text if rank in pending else ""
