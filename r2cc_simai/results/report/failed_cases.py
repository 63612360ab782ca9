"""The cases that failed, and why."""

from collections.abc import Sequence

from r2cc_simai.results.report import facets, labels, units
from r2cc_simai.results.report.document import Cell, Section, Table, Text, columns
from r2cc_simai.results.table import ERROR, Row

SLUG = "failed-cases"


def build(rows: Sequence[Row]) -> Section | None:
    """Return the section; None where no case failed."""
    failed = [row for row in rows if row.metric == ERROR]
    if not failed:
        return None
    finding = said(len(failed))
    text = f"{finding} There are no results of them, and the sections below do not count them."
    titles = columns("<scenario", "<cluster", "<failure", "seed", "<strategy", "<backend", "size", "<reason")
    table = Table("Cases without a result", titles, tuple(_line(row) for row in failed))
    return Section(SLUG, "Failed cases", (Text(text), table), (finding,), facets.of_rows(failed))


def said(count: int) -> str:
    """Return how many cases failed, as a sentence."""
    return "1 case failed." if count == 1 else f"{count} cases failed."


def _line(row: Row) -> tuple[Cell, ...]:
    return (
        Cell(row.scenario),
        Cell(row.cluster),
        Cell(labels.short_pattern(row.pattern) or units.DASH),
        Cell(units.DASH if row.seed is None else f"{row.seed}"),
        Cell(labels.strategy_name(row.strategy)),
        Cell(row.backend),
        Cell(units.size(row.bytes) if row.bytes else units.DASH),
        Cell(row.error, tone="bad"),
    )
