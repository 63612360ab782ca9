"""Puts a report together: sections in reading order, then Markdown, HTML and the plots' files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from r2cc_simai.results.files import replace_file
from r2cc_simai.results.report import (
    bound_gap,
    cluster_failures,
    drawn_failures,
    facets,
    failed_cases,
    figure7,
    generic,
    lab_comparison,
    lab_training,
    labels,
    links,
    nic_bytes,
    overheads,
    overview,
    r7525_bytes,
    r7525_cut,
    r7525_healthy,
    r7525_strategies,
    table1,
    table4,
    training_concurrent,
    training_day,
    training_failure_time,
    training_h100,
    training_servers,
)
from r2cc_simai.results.report.document import Block, Plot, Section, Table
from r2cc_simai.results.report.html import render_html
from r2cc_simai.results.report.markdown import render_markdown
from r2cc_simai.results.report.named_clusters import named_clusters
from r2cc_simai.results.table import ERROR, Row

KINDS = (
    figure7.KIND,
    table1.KIND,
    table4.KIND,
    r7525_healthy.KIND,
    r7525_strategies.KIND,
    r7525_cut.KIND,
    r7525_bytes.KIND,
    lab_comparison.KIND,
    lab_training.KIND,
    training_h100.KIND,
    training_servers.KIND,
    *training_failure_time.KINDS,
    training_concurrent.KIND,
    training_day.KIND,
    drawn_failures.KIND,
)
"""The sections that know their rows, in reading order; the first that claims a row has it."""


BANDWIDTHS = ("algbw", "busbw")
"""Times said otherwise: of a scenario whose times have a section, they are in the results table alone."""

MOST_ROWS = 400
"""Rows of a table at most: a report sums up, the results table has everything."""


@dataclass(frozen=True)
class ReportPaths:
    """The files of a report."""

    markdown: Path
    html: Path
    plots: tuple[Path, ...]


def build_report(
    rows: Sequence[Row],
    out_dir: Path,
    title: str,
    timings: Mapping[str, float] | None = None,
    *,
    run_dir: Path | None = None,
    lead: Sequence[Section] = (),
    notice: str = "",
) -> ReportPaths:
    """Write `report.md`, `report.html` and `plots/*.svg` to `out_dir` and return their paths.

    The HTML page is one file that loads nothing from outside itself; it links to the timelines in `run_dir` (`out_dir`
    by default), whose manifest says in which files clusters are described. `lead` are sections that stand before all
    results, `notice` a sentence on top. Files depend on what is given alone, byte for byte; `timings` are wall times in
    seconds by case.
    Raises InputError when the published figures that ship with the project cannot be read.
    """
    home = run_dir or out_dir
    sections = report_sections(rows, timings, lead=lead, notice=notice, clusters=named_clusters(home))
    timelines = links.build(home, out_dir)
    if timelines:
        sections.insert(-1, timelines)
    plots = [block for section in sections for block in section.blocks if isinstance(block, Plot)]
    folder = out_dir / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    paths = ReportPaths(
        out_dir / "report.md", out_dir / "report.html", tuple(folder / f"{plot.slug}.svg" for plot in plots)
    )
    for plot, path in zip(plots, paths.plots, strict=True):
        replace_file(path, plot.svg.encode())
    replace_file(paths.markdown, render_markdown(title, sections).encode())
    replace_file(paths.html, render_html(title, sections).encode())
    return paths


def report_sections(
    rows: Sequence[Row],
    timings: Mapping[str, float] | None = None,
    *,
    lead: Sequence[Section] = (),
    notice: str = "",
    clusters: Mapping[str, str] | None = None,
) -> list[Section]:
    """Return the sections that the rows give, in reading order: the overview first, the explanations last.

    `clusters` are the files of clusters that have one, by the clusters' names.
    """
    results = [row for row in rows if row.metric != ERROR]
    failures, glance, accuracy = failed_cases.build(rows), overheads.build(results), overview.accuracy(results)
    below = [cluster_failures.build(results, clusters), bound_gap.build(results)]
    body = [section for section in (*_body(results), *below) if section]
    top = [section for section in (*lead, failures, glance, accuracy) if section]
    told = [section for section in (*lead, failures, *body, accuracy) if section]
    findings = tuple(finding for section in told for finding in section.findings)
    head = replace(overview.overview(rows, notice), findings=findings, facets=facets.of_rows(rows))
    return [_bounded(section) for section in (head, *top, *body, overview.reading(results, timings))]


def _body(rows: Sequence[Row]) -> list[Section]:
    """Return the sections on the results themselves: known scenarios, all others, bytes per NIC."""
    left = list(rows)
    body: list[Section] = []
    for kind in KINDS:
        claimed = [row for row in left if kind.claims(row)]
        left = [row for row in left if not kind.claims(row)]
        if claimed:
            body.append(replace(kind.build(claimed), facets=facets.of_rows(claimed)))
    told = {row.scenario for row in rows if any(kind.claims(row) for kind in KINDS)}
    left = [row for row in left if row.scenario not in told or row.metric not in BANDWIDTHS]
    counted = [row for row in left if labels.counter(row.metric)]
    plain = [row for row in left if not labels.counter(row.metric)]
    for scenario in dict.fromkeys(row.scenario for row in plain):
        own = [row for row in plain if row.scenario == scenario]
        body.append(replace(generic.build(scenario, own), facets=facets.of_rows(own)))
    bytes_per_nic = nic_bytes.build(counted)
    return [*body, bytes_per_nic] if bytes_per_nic else body


def _bounded(section: Section) -> Section:
    return replace(section, blocks=tuple(map(_bounded_block, section.blocks)))


def _bounded_block(block: Block) -> Block:
    if not isinstance(block, Table) or len(block.rows) <= MOST_ROWS:
        return block
    caption = f"{block.caption}; the first {MOST_ROWS} of {len(block.rows)} rows, the results table has all"
    return replace(block, caption=caption, rows=block.rows[:MOST_ROWS])
