"""Files beside the report that other programs show: timelines of runs."""

import os
from pathlib import Path
from urllib.parse import quote

from r2cc_simai.results.report import labels, units
from r2cc_simai.results.report.document import Cell, Section, Table, Text, columns

SLUG = "timelines"
TIMELINES = "timelines"
"""The folder in a run folder that holds trace-event JSON files."""


def build(run_dir: Path, out_dir: Path) -> Section | None:
    """Return the section with links to `run_dir`/timelines/*.json, relative to `out_dir`; None where there are none."""
    files = sorted((run_dir / TIMELINES).glob("*.json"), key=lambda path: labels.natural(path.name))
    if not files:
        return None
    text = (
        "Who sends what when, and what waits. To look at a timeline open ui.perfetto.dev in a browser, and there "
        "“Open trace file”; nothing is sent anywhere."
    )
    lines = tuple((Cell(path.stem, link=_link(path, out_dir)), Cell(units.size(path.stat().st_size))) for path in files)
    table = Table("Timelines (trace-event JSON)", columns("<file", "size"), lines)
    return Section(SLUG, "Timelines", (Text(text), table))


def _link(path: Path, out_dir: Path) -> str:
    return quote(Path(os.path.relpath(path.resolve(), out_dir.resolve())).as_posix())
