"""By what a reader filters a report: scenario, cluster, strategy (without its options) and backend."""

from collections.abc import Callable, Iterable, Sequence

from r2cc_simai.results.report import labels
from r2cc_simai.results.report.document import Facets, Section
from r2cc_simai.results.table import Row

FACETS = ("scenario", "cluster", "strategy", "backend")
"""The facets; a table column with one of these titles says to which value each of its rows belongs."""

_OF_ROW: dict[str, Callable[[Row], str]] = {
    "scenario": lambda row: row.scenario,
    "cluster": lambda row: row.cluster,
    "strategy": lambda row: labels.family_name(row.strategy),
    "backend": lambda row: row.backend,
}


def value(facet: str, text: str) -> str:
    """Return the value that a table cell of the column `facet` stands for: a strategy goes without its options."""
    return " ".join(word for word in text.split() if "=" not in word) if facet == "strategy" else text


def of_rows(rows: Iterable[Row]) -> Facets:
    """Return the values that the rows have, in their order."""
    found: dict[str, dict[str, None]] = {facet: {} for facet in FACETS}
    for row in rows:
        for facet, read in _OF_ROW.items():
            if text := read(row):
                found[facet][text] = None
    return {facet: tuple(values) for facet, values in found.items() if values}


def choices(sections: Sequence[Section]) -> list[tuple[str, list[str]]]:
    """Return what a reader can choose between: each facet with more than one value, the values in natural order."""
    offered = []
    for facet in FACETS:
        values = dict.fromkeys(text for section in sections for text in section.facets.get(facet, ()))
        if len(values) > 1:
            offered.append((facet, sorted(values, key=_rank if facet == "strategy" else labels.natural)))
    return offered


def _rank(name: str) -> tuple[tuple[str, int], ...]:
    known = list(labels.STRATEGY_NAMES.values())
    place = known.index(name) if name in known else len(known)
    return (("", place), *labels.natural(name))
