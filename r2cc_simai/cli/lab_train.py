"""`r2cc-simai lab train`: a small language model, trained through the failure of a NIC."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.lab.training.job import Job, Verdict
    from r2cc_simai.results import Row


def train(
    training: Annotated[str, typer.Argument(help="A training file: ci, r7525, or a .yml file.")] = "r7525",
    out: Annotated[Path | None, typer.Option("--out", help="Run folder, runs/train-NAME by default.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write a report to the run folder.")] = True,
) -> None:
    """Train a small language model on a lab, once undisturbed and once a strategy with a NIC that fails. Needs root.

    The ranks' gradients are summed by real AllReduces. Losses must be those of the undisturbed job bit for bit up to
    the first AllReduce that is planned anew (to the end where none is), and the final perplexity nearly the same; else
    the exit code is 1.
    """
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the ranks share the cores
    from r2cc_simai.cli import show
    from r2cc_simai.lab.training.experiment import require_sound, run_training
    from r2cc_simai.lab.training.settings import load_training

    name, spec, lab = load_training(training)
    folder = out or Path("runs") / f"train-{name}"
    rows = run_training(name, spec, lab, folder, _nothing if json_output else _progress)
    if json_output:
        show.json_rows(rows)
    else:
        show.table(f"{name}: {spec.description}", _COLUMNS, _lines(rows), text=1)
    if report:
        from r2cc_simai.results.report import build_report

        build_report(rows, folder, f"Training {name}: {spec.description}")
    require_sound(rows)


_COLUMNS = (
    "strategy",
    "replanned in step",
    "equal losses (steps)",
    "equal parameters (steps)",
    "last loss (nat)",
    "perplexity",
    "difference (%)",
    "AllReduce before (ms)",
    "hit by the cut",
    "after",
    "recoveries",
    "ok",
)


def _nothing(job: "Job", verdict: "Verdict") -> None:
    pass


def _progress(job: "Job", verdict: "Verdict") -> None:
    from r2cc_simai.cli import show

    show.notes(job.notes)
    typer.echo(f"{job.case.key}: perplexity {job.history.perplexity:.6f}; {'; '.join(verdict.faults) or 'ok'}")


def _lines(rows: "list[Row]") -> list[list[str]]:
    by_strategy: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_strategy.setdefault(row.strategy, {})[row.metric] = row
    return [_line(strategy, metrics) for strategy, metrics in by_strategy.items()]


def _line(strategy: str, rows: "dict[str, Row]") -> list[str]:
    from r2cc_simai.cli import show

    def value(metric: str) -> float:
        return rows[metric].measured or 0.0

    last = next(metric for metric in reversed(rows) if metric.startswith("loss["))
    difference = 100 * (value("perplexity") / (rows["perplexity"].ideal or 1.0) - 1)
    times = [1e3 * value(metric) if metric in rows else None for metric in ("time_before", "time_cut", "time_after")]
    return [
        strategy,
        f"{value('replanned_in'):.0f}" if value("replanned_in") else show.NONE,
        f"{value('identical_losses'):.0f}",
        f"{value('identical_parameters'):.0f}",
        f"{value(last):.6f}",
        f"{value('perplexity'):.6f}",
        f"{difference:+.6f}",
        *(show.number(time_ms, 1) for time_ms in times),
        f"{value('recoveries'):.0f}",
        "NO" if value("faults") else "yes",
    ]
