"""`r2cc-simai stats`: what drawn failures cost: distributions, losses a month, causes, strategies compared."""

from pathlib import Path
from typing import Annotated

import typer


def stats(
    run: Annotated[Path, typer.Argument(help="A run folder (finished or not), or a .csv or .parquet results table.")],
    confidence: Annotated[float, typer.Option("--confidence", min=0.5, max=0.999, help="Of all intervals.")] = 0.95,
    half_width_pct: Annotated[
        float,
        typer.Option("--half-width-pct", min=0.01, max=100, help="Tell how many draws give the mean this exactly (%)."),
    ] = 5.0,
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"cases": [...]}.')] = False,
) -> None:
    """Print the statistics of drawn failures: distribution of the overhead, GPU-hours lost a month, which failures
    cost them, and strategies compared on the same draws."""
    import json

    from r2cc_simai.cli import stats_json, stats_tables
    from r2cc_simai.errors import InputError
    from r2cc_simai.results import read_rows
    from r2cc_simai.results.statistics import studies

    found = studies(read_rows(run), confidence, half_width_pct)
    if not found:
        raise InputError(f"{run}: no rows of drawn failures; a scenario with matrix: and seeds: or hours: gives them")
    if json_output:
        told = [stats_json.case_json(study) for study in found]
        print(json.dumps({"confidence": confidence, "cases": told}, allow_nan=False, indent=1))
        return
    for study in found:
        stats_tables.print_study(study)
