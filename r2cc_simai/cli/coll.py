"""`r2cc-simai coll`: nccl-tests, simulated, while NICs fail."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r2cc_simai.cluster.model import Cluster
    from r2cc_simai.results import Row
    from r2cc_simai.runners.rows import Simulated


def coll(
    minbytes: str = typer.Option("32M", "-b", "--minbytes", help="Smallest buffer, bytes (K, M, G: powers of 1024)."),
    maxbytes: str | None = typer.Option(None, "-e", "--maxbytes", help="Largest buffer; as -b by default."),
    stepfactor: float = typer.Option(2.0, "-f", "--stepfactor", help="Factor from one size to the next, above 1."),
    iters: int = typer.Option(20, "-n", "--iters", help="Timed iterations of each size."),
    warmup_iters: int = typer.Option(5, "-w", "--warmup_iters", help="Iterations before, not timed."),
    datatype: str = typer.Option("float", "-d", "--datatype", help="NCCL data type of an element."),
    op: str = typer.Option("sum", "-o", "--op", help="Reduction; it does not change the time."),
    cudagraph: int = typer.Option(0, "-G", "--cudagraph", help="Above 0: replay CUDA graphs; a new plan is captured."),
    collective: str = typer.Option("all_reduce", "--collective", help="Which collective runs."),
    cluster: str = typer.Option("r7525", "--cluster", help="A preset, PRESETxSERVERS, or a file (see 'cluster list')."),
    fail: list[str] = typer.Option(
        [], "--fail", help="component[=fraction]@t[..t2], repeatable (see 'failures list')."
    ),
    strategy: list[str] = typer.Option(["balance"], "--strategy", help="name[:key=value,...], repeatable."),
    backend: str = typer.Option("flow", "--backend", help="flow or chunk."),
    zero_latency: bool = typer.Option(False, "--zero-latency", help="Set every latency of the cluster to zero."),
    nic_bytes: bool = typer.Option(False, "--nic-bytes", help="Also print the bytes of every NIC."),
    json_output: bool = typer.Option(False, "--json", help='Print one JSON object {"rows": [...]}.'),
) -> None:
    """Simulate nccl-tests: a collective of each size, under failures, with its overhead and the lower bound.

    Times count from the start of the first timed iteration.
    """
    from r2cc_simai.cli import coll_input, show
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.failures.parse import parse_failures
    from r2cc_simai.runners.collective import Job
    from r2cc_simai.runners.rows import job_rows, simulate
    from r2cc_simai.strategies.registry import parse_strategy

    element = coll_input.element_bytes(datatype)
    coll_input.check_redop(op)
    sizes = coll_input.sizes(minbytes, maxbytes, stepfactor, element)
    coll_input.check_iterations(iters, warmup_iters)
    engine = coll_input.backend(backend)
    strategies = [parse_strategy(text) for text in strategy]
    where = load_cluster(cluster)
    where = where.zero_latency() if zero_latency else where
    timeline = parse_failures(fail, where)
    scenario = "coll, zero latency" if zero_latency else "coll"
    runs = []
    for one in strategies:
        for size in sizes:
            job = Job(size, collective, iters, warmup_iters, cudagraph > 0, engine)
            runs.append(simulate(where, one, timeline, job))
    rows = [job_rows(run, scenario, nic_bytes=nic_bytes or json_output) for run in runs]
    if json_output:
        show.json_rows(row for one in rows for row in one)
    else:
        head = f"{collective} on {_describe(where)}, failures: {timeline.pattern}, backend: {backend}"
        _print_times(head + (", zero latency" if zero_latency else ""), rows, element, datatype, op)
        if nic_bytes:
            _print_bytes(rows)
    show.notes(note for run in runs for note in _notes(run))


def _describe(cluster: "Cluster") -> str:
    return f"{cluster.name} ({len(cluster.servers)} servers, {cluster.n_ranks} ranks, {len(cluster.nics)} NICs)"


def _notes(run: "Simulated") -> "list[str]":
    notes = list(run.result.notes)
    if run.result.steady is None:
        size = run.result.job.bytes
        notes.append(f"{size} B: no iteration was free of failures and one-off costs; ask for more with -n")
    return notes


def _print_times(head: str, rows: "Sequence[Sequence[Row]]", element: int, datatype: str, op: str) -> None:
    from r2cc_simai.cli import show

    kinds = [m for m in ("time_first", "time_cut") if any(row.metric == m for own in rows for row in own)]
    columns = ["strategy", "size (B)", "count", "type", "redop", "root", "time (us)", "algbw (GB/s)", "busbw (GB/s)"]
    columns += ["ideal (us)", "overhead (%)", "bound (us)", *(f"{kind} (us)" for kind in kinds)]
    lines = []
    for own in rows:
        by = {row.metric: row for row in own}
        time = by.get("time")
        size, name = (own[0].bytes, own[0].strategy) if own else (0, "")
        cells = [name, str(size), str(size // element), datatype, op, "-1"]
        cells += [_us(time and time.simulated), *(_gbs(by.get(metric)) for metric in ("algbw", "busbw"))]
        cells += [
            _us((time or own[0]).ideal),
            show.number(time and time.overhead_pct),
            _us((time or own[0]).bound),
        ]
        lines.append([*cells, *(_us(by[kind].simulated if kind in by else None) for kind in kinds)])
    show.table(head, columns, lines)


def _print_bytes(rows: "Sequence[Sequence[Row]]") -> None:
    from r2cc_simai.cli import show

    columns = ("strategy", "NIC", "size (B)", "iteration", "received (B)", "sent (B)", "healthy (B)")
    lines = []
    for own in rows:
        sent = {(row.scenario, row.metric): row for row in own}
        for row in own:
            if not row.metric.startswith("rx_bytes"):
                continue
            nic = row.metric.removeprefix("rx_bytes[").removesuffix("]")
            kind = "hit by a failure" if row.scenario.endswith("/cut") else "steady"
            numbers = (row.simulated, sent[row.scenario, f"tx_bytes[{nic}]"].simulated, row.ideal)
            lines.append([row.strategy, nic, str(row.bytes), kind, *(show.number(n, 0) for n in numbers)])
    show.table("Bytes per NIC and iteration, packet headers included", columns, lines, text=2)


def _us(seconds: float | None) -> str:
    from r2cc_simai.cli import show

    return show.number(None if seconds is None else seconds * 1e6)


def _gbs(row: "Row | None") -> str:
    from r2cc_simai.cli import show

    return show.number(None if row is None or row.simulated is None else row.simulated / 1e9)
