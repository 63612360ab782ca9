"""`r2cc-simai real run torch`: a schedule of this project with real bytes on torch.distributed."""

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.real.hosts import Host

BACKENDS = ("gloo", "nccl")


def torch(
    output: Annotated[
        Path, typer.Option("--output", metavar="FOLDER", help="New folder for the raw log, its record and results.csv.")
    ],
    local: Annotated[
        int | None, typer.Option("--local", metavar="N", help="N processes on this machine, over loopback.")
    ] = None,
    hosts: Annotated[
        Path | None, typer.Option("--hosts", metavar="FILE", help="Lines 'NAME slots=N' or 'NAME:N'.")
    ] = None,
    launcher: Annotated[
        str, typer.Option("--launcher", help="torchrun (by ssh), mpirun or srun, or a path that ends so.")
    ] = "torchrun",
    launcher_arg: Annotated[
        list[str] | None, typer.Option("--launcher-arg", help="One more argument of mpirun or srun. Repeatable.")
    ] = None,
    python: Annotated[str, typer.Option("--python", help="Python on the hosts.")] = sys.executable,
    port: Annotated[int, typer.Option("--port", help="Port on the first host where the ranks meet.")] = 29500,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Cluster that is planned for; with --local N uniformxN by default."),
    ] = None,
    strategy: Annotated[str, typer.Option("--strategy", metavar="NAME", help="name[:key=value,...].")] = "balance",
    fail: Annotated[
        list[str] | None,
        typer.Option("--fail", metavar="FAILURE", help="component[=fraction]@0: what the plan is for. Repeatable."),
    ] = None,
    collective: Annotated[str, typer.Option("--collective", help="As for coll.")] = "all_reduce",
    root: Annotated[int, typer.Option("-r", "--root", help="Rank where a broadcast starts and a reduce ends.")] = 0,
    size: Annotated[str, typer.Option("-b", "--size", help="Buffer of a rank (K, M, G: powers of 1024).")] = "4M",
    piece: Annotated[
        str | None, typer.Option("--piece", metavar="SIZE", help="Largest message; the schedule's chunks by default.")
    ] = None,
    datatype: Annotated[str, typer.Option("-d", "--datatype", help="float32, float16 or int32.")] = "float32",
    op: Annotated[str, typer.Option("-o", "--op", help="sum, max or avg.")] = "sum",
    iterations: Annotated[int, typer.Option("-n", "--iters", help="Iterations.")] = 5,
    warmup: Annotated[int, typer.Option("-w", "--warmup_iters", help="Warm-up iterations.")] = 1,
    backend: Annotated[str, typer.Option("--backend", help="torch's backend: gloo or nccl.")] = "gloo",
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="A variable of the ranks. Repeatable.")
    ] = None,
    wait_limit: Annotated[
        str, typer.Option("--wait-limit", metavar="TIME", help="Longest time that a rank waits for a message.")
    ] = "30s",
    limit: Annotated[str, typer.Option("--limit", metavar="TIME", help="Longest time of the whole run.")] = "10min",
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the rows as JSON; the run's output to stderr.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact commands and end.")] = False,
) -> None:
    """Execute the schedule of a strategy by batched sends and receives, check every element, and time it.

    Exit code 1: wrong elements or a failed rank; 3: not all iterations ended; 4: torch is missing.
    """
    from r2cc_simai.cli import coll_input, real_output, show
    from r2cc_simai.errors import InputError, MissingComponentError
    from r2cc_simai.real.environment import pairs
    from r2cc_simai.real.launcher import launcher_kind, require
    from r2cc_simai.real.torch_job import TorchJob, plan_job
    from r2cc_simai.real.torch_run import TorchRun, run_torch, torch_rows

    if backend not in BACKENDS:
        raise InputError(f"--backend {backend}: unknown (allowed: {', '.join(BACKENDS)})")
    coll_input.check_iterations(iterations, warmup)
    machines, n_ranks = _where(local, hosts)
    if cluster is None and local is None:
        raise InputError("--cluster: missing; name the cluster that the hosts are, for the plan")
    limits = {"--wait-limit": wait_limit, "--limit": limit}
    wait_limit_s, limit_s = (real_output.duration(option, text) for option, text in limits.items())
    job = TorchJob(
        cluster=cluster or f"uniformx{n_ranks}",
        strategy=strategy,
        collective=coll_input.operation(collective).name,
        bytes=coll_input.size("-b", size),
        fail=tuple(fail or ()),
        root=root,
        dtype=datatype,
        op=op,
        iterations=iterations,
        warmup=warmup,
        backend=backend,
        wait_limit_s=wait_limit_s,
        piece=None if piece is None else coll_input.size("--piece", piece),
    )
    kind = launcher_kind(launcher, ("torchrun", "mpirun", "srun")) if machines else ""
    run = TorchRun(job, n_ranks, machines, launcher, pairs(env or ()), python, port, tuple(launcher_arg or ()))
    commands = run.commands(output)
    coll_input.check_root(root, n_ranks)
    planned = plan_job(job)
    if dry_run:
        real_output.dry_run(commands, [f"at most {limit_s:g} s; output to {output}/torch.log, rows to results.csv"])
        return
    if kind in ("mpirun", "srun"):
        require(launcher)
    if not machines and importlib.util.find_spec("torch") is None:
        raise MissingComponentError("torch: not installed; pip install 'r2cc-simai[torch]'")
    outcome = run_torch(run, real_output.fresh_folder(output), limit_s, real_output.echo(json_output=json_output))
    rows = torch_rows(run, outcome)
    real_output.store(rows, output / "results.csv")
    if json_output:
        show.json_rows(rows)
    else:
        lines = [(r.strategy, r.metric, real_output.measured_value(r.measured, r.unit)) for r in rows]
        show.table(
            f"{job.collective} on {job.cluster} by torch ({backend})", ("strategy", "metric", "measured"), lines, 2
        )
    notes = [planned.note] if planned.note else []
    show.notes([*notes, *outcome.remarks, f"{len(rows)} rows in {output / 'results.csv'}"])
    if outcome.code:
        raise typer.Exit(outcome.code)


def _where(local: int | None, hosts: Path | None) -> "tuple[tuple[Host, ...], int]":
    """The hosts (none: this machine) and the number of processes."""
    from r2cc_simai.errors import InputError
    from r2cc_simai.real.hosts import read_hosts, total_slots

    if (local is None) == (hosts is None):
        raise InputError("--local: write either --local N or --hosts FILE")
    if hosts is not None:
        found = read_hosts(hosts)
        return found, total_slots(found)
    assert local is not None
    if not 2 <= local <= 256:
        raise InputError(f"--local {local}: write a number of processes from 2 to 256")
    return (), local
