"""`r2cc-simai advise`: which strategy is best here, by how much, and from which size on."""

from typing import TYPE_CHECKING, Annotated

import typer

from r2cc_simai.cli.failures_files import PatternFiles, load_patterns

if TYPE_CHECKING:
    from r2cc_simai.runners.advice import Advice


def advise(
    cluster: Annotated[str, typer.Option("--cluster", help="A preset, PRESETxSERVERS, or a YAML file.")] = "h100x16",
    size: Annotated[str, typer.Option("--size", help="Buffer of the AllReduce: 64K, 1GiB.")] = "1GiB",
    fail: Annotated[
        list[str] | None, typer.Option("--fail", help="COMPONENT[=FRACTION]@0; what is known to be down. Repeatable.")
    ] = None,
    pattern_file: PatternFiles = None,
    zero_latency: Annotated[bool, typer.Option("--zero-latency", help="All latencies at zero.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')] = False,
) -> None:
    """Rank all strategies for a size, a cluster and its failures, and tell where the best one changes with size."""
    from r2cc_simai.cli import show
    from r2cc_simai.runners.advice import advice_rows
    from r2cc_simai.runners.advice import advise as make

    load_patterns(pattern_file)
    advice = make(cluster, size, tuple(fail or ()), zero_latency=zero_latency)
    if json_output:
        show.json_rows(advice_rows(advice))
        return
    _print(advice)


def _print(advice: "Advice") -> None:
    from r2cc_simai.cli import show
    from r2cc_simai.units import format_size, format_time

    lines = []
    for place, one in enumerate(advice.ranking, start=1):
        known = one.time_s is not None
        overhead = None if one.time_s is None else 100 * (one.time_s / advice.ideal_s - 1)
        gap = None if one.time_s is None or not advice.bound_s else 100 * (one.time_s / advice.bound_s - 1)
        lines.append(
            [
                str(place) if known else "-",
                one.strategy,
                format_time(one.time_s) if one.time_s is not None else "-",
                show.signed(overhead),
                show.signed(gap),
                one.why,
            ]
        )
    title = f"AllReduce of {format_size(advice.bytes)} on {advice.cluster.name}, failures: {advice.pattern}"
    show.table(title, ("rank", "strategy", "time", "overhead (%)", "over bound (%)", "remark"), lines, text=2)
    typer.echo(f"healthy: {format_time(advice.ideal_s)}; no algorithm is faster than {format_time(advice.bound_s)}")
    typer.echo("")
    typer.echo("Best by size:")
    for crossover in advice.crossovers:
        typer.echo(f"  from {format_size(crossover.bytes)}: {crossover.strategy}")
