"""Output of several ranks that a launcher wrote into one stream, line by line again.

A launcher's tag may stand in the middle of a line, where one rank was interrupted by another. The parts of each rank's
lines are put together; a line takes the place of its end. What carries no tag stays where it is.
"""

import re

_TAG = re.compile(r"\[\d+,(\d+)\](?:<std(?:out|err)>)?: ?")
"""What `mpirun --tag-output` writes where a rank begins to speak."""
_LABEL = re.compile(r"^\s*\d+: ?")
"""What `srun --label` writes before each line."""


def plain(line: str) -> str:
    """A line without what a launcher wrote into it."""
    return _LABEL.sub("", _TAG.sub("", line))


def untangle(text: str) -> list[str]:
    """The lines of the text, each of one rank alone, without tags.

    A piece that ends where the next tag begins goes on in the next piece of the same rank.
    """
    lines: list[str] = []
    pending: dict[str, str] = {}
    for line in text.split("\n"):
        pieces = _TAG.split(line.rstrip("\r"))
        if len(pieces) == 1:
            lines.append(plain(pieces[0]))
            continue
        if pieces[0]:
            lines.append(pieces[0])
        ranks, bodies = pieces[1::2], pieces[2::2]
        for rank, body in zip(ranks[:-1], bodies[:-1], strict=True):
            pending[rank] = pending.get(rank, "") + body
        lines.append(pending.pop(ranks[-1], "") + bodies[-1])
    lines += [rest for rest in pending.values() if rest]
    return lines
