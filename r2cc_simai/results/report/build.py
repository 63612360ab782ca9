"""Puts a report together: sections in reading order, then Markdown, HTML and the plots' files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from r2cc_simai.results.files import replace_file
from r2cc_simai.results.report import (
    figure7,
    generic,
    lab_comparison,
    lab_training,
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
from r2cc_simai.results.report.document import Plot, Section
from r2cc_simai.results.report.html import render_html
from r2cc_simai.results.report.markdown import render_markdown
from r2cc_simai.results.table import Row

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
)
"""The sections that know their rows, in reading order; the first that claims a row has it."""


BANDWIDTHS = ("algbw", "busbw")
"""Times said otherwise: of a scenario whose times have a section, they are in the results table alone."""


@dataclass(frozen=True)
class ReportPaths:
    """The files of a report."""

    markdown: Path
    html: Path
    plots: tuple[Path, ...]


def build_report(
    rows: Sequence[Row], out_dir: Path, title: str, timings: Mapping[str, float] | None = None
) -> ReportPaths:
    """Write `report.md`, `report.html` and `plots/*.svg` to `out_dir` and return their paths.

    The HTML page is one file that refers to nothing outside itself. Files depend on the rows alone, byte for
    byte, unless `timings` (wall time in seconds by case) are given.
    Raises InputError when the published figures that ship with the project cannot be read.
    """
    sections = report_sections(rows, timings)
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


def report_sections(rows: Sequence[Row], timings: Mapping[str, float] | None = None) -> list[Section]:
    """Return the sections that the rows give, in reading order."""
    left = list(rows)
    body: list[Section] = []
    for kind in KINDS:
        claimed = [row for row in left if kind.claims(row)]
        left = [row for row in left if not kind.claims(row)]
        if claimed:
            body.append(kind.build(claimed))
    told = {row.scenario for row in rows if any(kind.claims(row) for kind in KINDS)}
    left = [row for row in left if row.scenario not in told or row.metric not in BANDWIDTHS]
    for scenario in dict.fromkeys(row.scenario for row in left):
        body.append(generic.build(scenario, [row for row in left if row.scenario == scenario]))
    accuracy = overview.accuracy(rows)
    judged = [accuracy] if accuracy else []
    findings = tuple(finding for section in body + judged for finding in section.findings)
    head = replace(overview.overview(rows), findings=findings)
    return [head, *judged, *body, overview.reading(rows, timings)]
