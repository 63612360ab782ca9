"""`r2cc-simai failures`: which failure patterns there are, what one of them does, and making one's own."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2cc_simai.cli.failures_detect import detect_failure
from r2cc_simai.cli.failures_files import PatternFiles, load_patterns
from r2cc_simai.cli.failures_new import new_pattern

if TYPE_CHECKING:
    from r2cc_simai.cluster.model import Cluster

app = typer.Typer(help="Failure patterns: what there is, what one does, and your own.")
app.command("detect")(detect_failure)
app.command("new")(new_pattern)

FORMS = (
    ("a NIC (its port or cable) is down from the start on", "server0.mlx5_2@0", "r7525"),
    ("a NIC goes down while the job runs", "server0.mlx5_2@0.528", "r7525"),
    ("a NIC goes down and is repaired", "server0.nic3@100ms..2s", "h100"),
    ("a NIC goes down once its counter has risen by so many bytes", "server0.mlx5_2@bytes:601M", "r7525"),
    ("a NIC keeps a fraction of its rate", "server1.mlx5_0=0.5@1.5..2.0", "r7525"),
    ("the same fraction, written as one", "server0.nic0=7/8@0", "uniform"),
    ("several NICs of a server", "server0.nic[0-3]@0", "h100"),
    ("the same NIC of several servers", "server[0,1].nic1@0", "h100"),
    ("every NIC of a server (its ToR switch)", "server1@0.5..1.5", "h100"),
    ("a rail: its NIC on every server (the rail's switch)", "rail2@0", "hpn-h800"),
    ("the port of a NIC, its cable, or a path in the fabric", "server0.nic3.cable@0.5", "h100"),
)
"""What a failure can be, an example, and a cluster that has such components."""

Patterns = Annotated[list[str], typer.Argument(metavar="PATTERN...", help="Failures as --fail takes them.")]
OnCluster = Annotated[str, typer.Option("--cluster", help="A preset, PRESETxSERVERS, or a file.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of patterns that draw.")]


@app.command("list")
def list_failures(pattern_file: PatternFiles = None) -> None:
    """List the patterns with their options and defaults, and the other forms that --fail takes."""
    from r2cc_simai.cli import show
    from r2cc_simai.cli.failures_table import print_patterns
    from r2cc_simai.failures.parse import FORM
    from r2cc_simai.failures.registry import working_patterns

    load_patterns(pattern_file)
    patterns, broken = working_patterns()
    typer.echo("Patterns: --fail name[:option=value,...]; [in brackets]: nothing, unless you give it")
    print_patterns(patterns)
    typer.echo("")
    columns = ("failure", "--fail", "on cluster")
    show.table("component[range][=fraction]@t[..t2]: single failures", columns, FORMS, text=3)
    typer.echo(f"Write {FORM}.")
    typer.echo("Times are seconds from the start of the first timed iteration; us, ms, s, min and h are known.")
    typer.echo(
        "The fraction is the share of the rate that is left; without one the component is down. Repeat --fail for more."
    )
    typer.echo("'failures show PATTERN' explains one and prints its events, 'failures new NAME' begins your own.")
    show.notes(broken)


@app.command("show")
def show_failure(
    pattern: Patterns,
    cluster: OnCluster = "r7525",
    seed: Seed = 0,
    hours: Annotated[float | None, typer.Option("--hours", help="Length of the job; endless by default.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Also draw the components over time (.svg or .png).")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Print every event of a long list.")] = False,
    pattern_file: PatternFiles = None,
) -> None:
    """Print the events of failures on a cluster, in order of time, and what patterns by name mean."""
    from r2cc_simai.cli.failures_table import print_events, print_meaning
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.failures.parse import parse_failures
    from r2cc_simai.failures.registry import is_pattern, parse_pattern

    load_patterns(pattern_file)
    one = load_cluster(cluster)
    horizon_s = _horizon_s(hours, math.inf)
    timeline = parse_failures(pattern, one, seed=seed, horizon_s=horizon_s)
    if plot is not None:
        _plot(plot, pattern, one, seed, horizon_s)  # first: where it cannot be written, nothing is printed
    print_events(timeline, one, whole=all_)
    named = [parse_pattern(text).pattern for text in pattern if is_pattern(text)]
    for found in {found.name: found for found in named}.values():
        print_meaning(found)


@app.command("draw")
def draw_failures(
    pattern: Patterns,
    cluster: OnCluster = "h100x4",
    draws: Annotated[int, typer.Option("--draws", min=1, max=100_000, help="How many seeds.")] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first seed; the others follow it.")] = 0,
    hours: Annotated[float, typer.Option("--hours", help="Length of the job.")] = 720.0,
    json_output: Annotated[
        bool, typer.Option("--json", help='Print one JSON object {"incidents": [...], "causes": {...}}.')
    ] = False,
    pattern_file: PatternFiles = None,
) -> None:
    """Draw a pattern with one seed after another: what fails when, and how often each cause occurs."""
    from r2cc_simai.cli import show
    from r2cc_simai.cli.failures_table import incident_rows, print_draws, summary
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.failures.parse import incidents_of
    from r2cc_simai.failures.registry import is_pattern, parse_pattern

    load_patterns(pattern_file)
    one = load_cluster(cluster)
    horizon_s = _horizon_s(hours, math.inf)
    seeds = range(seed, seed + draws)
    drawn = [(each, incidents_of(pattern, one, seed=each, horizon_s=horizon_s)) for each in seeds]
    if json_output:
        import json

        found = {"incidents": list(incident_rows(drawn)), "causes": summary(drawn)}
        print(json.dumps(found, allow_nan=False, indent=1))
    else:
        print_draws(f"{' '.join(pattern)} on {one.name}: {draws} draws of {hours:g} h", drawn)
    if not any(is_pattern(text) and parse_pattern(text).draws for text in pattern):
        show.notes([f"{' '.join(pattern)} draws nothing that depends on --seed: all draws are equal"])


def _horizon_s(hours: float | None, default: float) -> float:
    from r2cc_simai.errors import InputError

    if hours is None:
        return default
    if not 0 < hours < math.inf:
        raise InputError(f"--hours {hours:g}: a number above 0 is wanted")
    return hours * 3600


def _plot(path: Path, pattern: list[str], cluster: "Cluster", seed: int, horizon_s: float) -> None:
    from r2cc_simai.failures.parse import incidents_of
    from r2cc_simai.results.report.failure_picture import write_failure_picture

    incidents = incidents_of(pattern, cluster, seed=seed, horizon_s=horizon_s)
    title = f"{' '.join(pattern)} on {cluster.name}"
    write_failure_picture(path, incidents, cluster, title, horizon_s if math.isfinite(horizon_s) else None)
