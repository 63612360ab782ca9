"""`r2cc-simai calibrate`: a cluster's parameters from a healthy sweep."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.results import Row
    from r2cc_simai.runners.calibrate import Calibration


def calibrate(
    log: Annotated[
        Path, typer.Argument(help="Output of nccl-tests (text or -J): AllReduce by size, without a failure.")
    ],
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", help="Where to start from: a preset, PRESETxSERVERS, or a file; inferred from the log."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the calibrated cluster to this YAML file.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')] = False,
) -> None:
    """Fit at most seven named parameters of a cluster to one healthy sweep; exit code 1 if a size stays outside.

    Fitted: rate, line rate and burst of the NICs, start, step and link latency, the threshold of the low-latency
    protocol. The largest error in terms of its tolerance is made as small as it can be.
    """
    from r2cc_simai.cli import show

    found = _fit(log, cluster)
    if out is not None:
        _write(found, out, cluster, log)
    if json_output:
        show.json_rows(_rows(found))
    else:
        _print(found, out)
    show.notes(found.remarks)
    if not found.ok:
        raise typer.Exit(1)


def _fit(log: Path, cluster: str | None) -> "Calibration":
    from rich.console import Console
    from rich.progress import Progress

    from r2cc_simai.runners.calibrate import calibrate as fit_log

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("fitting", total=1.0)
        return fit_log(log, cluster, lambda part: progress.update(task, completed=part))


def _write(found: "Calibration", out: Path, cluster: str | None, log: Path) -> None:
    from r2cc_simai.errors import InputError
    from r2cc_simai.runners.calibrated import as_file, preset_of

    preset = preset_of(cluster or found.cluster.name)
    text = as_file(found.spec, preset, f"r2cc-simai calibrate {log.name}")
    try:
        out.write_text(text)
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}") from None


def _print(found: "Calibration", out: Path | None) -> None:
    from r2cc_simai.cli import show
    from r2cc_simai.units import format_size

    lines = [[p.name, f"{p.before:g}", f"{p.after:g}"] for p in found.parameters]
    show.table(f"Parameters of {found.cluster.name}, fitted to {found.source}", ("parameter", "before", "after"), lines)
    columns = ("size", "measured (us)", "before (us)", "error (%)", "after (us)", "error (%)", "tolerance (%)", "ok")
    times = []
    for point, before, after in zip(found.points, found.before_s, found.after_s, strict=True):
        errors = [100 * (time_s / point.time_s - 1) for time_s in (before, after)]
        inside = "yes" if abs(errors[1]) <= point.tolerance_pct else "NO"
        times.append(
            [
                format_size(point.bytes),
                show.number(point.time_s * 1e6),
                show.number(before * 1e6),
                show.signed(errors[0]),
                show.number(after * 1e6),
                show.signed(errors[1]),
                f"{point.tolerance_pct:g}",
                inside if point.judged else "outlier",
            ]
        )
    show.table("Time of an AllReduce by size", columns, times)
    if out is not None:
        typer.echo(f"written to {out}")


def _rows(found: "Calibration") -> "list[Row]":
    """Simulated before (scenario `calibrate before`) and after beside measured, then the parameters.

    A parameter's name is the metric; `ideal` is its value before, `simulated` the fitted one. Its unit is in its name.
    """
    from r2cc_simai.results import make_row

    rows = []
    row = partial(make_row, cluster=found.cluster.name, pattern="none", strategy="ideal", backend="flow")
    for scenario, times in (("calibrate before", found.before_s), ("calibrate", found.after_s)):
        for point, time_s in zip(found.points, times, strict=True):
            rows.append(
                row(
                    scenario=scenario,
                    workload="all_reduce",
                    bytes=point.bytes,
                    metric="time",
                    unit="s",
                    simulated=float(time_s),
                    ideal=float(time_s),
                    measured=point.time_s,
                    source=found.source + ("" if point.judged else " (outlier)"),
                )
            )
    rows += [
        row(
            scenario="calibrate",
            workload="parameter",
            bytes=0,
            metric=parameter.name,
            unit=parameter.name.rsplit("_", 1)[-1],
            simulated=float(parameter.after),
            ideal=float(parameter.before),
            source=found.source,
        )
        for parameter in found.parameters
    ]
    return rows
