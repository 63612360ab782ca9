"""`r2cc-simai failures`: how failures are written, and what one of them does."""

from typing import Annotated

import typer

app = typer.Typer(help="Show failure patterns.")

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
)
"""What a failure can be, an example, and a cluster that has such components."""


@app.command("list")
def list_failures() -> None:
    """List the forms that --fail takes, with an example of each."""
    from r2cc_simai.cli import show
    from r2cc_simai.failures.parse import FORM

    columns = ("failure", "--fail", "on cluster")
    show.table("component[range][=fraction]@t[..t2]: forms of --fail", columns, FORMS, text=3)
    typer.echo(f"Write {FORM}.")
    typer.echo("Times are seconds from the start of the first timed iteration; us, ms, s, min and h are known.")
    typer.echo(
        "The fraction is the share of the rate that is left; without one the component is down. Repeat --fail for more."
    )


@app.command("show")
def show_failure(
    pattern: Annotated[list[str], typer.Argument(help="One or more failures as --fail takes them.")],
    cluster: Annotated[str, typer.Option("--cluster", help="A preset, PRESETxSERVERS, or a file.")] = "r7525",
) -> None:
    """Print the events of failures on a cluster, in order of time."""
    from r2cc_simai.cli import show
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.failures.parse import parse_failures
    from r2cc_simai.units import format_size

    one = load_cluster(cluster)
    timeline = parse_failures(pattern, one)
    lines = []
    for event in timeline.events:
        nic = one.nics[event.nic]
        when = f"{event.time_s:g} s" if event.at_bytes is None else f"after {format_size(event.at_bytes)}"
        left = nic.payload_rate * event.fraction / 1e9
        lines.append([when, nic.full_name, str(nic.rail), _state(event.fraction), f"{left:.4g}"])
    head = f"{timeline.pattern} on {one.name}: {len(lines)} events"
    show.table(head, ("time", "NIC", "rail", "state", "payload rate left (GB/s)"), lines, text=2)


def _state(fraction: float) -> str:
    if fraction == 0:
        return "down"
    return "up" if fraction == 1 else f"{100 * fraction:.4g}% of its rate"
