"""`r2cc-simai coll`: nccl-tests, simulated, while NICs fail."""

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2cc_simai.cli.failures_files import PatternFiles, load_patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r2cc_simai.cluster.model import Cluster
    from r2cc_simai.results import Row
    from r2cc_simai.runners.rows import Simulated


def coll(
    minbytes: Annotated[
        str, typer.Option("-b", "--minbytes", help="Smallest buffer, bytes (K, M, G: powers of 1024).")
    ] = "32M",
    maxbytes: Annotated[str | None, typer.Option("-e", "--maxbytes", help="Largest buffer; as -b by default.")] = None,
    stepfactor: Annotated[
        float, typer.Option("-f", "--stepfactor", help="Factor from one size to the next, above 1.")
    ] = 2.0,
    iters: Annotated[int, typer.Option("-n", "--iters", help="Timed iterations of each size.")] = 20,
    warmup_iters: Annotated[int, typer.Option("-w", "--warmup_iters", help="Iterations before, not timed.")] = 5,
    datatype: Annotated[str, typer.Option("-d", "--datatype", help="NCCL data type of an element.")] = "float",
    op: Annotated[str, typer.Option("-o", "--op", help="Reduction; it does not change the time.")] = "sum",
    cudagraph: Annotated[
        int, typer.Option("-G", "--cudagraph", help="Above 0: replay CUDA graphs; a new plan is captured.")
    ] = 0,
    collective: Annotated[
        str,
        typer.Option(
            "--collective",
            help="all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all or send_recv.",
        ),
    ] = "all_reduce",
    root: Annotated[int, typer.Option("-r", "--root", help="Rank where a broadcast starts and a reduce ends.")] = 0,
    cluster: Annotated[
        str, typer.Option("--cluster", help="A preset, PRESETxSERVERS, or a file (see 'cluster list').")
    ] = "r7525",
    fail: Annotated[
        list[str] | None,
        typer.Option(
            "--fail",
            metavar="FAILURE",
            help="component[=fraction]@t[..t2] or a pattern name[:option=value,...], repeatable (see 'failures list').",
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", metavar="NAME", help="name[:key=value,...], repeatable; balance by default."),
    ] = None,
    backend: Annotated[str, typer.Option("--backend", help="flow or chunk.")] = "flow",
    zero_latency: Annotated[
        bool, typer.Option("--zero-latency", help="Set every latency of the cluster to zero.")
    ] = False,
    nic_bytes: Annotated[bool, typer.Option("--nic-bytes", help="Also print the bytes of every NIC.")] = False,
    pattern_file: PatternFiles = None,
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')] = False,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "-J", "--output_file", help="Also write the JSON of nccl-tests; several strategies: a file for each."
        ),
    ] = None,
) -> None:
    """Simulate nccl-tests: a collective of each size, under failures, with its overhead and the lower bound.

    Times count from the start of the first timed iteration.
    """
    from r2cc_simai.cli import coll_input, coll_json, show
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
    what = coll_input.operation(collective)
    strategies = [parse_strategy(text) for text in strategy or ("balance",)]
    files = [coll_json.file_of(json_file, one.spec, len(strategies)) for one in strategies] if json_file else []
    load_patterns(pattern_file)
    where = load_cluster(cluster)
    where = where.zero_latency() if zero_latency else where
    coll_input.check_root(root, where.n_ranks)
    timeline = parse_failures(fail or [], where)
    scenario = "coll, zero latency" if zero_latency else "coll"
    runs = []
    for one in strategies:
        for size in sizes:
            job = Job(size, what.name, iters, warmup_iters, cudagraph > 0, engine, root)
            runs.append(simulate(where, one, timeline, job))
    rows = [job_rows(run, scenario, nic_bytes=nic_bytes or json_output) for run in runs]
    numbers = _Numbers(
        per_count=element * (where.n_ranks if what.in_blocks else 1),
        datatype=datatype,
        op=op if what.reduces else "none",
        root=root if what.rooted else -1,
    )
    if json_output:
        show.json_rows(row for one in rows for row in one)
    else:
        head = f"{what.name} on {_describe(where)}, failures: {timeline.pattern}, backend: {backend}"
        _print_times(head + (", zero latency" if zero_latency else ""), rows, numbers)
        if nic_bytes:
            _print_bytes(rows)
    flags = {"-b": minbytes, "-e": maxbytes or minbytes, "-f": f"{stepfactor:g}", "-n": str(iters)}
    flags |= {"-w": str(warmup_iters), "-d": datatype, "-o": op, "-G": str(cudagraph), "-r": str(root)}
    asked = coll_json.Asked(cluster, fail or (), flags, stepfactor, cudagraph, *astuple(numbers))
    for path, first in zip(files, range(0, len(runs), len(sizes)), strict=False):
        own = slice(first, first + len(sizes))
        coll_json.write(path, runs[own], rows[own], asked)
    show.notes(note for run in runs for note in _notes(run))


def _describe(cluster: "Cluster") -> str:
    return f"{cluster.name} ({len(cluster.servers)} servers, {cluster.n_ranks} ranks, {len(cluster.nics)} NICs)"


def _notes(run: "Simulated") -> "list[str]":
    notes = [*run.cluster.remarks, *run.result.notes]
    if run.result.steady is None:
        size = run.result.job.bytes
        notes.append(f"{size} B: no iteration was free of failures and one-off costs; ask for more with -n")
    return notes


@dataclass(frozen=True)
class _Numbers:
    """Columns of nccl-tests beside the size: buffer bytes for an element of the count, and what it prints as is."""

    per_count: int
    datatype: str
    op: str
    root: int


def _print_times(head: str, rows: "Sequence[Sequence[Row]]", numbers: _Numbers) -> None:
    from r2cc_simai.cli import show

    kinds = [m for m in ("time_first", "time_cut") if any(row.metric == m for own in rows for row in own)]
    columns = ["strategy", "size (B)", "count", "type", "redop", "root", "time (us)", "algbw (GB/s)", "busbw (GB/s)"]
    columns += ["ideal (us)", "overhead (%)", "bound (us)", *(f"{kind} (us)" for kind in kinds)]
    lines = []
    for own in rows:
        by = {row.metric: row for row in own}
        time, other = by.get("time"), own[0]
        cells = [other.strategy, str(other.bytes), str(other.bytes // numbers.per_count)]
        cells += [numbers.datatype, numbers.op, str(numbers.root)]
        cells += [_us(None if time is None else time.simulated)]
        cells += [_gbs(by.get(metric)) for metric in ("algbw", "busbw")]
        cells += [
            _us((time or other).ideal),
            show.number(None if time is None else time.overhead_pct),
            _us((time or other).bound),
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
