"""`r2cc-simai failures detect`: when each end of a broken path knows, and what it blames."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.cluster.model import Cluster
    from r2cc_simai.detection.model import End, Traffic


def detect_failure(
    cluster: Annotated[str, typer.Option("--cluster", help="A preset, PRESETxSERVERS, or a file.")] = "h100",
    component: Annotated[
        list[str] | None,
        typer.Option("--component", help="nic, port, cable, path or remote-nic, repeatable; all of them by default."),
    ] = None,
    sends: Annotated[str, typer.Option("--sends", help="Which ends send data: local, remote, both or none.")] = "local",
    auxiliary: Annotated[
        bool, typer.Option(help="Whether a third NIC is there to probe from (bilateral probes).")
    ] = True,
    seed: Annotated[int, typer.Option("--seed", help="Of drawn probe phases and of --simulate.")] = 0,
    utilisation: Annotated[
        list[float] | None,
        typer.Option("--utilisation", help="Load of a NIC port for false alarms, 0 to below 1, repeatable."),
    ] = None,
    simulate: Annotated[
        float | None,
        typer.Option("--simulate", metavar="HOURS", help="Also count alarms in that many NIC-hours."),
    ] = None,
) -> None:
    """Print when each end of a broken path knows and what it blames, and the rate of false alarms under load."""
    from r2cc_simai.cli import show
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.detection.detect import mechanism

    one = load_cluster(cluster)
    name = mechanism(one.spec.failover)
    lines = list(_ends(one, component or [], _traffic(sends), auxiliary, seed))
    alarms = list(_alarms(one, utilisation or [0.5, 0.8, 0.9, 0.95], simulate, seed))
    columns = ("failed", "end", "known after (ms)", "from", "blames", "traffic moves after (ms)")
    show.table(f"Detection on {one.name}: {name}, data sent by {sends}", columns, lines, text=2)
    if not alarms:
        typer.echo(f"False alarms: none; load does not delay what {name} looks at.")
        return
    heads = ["utilisation", "late answers (%)", "independent", "at most"] + ["counted"] * (simulate is not None)
    show.table("False alarms per NIC-hour, answers behind data of a chunk each (M/D/1)", heads, alarms)


def _traffic(sends: str) -> "Traffic":
    from r2cc_simai.detection.model import Traffic
    from r2cc_simai.errors import InputError

    if sends not in ("local", "remote", "both", "none"):
        raise InputError(f"--sends {sends}: unknown (allowed: local, remote, both, none)")
    return Traffic(0.0 if sends in ("local", "both") else None, 0.0 if sends in ("remote", "both") else None)


def _ends(
    one: "Cluster", names: list[str], traffic: "Traffic", auxiliary: bool, seed: int
) -> Iterator[tuple[str, ...]]:
    import random

    from r2cc_simai.detection.detect import detect
    from r2cc_simai.detection.model import Failure
    from r2cc_simai.errors import InputError
    from r2cc_simai.failures.timeline import Component

    known = [part.value for part in Component]
    wrong = [name for name in names if name not in known]
    if wrong:
        raise InputError(f"--component {wrong[0]}: unknown (allowed: {', '.join(known)})")
    failover = one.spec.failover
    for name in names or known:
        found = detect(failover, Failure(Component(name), traffic, auxiliary), random.Random(seed))
        moves = _ms(found.resumes_s(failover.migrate_ms * 1e-3))
        yield (name, "local", *_end(found.local), moves)
        yield (name, "remote", *_end(found.remote), moves)


def _end(end: "End") -> tuple[str, str, str]:
    return _ms(end.known_s), end.source, "cannot tell" if end.blames is None else end.blames.value


def _ms(seconds: float) -> str:
    return "never" if seconds == float("inf") else f"{seconds * 1e3:.6g}"


def _alarms(one: "Cluster", loads: list[float], hours: float | None, seed: int) -> Iterator[list[str]]:
    from r2cc_simai.detection import false_alarms as model

    trials = model.trials_of(one)
    for load in loads:
        queue = model.port_queue(one, load)
        if trials is None:  # nothing that a queue delays
            continue
        late = model.late_share(queue, trials.deadline_s)
        rates = [model.alarms_per_hour(queue, trials), model.most_alarms_per_hour(queue, trials)]
        if hours is not None:
            rates.append(model.simulate_alarms(queue, trials, hours, seed))
        yield [f"{load:g}", f"{100 * late:.4g}", *(f"{rate:.4g}" for rate in rates)]
