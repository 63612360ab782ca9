"""`r2cc-simai export`: the schedule of a strategy as files for ASTRA-sim (Chakra) or for GPUs (MSCCL)."""

from typing import TYPE_CHECKING, Annotated

import typer

from r2cc_simai.cli.failures_files import PatternFiles, load_patterns

if TYPE_CHECKING:
    from pathlib import Path

    from r2cc_simai.collectives.checker import Wanted
    from r2cc_simai.collectives.schedule import Schedule
    from r2cc_simai.exporters.wish import Wish

FORMATS = ("chakra", "msccl")
PROVEN = "read back and proven: every contribution ends exactly once where it belongs, in every order that is allowed"


def export(
    output: Annotated[
        str, typer.Option("--output", metavar="PATH", help="chakra: PREFIX of PREFIX.<rank>.et; msccl: the XML file.")
    ],
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="chakra or msccl.")],
    cluster: Annotated[str, typer.Option("--cluster", help="A preset, PRESETxSERVERS, or a file.")] = "r7525",
    size: Annotated[str, typer.Option("--size", help="Buffer of a rank, bytes (K, M, G: powers of 1024).")] = "64MiB",
    strategy: Annotated[str, typer.Option("--strategy", metavar="NAME", help="name[:key=value,...].")] = "balance",
    fail: Annotated[
        list[str] | None,
        typer.Option("--fail", metavar="FAILURE", help="component[=fraction]@0: what is known to be down. Repeatable."),
    ] = None,
    pattern_file: PatternFiles = None,
    collective: Annotated[
        str, typer.Option("--collective", help="As for coll; msccl takes all_reduce only.")
    ] = "all_reduce",
    root: Annotated[int, typer.Option("-r", "--root", help="Rank where a broadcast starts and a reduce ends.")] = 0,
    piece: Annotated[
        str | None,
        typer.Option(
            "--piece",
            metavar="SIZE",
            help="chakra: largest message; the cluster's chunk by default, 0: whole sections.",
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Read back and prove; msccl always does.")] = False,
) -> None:
    """Write the schedule of a strategy, in a known state of a cluster, as Chakra traces or MSCCL XML."""
    from pathlib import Path

    from r2cc_simai.cli import coll_input, show
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.errors import InputError
    from r2cc_simai.exporters.wish import Wish, known_state
    from r2cc_simai.failures.parse import parse_failures
    from r2cc_simai.strategies.registry import parse_strategy

    if format_ not in FORMATS:
        raise InputError(f"--format {format_}: unknown (allowed: {', '.join(FORMATS)})")
    if piece is not None and format_ != "chakra":
        raise InputError("--piece: for --format chakra only; MSCCL's runtime cuts messages by itself")
    path = Path(output)
    if not path.name or not path.parent.is_dir() or path.is_dir():
        raise InputError(f"--output {output}: name a file in a folder that exists")
    total = coll_input.size("--size", size)
    limit = None if piece is None else coll_input.size("--piece", piece)
    load_patterns(pattern_file)
    where = load_cluster(cluster)
    coll_input.check_root(root, where.n_ranks)
    one = parse_strategy(strategy)
    view = known_state(where, parse_failures(fail or [], where), one)
    wish = Wish(one, view, coll_input.operation(collective).name, root)
    plan = wish.plan(total)
    show.notes([plan.note] if plan.note else [])
    if format_ == "chakra":
        print(_chakra(plan.schedule, path, limit, wish.wanted(total) if check else None))
    else:
        print(_msccl(wish, plan.schedule, path, total))
    if check or format_ == "msccl":
        print(PROVEN)


def _chakra(schedule: "Schedule", prefix: "Path", piece: int | None, wanted: "Wanted | None") -> str:
    from r2cc_simai.errors import InputError, MismatchError
    from r2cc_simai.exporters.chakra import write_chakra
    from r2cc_simai.exporters.chakra_reader import read_chakra
    from r2cc_simai.exporters.verify import find_fault
    from r2cc_simai.units import format_size

    try:
        paths = write_chakra(schedule, prefix, piece)
    except OSError as error:
        raise InputError(f"--output {prefix}: {error.strerror}") from None
    if wanted is not None:
        fault = find_fault(read_chakra(prefix), wanted)
        if fault:
            raise MismatchError(fault)
    written = sum(path.stat().st_size for path in paths)
    return f"wrote {len(paths)} files, {paths[0]} .. {paths[-1].name}, {format_size(written)}"


def _msccl(wish: "Wish", schedule: "Schedule", path: "Path", size: int) -> str:
    from r2cc_simai.errors import InputError
    from r2cc_simai.exporters.msccl import msccl_xml
    from r2cc_simai.exporters.msccl_limits import UnevenError
    from r2cc_simai.exporters.msccl_reader import prove_msccl
    from r2cc_simai.exporters.sizes import nearest_even_size
    from r2cc_simai.units import format_size

    cluster = wish.view.cluster
    if len(wish.group) != cluster.n_ranks:
        raise InputError(f"MSCCL: the strategy keeps {len(wish.group)} of {cluster.n_ranks} ranks; a program has all")
    try:
        text = msccl_xml(schedule, f"{wish.strategy.spec} on {cluster.name}", wish.op)
    except UnevenError as error:
        near = nearest_even_size(lambda other: wish.plan(other).schedule, size)
        raise InputError(f"{error}" + (f"; --size {near} would do" if near else "")) from None
    places = prove_msccl(text, path.name, wish.wanted(size))
    try:
        path.write_text(text, encoding="ascii")
    except OSError as error:
        raise InputError(f"--output {path}: {error.strerror}") from None
    return f"wrote {path}, {format_size(len(text))}, for calls {' and '.join(places)} of {size} B"
