"""`r2cc-simai lab`: an emulated cluster with real bytes and real cuts, and its simulation beside it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2cc_simai.cli import lab_train

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r2cc_simai.lab.compare import LabComparison, Side
    from r2cc_simai.lab.spec import LabCase
    from r2cc_simai.results import Row

app = typer.Typer(
    help="Run collectives with real bytes on an emulated cluster whose NICs are cut, beside their simulation.",
    no_args_is_help=True,
)
app.command("train")(lab_train.train)

Json = Annotated[bool, typer.Option("--json", help='Print one JSON object {"rows": [...]}.')]


@app.command("list")
def show_list() -> None:
    """List the labs that ship with the project."""
    from r2cc_simai.cli import show
    from r2cc_simai.lab.spec import cases_of, load_lab, preset_names

    lines = []
    for name in preset_names():
        _, spec = load_lab(name)
        lines.append([name, spec.description, ", ".join(spec.strategies), str(len(cases_of(spec)))])
    show.table("Labs", ("lab", "what it emulates", "strategies", "cases"), lines, text=3)


@app.command("run")
def run(
    lab: Annotated[str, typer.Argument(help="A preset (see 'lab list') or a .yml file.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder, runs/lab-NAME by default; a killed run resumes in it.")
    ] = None,
    repetitions: Annotated[int | None, typer.Option("-n", "--repetitions", help="In place of the lab file's.")] = None,
    json_output: Json = False,
) -> None:
    """Run a lab: every strategy under every failure, every element of every result checked. Needs root.

    Servers are network namespaces without a name, NICs are veth pairs with rate limits, cuts are real. All traffic
    stays inside, and nothing is left behind whatever ends the command.
    """
    from r2cc_simai.cli import show
    from r2cc_simai.errors import InputError
    from r2cc_simai.lab.experiment import run_lab
    from r2cc_simai.lab.spec import load_lab

    name, spec = load_lab(lab)
    if repetitions is not None:
        if not 1 <= repetitions <= 100:
            raise InputError(f"-n {repetitions}: write a number of repetitions from 1 to 100")
        spec = spec.model_copy(update={"repetitions": repetitions})
    folder = out or Path("runs") / f"lab-{name}"
    rows = run_lab(name, spec, folder, _nothing if json_output else _progress)
    if json_output:
        show.json_rows(rows)
    else:
        typer.echo(f"\n{folder}: results.csv, raw/; compare with the simulation by 'r2cc-simai lab compare {folder}'")


@app.command("compare")
def compare(
    folder: Annotated[Path, typer.Argument(help="Run folder of 'lab run'.")],
    json_output: Json = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write compare.csv and a report there.")] = True,
) -> None:
    """Simulate what a lab measured (`chunk`, calibrated from its healthy iterations) and print both side by side.

    Exit code 1 if an error is above its tolerance (by default times 2%, ratios to healthy 1%, bytes per NIC 0.5%, the
    iteration that a cut hits 5%).
    """
    from r2cc_simai.cli import show
    from r2cc_simai.lab.compare import compare_lab
    from r2cc_simai.lab.experiment import lab_of_folder
    from r2cc_simai.results import read_rows

    name, spec = lab_of_folder(folder)
    found = compare_lab(name, spec, read_rows(folder))
    if json_output:
        show.json_rows(found.rows)
    else:
        _print(found)
    if report:
        _write_report(found, folder, spec.description)
    if not found.ok:
        raise typer.Exit(1)


def _nothing(case: "LabCase", rows: "Sequence[Row]") -> None:
    pass


def _progress(case: "LabCase", rows: "Sequence[Row]") -> None:
    from statistics import median

    parts = []
    for metric, name in (("time_cut", "hit by the cut"), ("time", "time")):
        values = [row.measured for row in rows if row.metric == metric and row.measured is not None]
        if values:
            spread = f"{min(values):.4f} to {max(values):.4f}"
            parts.append(f"{name} {median(values):.4f} s ({spread}, {len(values)} repetitions)")
    moved = sum(int(row.measured or 0) for row in rows if row.metric == "recoveries")
    parts += [f"{moved} recoveries"] if moved else []
    typer.echo(f"{case.key}: {'; '.join(parts)}")


def _print(found: "LabComparison") -> None:
    from r2cc_simai.cli import show

    fit = found.calibration
    typer.echo(
        f"calibrated from the healthy run: {fit.step_s * 1e6:.0f} us a step, {fit.base_s * 1e3:.2f} ms a collective "
        f"beside steps and bytes, {fit.header_bytes:.1f} bytes around the payload of a packet\n"
    )
    columns = ("failure", "strategy", "metric", "measured", "spread", "simulated", "error (%)", "tolerance (%)", "ok")
    times = [side for side in found.sides if side.row.unit != "B"]
    show.table(f"{found.name}: lab beside chunk", columns, [_line(side) for side in times], text=3)
    counted = [side for side in found.sides if side.row.unit == "B"]
    worst = sorted(counted, key=lambda side: -abs(side.error_pct))
    show.table("Bytes per NIC: the largest errors", columns, [_line(side) for side in worst[:10]], text=3)
    inside = sum(side.ok for side in found.sides)
    typer.echo(f"{inside} of {len(found.sides)} within tolerance")


def _line(side: "Side") -> list[str]:
    from r2cc_simai.cli import show

    row = side.row
    text = _Text(row.unit)
    spread = f"{text(side.lowest)}..{text(side.highest)}"
    values = [text(row.measured), spread, text(row.simulated), show.signed(side.error_pct)]
    metric = f"{row.metric} (cut)" if row.scenario.endswith("/cut") else row.metric
    return [side.case.failure, row.strategy, metric, *values, f"{side.tolerance_pct:g}", "yes" if side.ok else "NO"]


class _Text:
    """Values of one unit as text."""

    def __init__(self, unit: str) -> None:
        self._unit = unit

    def __call__(self, value: float | None) -> str:
        if value is None:
            return "-"
        if self._unit == "B":
            return f"{value / 1e6:.3f} MB"
        return f"{value:.4f}" + (" s" if self._unit == "s" else "")


def _write_report(found: "LabComparison", folder: Path, description: str) -> None:
    from r2cc_simai.results.files import write_csv
    from r2cc_simai.results.report import build_report

    write_csv(found.rows, folder / "compare.csv")
    build_report(found.rows, folder, f"Lab {found.name}: {description}")
