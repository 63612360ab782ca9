"""`r2cc-simai sim`: a training job from its traces, through failures, under strategies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2cc_simai.cli.failures_files import PatternFiles, load_patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r2cc_simai.cluster.model import Cluster
    from r2cc_simai.failures.timeline import Timeline
    from r2cc_simai.training.iteration import Iteration
    from r2cc_simai.training.job import TrainingJob, TrainingResult
    from r2cc_simai.workloads.gpus import Gpu


def sim(
    trace: Annotated[Path, typer.Option("--trace", help="Folder of Chakra traces, or FOLDER/NAME of NAME.<rank>.et.")],
    cluster: Annotated[
        str, typer.Option("--cluster", help="A preset, PRESETxSERVERS, or a file (see 'cluster list').")
    ],
    fail: Annotated[
        list[str] | None,
        typer.Option(
            "--fail",
            metavar="FAILURE",
            help="component[=fraction]@t[..t2] or a pattern name[:option=value,...], repeatable; t in seconds.",
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", metavar="NAME", help="name[:key=value,...], repeatable; balance by default."),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option("--timeline", metavar="FILE", help="Write the iteration that a failure hits for Perfetto (JSON)."),
    ] = None,
    timeline_rank: Annotated[
        list[int] | None,
        typer.Option(
            "--timeline-rank",
            metavar="RANK",
            help="Rank in the timeline, repeatable; by default rank 0 and those beside the failure.",
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            help="GPU whose roofline times compute nodes without a duration; by default the cluster's.",
        ),
    ] = None,
    unfold: Annotated[
        bool, typer.Option("--unfold", help="Simulate every rank, also where equal ones could be simulated once.")
    ] = False,
    pattern_file: PatternFiles = None,
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')] = False,
) -> None:
    """Simulate the training iteration of a trace under failures: time, overhead, exposed communication, tokens/s.

    Times count from the start of an iteration; what fails at 0 is known from its start.
    """
    from r2cc_simai.cli import show
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.failures.parse import parse_failures
    from r2cc_simai.runners.training import read_job, training_rows
    from r2cc_simai.strategies.registry import parse_strategy
    from r2cc_simai.training.job import run_training

    strategies = [parse_strategy(text) for text in strategy or ("balance",)]
    load_patterns(pattern_file)
    where = load_cluster(cluster)
    failures = parse_failures(fail or [], where)
    job = read_job(trace, where, _gpu(gpu, where))
    record = _recorded(job, failures, timeline_rank) if timeline else ()
    results = [run_training(job, one, failures, fold=not unfold, record=record) for one in strategies]
    if timeline:
        for result in results:
            _write_timeline(result, timeline, len(results) > 1)
    if json_output:
        show.json_rows(row for result in results for row in training_rows(result, "sim"))
    else:
        _print(job, failures, results)
    show.notes(note for result in results for note in (*where.remarks, *result.notes))
    if job.ranks.untimed:
        how = f"are timed by the roofline of {job.ranks.gpu.name}" if job.ranks.gpu else "take no time; see --gpu"
        show.notes([f"{job.ranks.untimed} compute nodes of the trace have no duration and {how}"])


def _gpu(name: str | None, cluster: "Cluster") -> "Gpu | None":
    """The GPU that is asked for, else that of the cluster's servers if it is a known one."""
    from r2cc_simai.errors import InputError
    from r2cc_simai.workloads.gpus import load_gpu

    try:
        return load_gpu(name or cluster.spec.server.gpus.model)
    except InputError:
        if name:
            raise
        return None


def _recorded(job: "TrainingJob", failures: "Timeline", asked: "Sequence[int] | None") -> tuple[int, ...]:
    """Ranks in the timeline: those asked for, else rank 0 and the ranks next to what fails."""
    from r2cc_simai.errors import InputError
    from r2cc_simai.training.timeline import ranks_beside

    ranks = {int(rank) for rank in job.ranks.rank}
    for rank in asked or ():
        if rank not in ranks:
            raise InputError(f"--timeline-rank {rank}: the trace has ranks 0 to {len(ranks) - 1}")
    if asked:
        return tuple(dict.fromkeys(asked))
    return ranks_beside(job, failures)


def _write_timeline(result: "TrainingResult", path: Path, several: bool) -> None:
    from r2cc_simai.training.timeline import write_timeline

    run = result.hit or result.after
    names = [nic.full_name for nic in result.job.cluster.nics]
    target = path.with_suffix(f".{result.strategy.name}{path.suffix or '.json'}") if several else path
    write_timeline(run, names, target)


def _print(job: "TrainingJob", failures: "Timeline", results: "Sequence[TrainingResult]") -> None:
    from r2cc_simai.cli import show

    healthy = job.healthy
    speed = f", {job.tokens / healthy.elapsed_s:,.0f} tokens/s" if job.tokens else ""
    print(
        f"{job.name}: {len(job.ranks)} ranks on {job.cluster.name}; healthy iteration {healthy.elapsed_s:.6g} s"
        f"{speed}, {100 * healthy.exposed_share:.2f}% exposed communication"
    )
    lines = [
        (
            result.strategy.spec,
            f"{result.after.elapsed_s:.6g}",
            show.signed(100 * result.overhead, 3),
            show.number(100 * result.after.exposed_share),
            f"{result.tokens_per_s:,.0f}" if job.tokens else show.NONE,
            show.NONE if result.hit_s is None else f"{result.hit_s:.6g}",
            f"{len(result.dropped)}" if result.dropped else show.NONE,
            _equal(result.after),
        )
        for result in results
    ]
    columns = (
        "strategy",
        "iteration [s]",
        "overhead [%]",
        "exposed [%]",
        "tokens/s",
        "iteration hit [s]",
        "ranks lost",
        "simulated ranks",
    )
    show.table(f"failures: {failures.pattern}", columns, lines)


def _equal(run: "Iteration") -> str:
    return f"{len(run.classes.first_rank)} of {len(run.ranks)}"
