"""`r2cc-simai real parse`: logs of real training and serving as rows, beside healthy ones and simulated ones."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.real.job_metrics import JobMeasurement
    from r2cc_simai.real.megatron_log import Window
    from r2cc_simai.results import Row


def parse(
    logs: Annotated[
        list[Path], typer.Argument(help="Logs of Megatron-LM, or JSON of vllm bench serve; several are repetitions.")
    ],
    healthy: Annotated[
        Path | None, typer.Option("--healthy", metavar="LOG", help="The same without a failure: adds the overheads.")
    ] = None,
    simulated: Annotated[
        Path | None,
        typer.Option("--simulated", metavar="RUN", help="A run folder, a .csv or a .parquet: adds simulated values."),
    ] = None,
    strategy: Annotated[str, typer.Option("--strategy", help="Strategy that the job ran; picks simulated rows.")] = "",
    scenario: Annotated[str, typer.Option("--scenario", help="Name of the rows; picks simulated rows.")] = "",
    cluster: Annotated[str, typer.Option("--cluster", help="Cluster of the job; picks simulated rows.")] = "",
    workload: Annotated[str, typer.Option("--workload", help="The job; picks simulated rows.")] = "",
    fail: Annotated[str, typer.Option("--fail", help="What had failed; picks simulated rows by their pattern.")] = "",
    skip: Annotated[
        int, typer.Option("--skip", help="Lines of iterations at the start of a log that do not count.")
    ] = 1,
    iterations: Annotated[
        str | None, typer.Option("--iterations", metavar="A..B", help="Iterations that count; either end may be open.")
    ] = None,
    healthy_iterations: Annotated[
        str | None,
        typer.Option("--healthy-iterations", metavar="A..B", help="The same for --healthy, which may be the same log."),
    ] = None,
    seq_length: Annotated[
        int | None, typer.Option("--seq-length", help="Tokens of a sample, where the log does not list it.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write the rows as CSV.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')] = False,
) -> None:
    """Read what real jobs measured into the results table: medians over iterations, and TTFT, TPOT and throughput."""
    from r2cc_simai.cli import real_output, show
    from r2cc_simai.real.beside import Labels, job_rows
    from r2cc_simai.real.job_log import read_job_log
    from r2cc_simai.results import read_rows

    window = _window("--iterations", iterations, skip)
    measured = [one for log in logs for one in read_job_log(log, window, seq_length)]
    calm = (
        None
        if healthy is None
        else _healthy(healthy, _window("--healthy-iterations", healthy_iterations, skip), seq_length)
    )
    beside = None if simulated is None else read_rows(simulated)
    labels = Labels(scenario, cluster, workload, fail, strategy)
    rows: list[Row] = []
    for number, one in enumerate(measured, start=1):
        note = f"repetition {number} of {len(measured)}" if len(measured) > 1 else ""
        rows += job_rows(one, calm, beside, labels, note)
    if output is not None:
        real_output.store(rows, output)
    if json_output:
        show.json_rows(rows)
    else:
        _print(rows)
    show.notes(remark for one in (*measured, *((calm,) if calm else ())) for remark in one.remarks)


def _healthy(path: Path, window: "Window", seq_length: int | None) -> "JobMeasurement":
    from r2cc_simai.errors import InputError
    from r2cc_simai.real.job_log import read_job_log

    found = read_job_log(path, window, seq_length)
    if len(found) != 1:
        raise InputError(f"--healthy {path}: {len(found)} runs in it; one is wanted")
    return found[0]


def _window(option: str, text: str | None, skip: int) -> "Window":
    from r2cc_simai.errors import InputError
    from r2cc_simai.real.megatron_log import Window

    if skip < 0:
        raise InputError(f"--skip {skip}: must not be negative")
    if text is None:
        return Window(skip)
    match = re.fullmatch(r"(\d*)\.\.(\d*)", text)
    first, last = (int(one) if one else None for one in match.groups()) if match else (None, None)
    if (first is None and last is None) or (first is not None and last is not None and first > last):
        raise InputError(f"{option} {text}: write FIRST..LAST, with one of them or both")
    return Window(skip if first is None else 0, first, last)


def _print(rows: "list[Row]") -> None:
    from r2cc_simai.cli import real_output, show

    columns = ("log", "strategy", "metric", "measured", "simulated", "error (%)")
    lines = []
    for row in rows:
        values = [
            _said(value, row.unit, real_output.measured_value(value, row.unit))
            for value in (row.measured, row.simulated)
        ]
        lines.append(
            (row.source.split(";")[0], row.strategy or show.NONE, row.metric, *values, show.signed(row.error_pct))
        )
    show.table("measured jobs", columns, lines, text=3)


def _said(value: float | None, unit: str, other: str) -> str:
    return f"{value:+.2f} %" if unit == "%" and value is not None else other
