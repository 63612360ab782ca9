"""`r2cc-simai report`: the report of a run that is there already, alone or against another."""

from pathlib import Path
from typing import Annotated

import typer

from r2cc_simai.cli.failures_files import PatternFiles, load_patterns


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder (finished or not), or a results table.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the report; by default where RUN is.")] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="RUN|BASELINE", help="Another run, or a baseline by file or name."),
    ] = None,
    pattern_file: PatternFiles = None,
    title: Annotated[str | None, typer.Option("--title", help="By default the title of the run's scenario.")] = None,
) -> None:
    """Write the report of a run anew: report.html, report.md and plots/*.svg.

    With --against, what differs from another run or from a baseline stands on top. The report draws the failures of a
    run; patterns of your own are drawn where --pattern-file names them.
    """
    from r2cc_simai.runners.report import rebuild_report

    load_patterns(pattern_file)
    paths = rebuild_report(run, out, against, title)
    typer.echo(f"report: {paths.markdown}, {paths.html}")
