"""What all generators of traces share on the command line: compute times, the files, and the table of checks."""

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2cc_simai.workloads.compute_times import ComputeTimes
    from r2cc_simai.workloads.manifest import Check
    from r2cc_simai.workloads.program import Workload


def one_of(flag: str, value: str, allowed: Sequence[str]) -> None:
    """Refuses a value that is not allowed.

    Raises:
        InputError: it is none of them.
    """
    from r2cc_simai.errors import InputError

    if value not in allowed:
        raise InputError(f"{flag} {value}: unknown (allowed: {', '.join(allowed)})")


def trace_name(name: str | None, default: str) -> str:
    """The name of a trace's files.

    Raises:
        InputError: it cannot be the start of a file's name.
    """
    from r2cc_simai.errors import InputError

    wanted = default if name is None else name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", wanted):
        raise InputError(f"--name {wanted!r}: letters, digits and . _ + - are allowed, a letter or digit first")
    return wanted


def compute_times(
    source: str | None, gpu: str, table: Path | None, *, mfu_scale: float = 1.0, fallback: bool = False
) -> "ComputeTimes":
    """The compute times that the options ask for; a table alone means `csv`.

    Raises:
        InputError: unknown source or GPU, a table where none is used, or a scale that is not positive.
    """
    from r2cc_simai.errors import InputError
    from r2cc_simai.workloads.compute_times import SOURCES
    from r2cc_simai.workloads.compute_times import compute_times as build

    wanted = source or ("csv" if table else "roofline")
    one_of("--compute", wanted, SOURCES)
    if table is not None and wanted != "csv":
        raise InputError(f"--compute-times {table}: is read with --compute csv only")
    if not 0 < mfu_scale < math.inf:
        raise InputError(f"--mfu-scale {mfu_scale:g}: a number above 0 is wanted")
    return build(wanted, gpu, table, mfu_scale, fallback)


def write(workload: "Workload", directory: Path, *, fold: bool, force: bool) -> None:
    """Writes the files of a workload and prints what they are and how they add up.

    Raises:
        InputError: the folder cannot be written, or holds another trace of the same name.
        MismatchError: the nodes do not add up to a closed form.
    """
    from r2cc_simai.chakra.write import write_workload
    from r2cc_simai.errors import InputError, MismatchError
    from r2cc_simai.units import format_size

    try:
        with progress_bar(f"writing {workload.name}") as progress:
            paths = write_workload(workload, directory, fold=fold, progress=progress, force=force)
        written = sum(path.stat().st_size for path in paths)
    except OSError as error:
        raise InputError(f"--output {directory}: {error.strerror}") from None
    checks = workload.manifest.checks
    _summary(workload)
    _table(checks)
    print(f"wrote {len(paths)} files, {format_size(written)}: {directory / workload.name}.*")
    wrong = [check for check in checks if check.of_trace and not check.ok]
    if wrong:
        raise MismatchError(
            f"{len(wrong)} of {len(checks)} closed forms do not hold, the first is {wrong[0].name}: "
            f"{wrong[0].formula:.6g} by the formula, {wrong[0].trace:.6g} in the trace"
        )


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on the terminal for a function that is told how many of how many are done; none elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _summary(workload: "Workload") -> None:
    manifest = workload.manifest
    nodes = [len(program) for program in workload.programs]
    sizes = ", ".join(f"{name} {size}" for name, size in manifest.layout.items())
    span = f"{min(nodes):,}" + (f" to {max(nodes):,}" if len(set(nodes)) > 1 else "")
    print(f"{workload.name}: {sizes}")
    print(f"{len(nodes)} classes of ranks, {span} nodes each; {manifest.tokens:,} tokens, {manifest.flops:.4g} FLOPs")
    print(f"compute times: {manifest.compute_times}")
    print()


def _table(checks: "Sequence[Check]") -> None:
    from r2cc_simai.cli import show

    lines = [(check.name, _said(check.formula), _said(check.trace), _difference(check)) for check in checks]
    show.table("closed forms, and what the nodes add up to", ("all ranks", "closed form", "trace", "difference"), lines)


def _said(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) and value < 10**16 else f"{value:.6g}"


def _difference(check: "Check") -> str:
    if check.trace == check.formula:
        return "equal"
    share = f"{check.trace / check.formula - 1:+.3%}" if check.formula else "wrong"
    return share if check.ok else f"{share} (!)"
