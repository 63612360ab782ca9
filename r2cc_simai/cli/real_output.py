"""What the commands on real clusters share: durations, the folder of a run, dry runs, the stored table."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2cc_simai.real.launcher import Command
    from r2cc_simai.results import Row


def duration(option: str, text: str) -> float:
    """Seconds of an option, above 0.

    Raises:
        InputError: no duration.
    """
    from r2cc_simai.errors import InputError
    from r2cc_simai.units import parse_duration

    try:
        seconds = parse_duration(text)
    except InputError as error:
        raise InputError(f"{option} {error}") from None
    if seconds <= 0:
        raise InputError(f"{option} {text}: write a time above 0")
    return seconds


def fresh_folder(path: Path) -> Path:
    """The folder of a run, made where it is not there; what an earlier run measured is never written over.

    Raises:
        InputError: it cannot be made, or holds files.
    """
    from r2cc_simai.errors import InputError

    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise InputError(f"--output {path}: holds files already; choose another folder")
    except OSError as error:
        raise InputError(f"--output {path}: {error.strerror}") from None
    return path


def echo(*, json_output: bool) -> Callable[[str], None]:
    """Shows the output of a run while it comes; on stderr where stdout is for JSON."""

    def show(text: str) -> None:
        stream = sys.stderr if json_output else sys.stdout
        stream.write(text)
        stream.flush()

    return show


def dry_run(commands: "Iterable[Command]", remarks: Sequence[str]) -> None:
    """Prints the exact commands, each as one would write it in a shell, and what happens around them."""
    for command in commands:
        print(command.text)
    for remark in remarks:
        print(f"# {remark}")


def store(rows: "Sequence[Row]", path: Path) -> None:
    """Writes a results table as CSV.

    Raises:
        InputError: it cannot be written.
    """
    from r2cc_simai.errors import InputError
    from r2cc_simai.results.files import write_csv

    try:
        write_csv(rows, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def measured_value(value: float | None, unit: str) -> str:
    """A value of a row for people."""
    from r2cc_simai.units import format_rate, format_time

    if value is None:
        return "-"
    if unit == "s":
        return format_time(value)
    return format_rate(value) if unit == "B/s" else f"{value:,.6g}"
