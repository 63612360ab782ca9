"""`r2cc-simai compare`: measured runs beside their simulation."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.runners.compare import Compared, LogComparison


def compare(
    logs: Annotated[
        list[Path], typer.Argument(help="Logs of nccl-tests (text or -J), or of R2CC's hot-repair programs.")
    ],
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="A preset, PRESETxSERVERS, or a file; inferred from the log's hosts and NICs."),
    ] = None,
    backend: Annotated[str, typer.Option("--backend", help="flow or chunk.")] = "flow",
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')] = False,
) -> None:
    """Simulate what logs measured and print both side by side; exit code 1 if an error is above its tolerance.

    Tolerances: times 1% from 512 MiB on, 5% from 16 MiB on, 25% below; the iteration that a failure hits 2%; bytes per
    NIC 1%. A size whose measured bandwidth falls far below that of both neighbours is shown and not judged. Of a log
    that was cut, or into which several ranks wrote, the certain rows are judged; what was skipped is said on stderr.
    """
    from r2cc_simai.cli import coll_input, show
    from r2cc_simai.runners.compare import compare_log

    engine = coll_input.backend(backend)
    found = [compare_log(log, cluster, engine) for log in logs]
    if json_output:
        show.json_rows(one.row for comparison in found for one in comparison.compared)
    else:
        for comparison in found:
            _print(comparison, backend)
    show.notes(remark for comparison in found for remark in comparison.remarks)
    if not all(comparison.ok for comparison in found):
        raise typer.Exit(1)


def _print(comparison: "LogComparison", backend: str) -> None:
    from r2cc_simai.cli import show

    columns = ("run", "strategy", "size", "metric", "measured", "simulated", "error (%)", "tolerance (%)", "ok")
    head = f"{comparison.log} on {comparison.cluster}, backend: {backend}"
    show.table(head, columns, [_line(one) for one in comparison.compared], text=4)
    judged = [one for one in comparison.compared if one.judged]
    inside = sum(one.ok for one in judged)
    left_out = len(comparison.compared) - len(judged)
    outliers = f"; {left_out} outliers not judged" if left_out else ""
    typer.echo(f"{inside} of {len(judged)} within tolerance{outliers}\n")


def _line(one: "Compared") -> list[str]:
    from r2cc_simai.cli import show
    from r2cc_simai.units import format_size

    row = one.row
    verdict = ("yes" if one.ok else "NO") if one.judged else "outlier"
    values = [_value(row.measured, row.unit), _value(row.simulated, row.unit)]
    error, tolerance = show.signed(row.error_pct), f"{one.tolerance_pct:g}"
    return [row.scenario, row.strategy, format_size(row.bytes), row.metric, *values, error, tolerance, verdict]


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "B":
        return f"{value / 2**20:.1f} MiB"
    if value >= 1:
        return f"{value:.4f} s"
    return f"{value * 1e3:.3f} ms" if value >= 1e-3 else f"{value * 1e6:.2f} us"
