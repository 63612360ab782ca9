"""Markdown pieces of the generated reference."""

import inspect
import re
from collections.abc import Iterable, Sequence

CODE = re.compile(r"(`[^`]*`)")


def text(value: object) -> str:
    """A docstring or help text as one paragraph of Markdown; what Markdown would read as its own is escaped."""
    words = " ".join(inspect.cleandoc(str(value or "")).split())
    parts = CODE.split(words)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>\[\]$#|{}~])", r"\\\1", part) for part in parts)


def code(value: object) -> str:
    """A value as code, safe in the cell of a table."""
    words = str(value).replace("|", "\\|").replace("`", "'")
    return f"`{words}`" if words.strip() else ""


def first_paragraph(doc: str | None) -> str:
    """What a docstring says before its first blank line."""
    return inspect.cleandoc(doc or "").partition("\n\n")[0]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty where there are no rows."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    if not lines:
        return ""
    return "\n".join(["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *lines, ""])


def page(title: str, *parts: str) -> str:
    """A page of blocks, empty ones left out."""
    return "\n\n".join([f"# {title}", *(part.strip() for part in parts if part.strip())]) + "\n"
