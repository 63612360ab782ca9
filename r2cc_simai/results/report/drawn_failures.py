"""Drawn failures: what they cost under each strategy, which of them cost most, and how sure that is."""

from collections.abc import Sequence

from r2cc_simai.results.report import drawn_plots, drawn_tables, drawn_words
from r2cc_simai.results.report.document import Block, Heading, Section, SectionKind, Text
from r2cc_simai.results.statistics import Study, is_drawn, studies
from r2cc_simai.results.table import Row

DETAILED = 6
"""Up to so many cases have tables and plots of their own."""
FEW = 3
"""Up to so many cases have a finding each."""

claims = is_drawn


def build(rows: Sequence[Row]) -> Section:
    """Return the section: all cases in a table, then the cases one by one, as far as they are few."""
    found = studies(rows)
    told = [study for study in found if not study.nothing_happened]
    blocks: list[Block] = [Text(drawn_words.METHOD)] if told else []
    if len(found) > 1 or not told:
        blocks.append(drawn_tables.all_cases(found))
    for number, study in enumerate(told[:DETAILED]):
        blocks += _details(study, number, found)
    if len(told) > DETAILED:
        blocks.append(Text(f"{len(told) - DETAILED} more cases: `r2cc-simai stats` prints the same of each."))
    shown = told if len(told) <= FEW else []
    return Section(
        "drawn-failures", "Drawn failures", tuple(blocks), tuple(drawn_words.finding(one, shown) for one in shown)
    )


def _details(study: Study, number: int, others: Sequence[Study]) -> list[Block]:
    blocks: list[Block] = [Heading(drawn_words.name(study, others)), Text(drawn_words.extent(study))]
    if study.seeds > 1:
        blocks.append(drawn_plots.distributions(study, f"drawn-overhead-{number}"))
    blocks += drawn_tables.overheads(study)
    if study.monthly:
        blocks.append(drawn_tables.monthly(study))
    if study.causes:
        blocks += [drawn_plots.causes(study, f"drawn-causes-{number}"), drawn_tables.causes(study)]
    if study.differences:
        blocks.append(drawn_tables.differences(study))
    return blocks


KIND = SectionKind(claims, build)
