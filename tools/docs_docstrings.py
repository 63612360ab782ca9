"""Docstrings of this project as reStructuredText: `x` is code, and nothing else is markup.

Kept as they are: the heads `Raises:` and `Returns:`, lists, and blocks that stand indented.
"""

import re

_CODE = re.compile(r"(``[^`]+``|`[^`]+`)")
_SECTION = re.compile(r"^(?:Raises|Returns|Yields|Args):$")
_ITEM = re.compile(r"^\s*[-*] ")


def as_rst(lines: list[str]) -> list[str]:
    """The lines of a docstring."""
    found: list[str] = []
    literal = section = False
    for number, line in enumerate(lines):
        indented = line.startswith(" ")
        if line.strip() and not indented:
            literal = False
            section = _SECTION.match(line) is not None
        if indented and line.strip() and not literal and not section and not "".join(found[-1:]).strip():
            found += ["::", ""]  # an indented block stands for itself
            literal = True
        if literal or not line.strip():
            found.append(line)
            continue
        literal = line.rstrip().endswith("::")
        after_text = number > 0 and lines[number - 1].strip() and not _ITEM.match(lines[number - 1])
        if indented and not section and after_text and not lines[number - 1].startswith(" "):
            line = line.lstrip()  # a continuation, no definition
        found.append(_SECTION.sub(lambda m: m[0], line) if _SECTION.match(line) else _line(line))
    return found


def _line(line: str) -> str:
    return "".join(_piece(piece) for piece in _CODE.split(line))


def _piece(piece: str) -> str:
    if piece.startswith("``"):
        return piece
    if piece.startswith("`") and len(piece) > 2:
        return f"`{piece}`"
    bullet = _ITEM.match(piece)
    head = bullet[0] if bullet else ""
    return head + re.sub(r"([*|`]|_(?=\W|$))", r"\\\1", piece[len(head) :])
