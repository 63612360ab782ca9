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
    """Run the scenarios of a file, and write the results table (Parquet, CSV) and a report (Markdown, HTML).

    Exit code 1 if a row lies outside the tolerance of the measured or published value beside it.
    """
    from r2cc_simai.cli import show
    from r2cc_simai.errors import MismatchError
    from r2cc_simai.results import check
    from r2cc_simai.runners.sweep import run_sweep

    result = run_sweep(scenario, out, workers)
    if json_output:
        show.json_rows(result.rows)
    else:
        typer.echo(f"{len(result.rows)} rows in {result.folder}")
        typer.echo(f"report: {result.report.markdown}, {result.report.html}")
    outside = [c for c in map(check, result.rows) if c is not None and not c.ok]
    if outside:
        row = outside[0].row
        raise MismatchError(
            f"{len(outside)} rows lie outside their tolerance, the first is {row.scenario}, {row.cluster}, "
            f"{row.strategy}, {row.backend}, {row.bytes} bytes, {row.metric}: {row.simulated:.6g} {row.unit} "
            f"against {row.measured:.6g}"
        )
