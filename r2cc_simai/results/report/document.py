"""What a report consists of, before it is Markdown or HTML.

Text may hold code spans between backticks and nothing else of any markup.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from r2cc_simai.results.table import Row

Tone = Literal["", "ok", "bad", "muted"]
Facets = Mapping[str, tuple[str, ...]]
"""What a part of the report is about, by which readers filter it: `{"cluster": ("h100x2",), ...}`; see facets.py."""


@dataclass(frozen=True)
class Cell:
    """A table cell: its text, a small remark after it (in lines), whether it is good or bad news, and a file to open.

    `link` is relative to the report's folder.
    """

    text: str
    note: str = ""
    tone: Tone = ""
    link: str = ""


@dataclass(frozen=True)
class Column:
    """A table column; numeric ones are aligned to the right.

    `strategy` is the strategy that the column alone is about, named without its options.
    """

    title: str
    numeric: bool = True
    strategy: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table and the line above it; `facets` where it is about a part of its section's results alone."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Plot:
    """A plot: name of its file, what it shows, and the SVG document."""

    slug: str
    caption: str
    svg: str


Block = Text | Heading | Table | Plot


@dataclass(frozen=True)
class Section:
    """A section of the report; its findings also stand at the head of the report."""

    slug: str
    title: str
    blocks: tuple[Block, ...]
    findings: tuple[str, ...] = ()
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class SectionKind:
    """A kind of section: which rows it is about, and how it is made of them (at least one)."""

    claims: Callable[[Row], bool]
    build: Callable[[Sequence[Row]], Section]


def columns(*titles: str) -> tuple[Column, ...]:
    """Return columns by title; one that starts with "<" is text, aligned to the left."""
    return tuple(Column(title.removeprefix("<"), numeric=not title.startswith("<")) for title in titles)
