"""`r2cc-simai sweep`: the scenarios of a file, as a results table and a report."""

from pathlib import Path
from typing import Annotated

import typer


def sweep(
    scenario: Annotated[
        str | None, typer.Argument(help="A scenario file (YAML); the shipped scenario 'paper' by default.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Run folder; an interrupted sweep resumes in it.")] = None,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Processes; 0: one per core.")] = 0,
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')] = False,
) -> None:
    """Run the scenarios of a file, and write the results table (Parquet, CSV) and a report (Markdown, HTML)."""
    from r2cc_simai.cli import show
    from r2cc_simai.runners.sweep import run_sweep

    result = run_sweep(scenario, out, workers)
    if json_output:
        show.json_rows(result.rows)
        return
    typer.echo(f"{len(result.rows)} rows in {result.folder}")
    typer.echo(f"report: {result.report.markdown}, {result.report.html}")
