"""`r2cc-simai trace validate|show|convert`: traces that are there already, whoever wrote them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r2cc_simai.chakra.summary import RankSummary, Summary
    from r2cc_simai.chakra.validate import Report

Trace = Annotated[
    Path,
    typer.Argument(metavar="TRACE", help="FOLDER/NAME of NAME.<rank>.et, or a folder with one trace."),
]
Groups = Annotated[
    Path | None, typer.Option("--groups", metavar="JSON", help="Communicator groups. Default: NAME.groups.json.")
]
MOST_NODES = 8
MOST_CLASSES = 16


def validate(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE", help="FOLDER/NAME of NAME.<rank>.et, a folder with one trace, or one .et file."
        ),
    ],
    groups: Groups = None,
    all_: Annotated[bool, typer.Option("--all", help="List everything that was found as a table.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print everything that was found as JSON.")] = False,
) -> None:
    """Check a trace: each file, that ranks agree on what they do together, the groups, the manifest.

    The first error is told with file, node and reason, and ends the command with exit code 2; warnings do not.
    """
    from r2cc_simai.chakra.validate import validate as check
    from r2cc_simai.chakra.validate import validate_file
    from r2cc_simai.cli.trace_output import progress_bar
    from r2cc_simai.errors import InputError

    if trace.is_file():
        report = validate_file(trace)
    else:
        with progress_bar(f"reading {trace.name}") as progress:
            report = check(trace, groups=groups, progress=progress)
    error = report.first_error
    if json_output:
        _print_json(_report_data(report))
    elif all_:
        _findings_table(report)
    if error is not None:
        more = report.errors - 1
        raise InputError(error.line + (f"; {more} more errors, --all lists them" if more and not all_ else ""))
    if not json_output:
        print(f"{_counted(report)}: no errors")
        if not all_:
            _first_of_each_kind(report)


def show(
    trace: Trace,
    rank: Annotated[int | None, typer.Option("--rank", min=0, help="This rank alone.")] = None,
    groups: Groups = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what a trace adds up to, for each class of equal ranks: nodes, bytes, compute, critical path."""
    from dataclasses import asdict

    from r2cc_simai.chakra.folder import read_folder
    from r2cc_simai.chakra.summary import summarise_trace
    from r2cc_simai.cli.trace_output import progress_bar

    with progress_bar(f"reading {trace.name}") as progress:
        summary = summarise_trace(read_folder(trace, groups=groups, progress=progress), rank)
    if json_output:
        _print_json(asdict(summary))
        return
    _print_summary(summary)


def convert(
    trace: Trace,
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The JSON file to write.")],
    rank: Annotated[int | None, typer.Option("--rank", min=0, help="This rank alone.")] = None,
    groups: Groups = None,
) -> None:
    """Convert a trace into one JSON file that holds everything its files say."""
    from r2cc_simai.chakra.convert import convert as write_json
    from r2cc_simai.cli.trace_output import progress_bar
    from r2cc_simai.units import format_size

    with progress_bar(f"converting {trace.name}") as progress:
        size = write_json(trace, output, rank=rank, groups=groups, progress=progress)
    print(f"wrote {output}, {format_size(size)}")


def _print_json(data: dict[str, Any]) -> None:
    import json

    print(json.dumps(data, allow_nan=False, indent=1))


def _counted(report: "Report") -> str:
    ranks = "1 rank" if report.ranks == 1 else f"{report.ranks:,} ranks"
    ranks += f" in {report.classes:,} class{'es' if report.classes > 1 else ''}" if report.ranks > 1 else ""
    return f"{report.prefix}: {ranks}, {report.nodes:,} nodes"


def _report_data(report: "Report") -> dict[str, Any]:
    from dataclasses import asdict

    data = asdict(report)
    return {**data, "prefix": str(report.prefix)}


def _findings_table(report: "Report") -> None:
    from r2cc_simai.cli import show

    lines = [
        (one.severity, one.kind, one.file, _number(one.node), _number(one.position), one.reason, f"{one.more or ''}")
        for one in report.findings
    ]
    columns = ("severity", "check", "file", "node", "position", "reason", "more")
    show.table(_counted(report), columns, lines, text=6)


def _first_of_each_kind(report: "Report") -> None:
    from r2cc_simai.chakra.finding import one_per_kind

    for one, count, files in one_per_kind(report.findings):
        others = f" ({count} times in {files} files; --all lists them)" if files > 1 else ""
        others = others or (f" ({count} times)" if count > 1 else "")
        print(f"{one.severity}: {one.place}: {one.reason}{others}")


def _number(value: int | None) -> str:
    from r2cc_simai.cli import show

    return show.NONE if value is None else str(value)


def _print_summary(summary: "Summary") -> None:
    from r2cc_simai.cli import show
    from r2cc_simai.units import format_time

    kinds = list(dict.fromkeys(kind for one in summary.classes for kind in one.nodes))
    title = f"{summary.trace}: {summary.ranks:,} ranks, {summary.nodes:,} nodes"
    columns = ("class", "first rank", "ranks", *kinds, "compute", "FLOPs", "critical path")
    lines = [
        (
            *(str(one.number), str(one.first_rank), f"{one.ranks:,}"),
            *(f"{one.nodes.get(kind, 0):,}" for kind in kinds),
            *(format_time(one.compute_s), f"{one.num_ops:.4g}", format_time(one.critical.seconds)),
        )
        for one in summary.classes
    ]
    show.table(title + "; per rank of each class", columns, lines)
    for one in summary.classes[:MOST_CLASSES]:
        _print_traffic(one)
        _print_path(one)
    if len(summary.classes) > MOST_CLASSES:
        show.notes([f"details of {MOST_CLASSES} of {len(summary.classes)} classes; --rank or --json shows the others"])


def _print_traffic(one: "RankSummary") -> None:
    from r2cc_simai.cli import show
    from r2cc_simai.units import format_size

    lines = [
        (row.comm, row.group or show.NONE, _number(row.size), f"{row.count:,}", format_size(row.bytes))
        for row in one.traffic
    ]
    if lines:
        show.table(f"class {one.number}, a rank's communication", ("type", "group", "size", "count", "bytes"), lines, 2)


def _print_path(one: "RankSummary") -> None:
    from r2cc_simai.cli import show
    from r2cc_simai.units import format_time

    if not one.critical.node_ids:
        return
    ids = _shortened([str(node) for node in one.critical.node_ids])
    seconds = one.critical.seconds
    lines = [
        (row.name or show.NONE, f"{row.count:,}", format_time(row.seconds), f"{row.seconds / seconds:.1%}")
        for row in one.critical.names
    ]
    title = f"class {one.number}, critical path: {format_time(seconds)}, {len(one.critical.node_ids):,} nodes: {ids}"
    show.table(title, ("what takes longest on it", "count", "time", "share"), lines)


def _shortened(items: "Sequence[str]") -> str:
    if len(items) <= MOST_NODES:
        return " -> ".join(items)
    half = MOST_NODES // 2
    return " -> ".join((*items[:half], "...", *items[-half:]))
