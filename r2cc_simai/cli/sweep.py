"""`r2cc-simai sweep`: the scenarios of a file, as a results table and a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.runners.sweep import SweepResult


def sweep(
    scenario: Annotated[
        str | None,
        typer.Argument(help="A scenario file (YAML), or one that ships: 'paper' (default), 'month'."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Run folder; an interrupted sweep resumes in it.")] = None,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Processes; 0: one per core.")] = 0,
    executor: Annotated[
        str, typer.Option("--executor", help="Where cases run: processes (of this machine), slurm or ray.")
    ] = "processes",
    executor_option: Annotated[
        list[str] | None,
        typer.Option("--executor-option", help="key=value for the executor; repeat it for several."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run the cases again that failed when the sweep ran before.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')] = False,
) -> None:
    """Run the scenarios of a file, and write the results table (Parquet, CSV) and a report (Markdown, HTML).

    A case that fails is a row with its error, and the others run; the exit code is then 3. Exit code 1 if a row lies
    outside the tolerance of the measured or published value beside it.
    """
    from r2cc_simai.cli import show
    from r2cc_simai.runners.sweep import run_sweep

    result = run_sweep(scenario, out, workers, where=executor, options=executor_option or (), retry_failed=retry_failed)
    for stopped in result.stopped:
        seeds = f"{stopped.ran} of {stopped.of} seeds were enough; {stopped.of - stopped.ran} were left out"
        typer.echo(f"{stopped.scenario}: {seeds}", err=True)
    typer.echo(result.summary, err=True)
    if json_output:
        show.json_rows(result.rows)
    else:
        typer.echo(f"{len(result.rows)} rows in {result.folder}")
        typer.echo(f"report: {result.report.markdown}, {result.report.html}")
    _judge(result)


def _judge(result: "SweepResult") -> None:
    """Raises what the exit code is to be, if not 0."""
    from r2cc_simai.errors import MismatchError, PartitionedError
    from r2cc_simai.results import check
    from r2cc_simai.runners.sweep import ERRORS

    if result.failures:
        first = result.failures[0]
        errors = result.folder / ERRORS
        more = f" (tracebacks: {errors})" if errors.is_dir() else ""
        raise PartitionedError(
            f"{len(result.failures)} of {result.cases} cases failed, the first is {first.key}: {first.reason}{more}"
        )
    outside = [c for c in map(check, result.rows) if c is not None and not c.ok]
    if outside:
        row = outside[0].row
        raise MismatchError(
            f"{len(outside)} rows lie outside their tolerance, the first is {row.scenario}, {row.cluster}, "
            f"{row.strategy}, {row.backend}, {row.bytes} bytes, {row.metric}: {row.simulated:.6g} {row.unit} "
            f"against {row.measured:.6g}"
        )
