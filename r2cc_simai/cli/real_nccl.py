"""`r2cc-simai real run nccl-tests`: nccl-tests on a real cluster, a failure in its middle, and the comparison."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.real.injection import Injection
    from r2cc_simai.real.nccl_rows import Judged
    from r2cc_simai.real.nccl_tests import NcclRun
    from r2cc_simai.results import Row
    from r2cc_simai.runners.compare import Compared


def nccl_tests(
    hosts: Annotated[Path, typer.Option("--hosts", metavar="FILE", help="Lines 'NAME slots=N' or 'NAME:N'.")],
    output: Annotated[
        Path, typer.Option("--output", metavar="FOLDER", help="New folder for raw logs, records and results.csv.")
    ],
    program: Annotated[
        str, typer.Option("--program", help="Program of nccl-tests, a name on the hosts' path or a path.")
    ] = "all_reduce_perf",
    launcher: Annotated[
        str, typer.Option("--launcher", help="mpirun (Open MPI) or srun, or a path that ends so.")
    ] = "mpirun",
    launcher_arg: Annotated[
        list[str] | None, typer.Option("--launcher-arg", help="One more argument of the launcher. Repeatable.")
    ] = None,
    minimum: Annotated[str, typer.Option("-b", "--minbytes", help="Smallest size (K, M, G: powers of 1024).")] = "32M",
    maximum: Annotated[
        str | None, typer.Option("-e", "--maxbytes", help="Largest size; the smallest by default.")
    ] = None,
    factor: Annotated[int, typer.Option("-f", "--stepfactor", help="From one size to the next.")] = 2,
    gpus: Annotated[int, typer.Option("-g", "--ngpus", help="GPUs of a process.")] = 1,
    iterations: Annotated[int, typer.Option("-n", "--iters", help="Iterations of each size.")] = 20,
    warmup: Annotated[int, typer.Option("-w", "--warmup_iters", help="Warm-up iterations of each size.")] = 5,
    datatype: Annotated[str, typer.Option("-d", "--datatype", help="NCCL data type.")] = "float",
    op: Annotated[str, typer.Option("-o", "--op", help="Reduction.")] = "sum",
    arg: Annotated[
        list[str] | None, typer.Option("--arg", help="One more argument of the program, such as --arg=-G1. Repeatable.")
    ] = None,
    nics: Annotated[str | None, typer.Option("--nics", help="NCCL_IB_HCA, such as mlx5_0,mlx5_2.")] = None,
    socket: Annotated[str | None, typer.Option("--socket", help="NCCL_SOCKET_IFNAME.")] = None,
    ib_timeout: Annotated[int | None, typer.Option("--ib-timeout", help="NCCL_IB_TIMEOUT, 1 to 22.")] = None,
    ib_retries: Annotated[int | None, typer.Option("--ib-retries", help="NCCL_IB_RETRY_CNT, 0 to 7.")] = None,
    port_failover: Annotated[
        bool | None,
        typer.Option("--port-failover/--no-port-failover", help="NCCL_IB_RESILIENCY_PORT_FAILOVER; unset by default."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="R2CC build: nccl, hot-repair, balance, r2cc-allreduce, or R2CC_MODE 0 to 3."),
    ] = None,
    failed_node: Annotated[int | None, typer.Option("--failed-node", help="R2CC_FAILED_NODE, hosts from 0.")] = None,
    failed_nic: Annotated[str | None, typer.Option("--failed-nic", help="R2CC_FAILED_HCA.")] = None,
    chunks: Annotated[int | None, typer.Option("--chunks", help="R2CC_AR_STAGE2_CHUNKS.")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="One more variable. Repeatable.")
    ] = None,
    fail_hook: Annotated[
        str | None, typer.Option("--fail-hook", metavar="COMMAND", help="Shell command that makes the failure.")
    ] = None,
    fail_at: Annotated[str | None, typer.Option("--fail-at", metavar="TIME", help="When, after the start.")] = None,
    fail_on: Annotated[
        str | None, typer.Option("--fail-on", metavar="PATTERN", help="Or once a line of output matches this.")
    ] = None,
    repair_hook: Annotated[
        str | None,
        typer.Option(
            "--repair-hook", metavar="COMMAND", help="Shell command that ends it; runs however the run ended."
        ),
    ] = None,
    hook_limit: Annotated[str, typer.Option("--hook-limit", metavar="TIME", help="Longest time of a hook.")] = "30s",
    repetitions: Annotated[int, typer.Option("--repetitions", help="Runs, one after the other.")] = 1,
    limit: Annotated[str, typer.Option("--limit", metavar="TIME", help="Longest time of a run.")] = "10min",
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="What to compare with: a preset, PRESETxSERVERS or a file; else inferred."),
    ] = None,
    backend: Annotated[str, typer.Option("--backend", help="Backend of the comparison: flow or chunk.")] = "flow",
    no_compare: Annotated[bool, typer.Option("--no-compare", help="Measure only.")] = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the rows as JSON; the run's output to stderr.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact commands and end.")] = False,
) -> None:
    """Run nccl-tests on the hosts, store what it prints, and compare it with the simulation.

    Exit code 1: a failed run, wrong elements, a failure that never came, or a time outside its tolerance; 3: a run that
    did not finish, of which everything up to there is stored and compared.
    """
    from r2cc_simai.cli import coll_input, real_output, show
    from r2cc_simai.errors import InputError
    from r2cc_simai.real.environment import NcclOptions, variables
    from r2cc_simai.real.hosts import read_hosts
    from r2cc_simai.real.injection import injection_of
    from r2cc_simai.real.launcher import launcher_kind, require
    from r2cc_simai.real.nccl_rows import judge
    from r2cc_simai.real.nccl_tests import NcclRun, Runner

    options = NcclOptions(
        nics, socket, ib_timeout, ib_retries, port_failover, mode, failed_node, failed_nic, chunks, tuple(env or ())
    )
    coll_input.sizes(minimum, maximum, factor, coll_input.element_bytes(datatype))
    coll_input.check_redop(op)
    coll_input.check_iterations(iterations, warmup)
    launcher_kind(launcher)
    if not 1 <= repetitions <= 1000 or gpus < 1:
        raise InputError(f"--repetitions {repetitions}, -g {gpus}: write numbers from 1 on (at most 1000 repetitions)")
    arguments = ["-b", minimum, "-e", maximum or minimum, "-f", str(factor), "-n", str(iterations), "-w", str(warmup)]
    arguments += ["-d", datatype, "-o", op, *(arg or ())]
    run = NcclRun(
        read_hosts(hosts), launcher, program, tuple(arguments), gpus, variables(options), tuple(launcher_arg or ())
    )
    at_s = None if fail_at is None else real_output.duration("--fail-at", fail_at)
    injection = injection_of(fail_hook, at_s, fail_on, repair_hook, real_output.duration("--hook-limit", hook_limit))
    limit_s = real_output.duration("--limit", limit)
    engine = coll_input.backend(backend)
    _check_cluster(run, cluster)
    if dry_run:
        real_output.dry_run([run.command], _around(injection, repetitions, limit_s, output))
        return
    require(launcher)
    echo = real_output.echo(json_output=json_output)
    runner = Runner(run, real_output.fresh_folder(output), limit_s, repetitions, injection, echo)
    found = []
    for number in range(1, repetitions + 1):
        one = runner.repetition(number)
        found.append((one, judge(run, one, cluster, engine, compare=not no_compare)))
        real_output.store([row for _, judged in found for row in judged.rows], output / "results.csv")
        _print(found[-1][1], json_output=json_output, backend=backend)
    rows = [row for _, judged in found for row in judged.rows]
    if json_output:
        show.json_rows(rows)
    remarks = [remark for one, judged in found for remark in (*one.remarks, *judged.remarks)]
    show.notes([*remarks, f"{len(rows)} rows in {output / 'results.csv'}"])
    code = max(max(one.code, 0 if judged.ok else 1) for one, judged in found)
    if code:
        raise typer.Exit(code)


def _check_cluster(run: "NcclRun", cluster: str | None) -> None:
    """Refuses a cluster of another shape before anything runs."""
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.errors import InputError
    from r2cc_simai.real.hosts import total_slots

    if cluster is None:
        return
    model = load_cluster(cluster)
    own = (len(run.hosts), total_slots(run.hosts) * run.gpus)
    if own != (len(model.servers), model.n_ranks):
        raise InputError(
            f"--cluster {cluster}: {len(model.servers)} servers with {model.n_ranks} ranks, "
            f"but the hosts are {own[0]} with {own[1]} ranks"
        )


def _around(injection: "Injection | None", repetitions: int, limit_s: float, output: Path) -> list[str]:
    """What a dry run says beside the command."""
    runs = "one run" if repetitions == 1 else f"{repetitions} runs"
    lines = [f"{runs} of at most {limit_s:g} s; output to {output}/run<k>.log, rows to results.csv"]
    if injection is not None:
        lines.append(f"{injection.moment}: /bin/sh -c {injection.command!r}, at most {injection.limit_s:g} s")
        if injection.repair:
            lines.append(f"after that run, however it ends: /bin/sh -c {injection.repair!r}")
    return lines


def _print(judged: "Judged", *, json_output: bool, backend: str) -> None:
    """Prints what was measured beside what was simulated."""
    from r2cc_simai.cli import show

    compared = [one for comparison in judged.comparisons for one in comparison.compared]
    if not json_output:
        columns = ("run", "strategy", "size", "metric", "measured", "simulated", "error (%)", "tolerance (%)", "ok")
        lines = [_line(one.row, f"{one.tolerance_pct:g}", _verdict(one)) for one in compared]
        lines += [_line(row, show.NONE, show.NONE) for row in judged.rows if row.simulated is None]
        show.table(f"measured, and simulated by backend: {backend}", columns, lines, text=4)


def _verdict(one: "Compared") -> str:
    return ("yes" if one.ok else "NO") if one.judged else "outlier"


def _line(row: "Row", tolerance: str, verdict: str) -> list[str]:
    from r2cc_simai.cli import real_output, show
    from r2cc_simai.units import format_size

    values = [real_output.measured_value(value, row.unit) for value in (row.measured, row.simulated)]
    error = show.signed(row.error_pct)
    return [row.scenario, row.strategy, format_size(row.bytes), row.metric, *values, error, tolerance, verdict]
