"""`r2cc-simai baseline`: keep the overhead numbers of a run, and tell what has moved since."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.baseline.verdict import Finding, Verdict

app = typer.Typer(help="Keep the overhead numbers of a run, and tell what has moved since.")

TERMINAL_ROWS = 20
TERMINAL = (
    "scenario",
    "cluster",
    "failure",
    "strategy",
    "backend",
    "size",
    "metric",
    "from",
    "to",
    "change [%]",
    "overhead [%]",
    "measured",
)
"""Columns of the table on the terminal; the other formats have more."""

DEFAULT = "paper"

Run = Annotated[Path, typer.Argument(help="A run folder, or a results table (.csv, .parquet).")]
Name = Annotated[str, typer.Option("--name", help="The baseline reports/baselines/NAME.csv.")]
File = Annotated[Path | None, typer.Option("--baseline", help="A baseline elsewhere, instead of --name.")]


@app.command("update")
def update(
    run: Run,
    name: Name = DEFAULT,
    baseline: File = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Watch these metrics (patterns such as 'rx_bytes*') instead; repeat for more."),
    ] = None,
) -> None:
    """Write the overhead numbers of a run as the baseline, to be committed.

    Watched are times and what follows from them; numbers of drawn patterns are kept as their mean over the seeds.
    """
    from r2cc_simai.baseline.files import baseline_path, write_baseline
    from r2cc_simai.baseline.numbers import WATCHED, watched
    from r2cc_simai.errors import InputError
    from r2cc_simai.results import ERROR, read_rows
    from r2cc_simai.results.files import RESULTS_CSV

    path = baseline or baseline_path(name)
    numbers = watched(read_rows(run), metric or WATCHED)
    if run.is_dir() and not (run / RESULTS_CSV).is_file():
        raise InputError(f"{run}: no {RESULTS_CSV}; a baseline is made of a sweep that has come to its end")
    failed = sum(number.key.metric == ERROR for number in numbers)
    if len(numbers) == failed:
        raise InputError(f"{run}: no numbers of the watched metrics ({', '.join(metric or WATCHED)})")
    write_baseline(numbers, path)
    expected = f"; {failed} cases failed, and are expected to from now on" if failed else ""
    typer.echo(f"{len(numbers) - failed} numbers in {path}{expected}")


@app.command("check")
def check(
    run: Run,
    name: Name = DEFAULT,
    baseline: File = None,
    tolerances: Annotated[
        Path | None,
        typer.Option("--tolerances", help="What may move by how much; tolerances.yml beside the baseline by default."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write a summary for a comment or a job's page.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write JUnit XML: a test case a scenario, strategy, backend.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object with all findings.")] = False,
) -> None:
    """Compare the overhead numbers of a run with the baseline, and name what moved; exit code 1 if anything did.

    An improvement beyond its tolerance is a move as well: where it is meant, update the baseline.
    """
    from r2cc_simai.baseline.files import find_baseline, read_baseline
    from r2cc_simai.baseline.markdown import render_markdown
    from r2cc_simai.baseline.numbers import watched
    from r2cc_simai.baseline.rules import load_rules, rules_beside
    from r2cc_simai.baseline.verdict import judge
    from r2cc_simai.baseline.wording import failure_line
    from r2cc_simai.errors import InputError, MismatchError
    from r2cc_simai.results import read_rows

    path = baseline or find_baseline(name)
    known, rules = read_baseline(path), load_rules(tolerances or rules_beside(path))
    try:
        verdict = judge(known, watched(read_rows(run), ("*",)), rules)
    except InputError as error:
        raise InputError(f"{run} against {path}: {error}") from None
    target = ["--baseline", str(baseline)] if baseline else ["--name", name]
    accept = shlex.join(["r2cc-simai", "baseline", "update", str(run), *target])
    if markdown is not None:
        _write(markdown, render_markdown(verdict, path.stem, accept).encode())
    if junit is not None:
        from r2cc_simai.baseline.junit import render_junit

        _write(junit, render_junit(verdict, path.stem))
    _print(verdict, path, json_output)
    if not verdict.ok:
        raise MismatchError(f"{path.stem}: {failure_line(verdict)}; if that is meant: {accept}")


def _print(verdict: "Verdict", path: Path, json_output: bool) -> None:
    import json

    from r2cc_simai.baseline.as_json import to_json
    from r2cc_simai.baseline.verdict import Kind
    from r2cc_simai.baseline.wording import headline, listed, moved_groups

    if json_output:
        print(json.dumps(to_json(verdict, path.stem), allow_nan=False, indent=1))
        return
    typer.echo(f"{path}: {headline(verdict)}")
    for group in moved_groups(verdict):
        typer.echo(group.sentence())
    _table(verdict.of_kind(Kind.MOVED))
    for kind in (Kind.ERROR, Kind.MISSING, Kind.NEW):
        found = verdict.of_kind(kind)
        for line in listed(found[:TERMINAL_ROWS]):
            typer.echo(f"{kind.value}: {line}")
        if found[TERMINAL_ROWS:]:
            typer.echo(f"{kind.value}: and {len(found) - TERMINAL_ROWS} more (--json lists all)")


def _table(moved: "tuple[Finding, ...]") -> None:
    from r2cc_simai.baseline.wording import COLUMNS, cells
    from r2cc_simai.cli import show

    if not moved:
        return
    more = f"; {len(moved) - TERMINAL_ROWS} more with --json" if moved[TERMINAL_ROWS:] else ""
    title = f"\nthe largest moves (a positive change is a loss{more})"
    lines = (dict(zip(COLUMNS, cells(finding), strict=True)) for finding in moved[:TERMINAL_ROWS])
    show.table(title, TERMINAL, [[line[column] for column in TERMINAL] for line in lines], text=7)


def _write(path: Path, content: bytes) -> None:
    from r2cc_simai.errors import InputError

    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; a file that can be written is wanted") from None
