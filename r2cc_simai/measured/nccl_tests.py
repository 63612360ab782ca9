"""Reads the text that nccl-tests prints, one run or several after another in a file.

What a run is comes from the lines around its table: the program's name, the list of ranks, and the
R2CC_*, NCCL_* settings and `nodes=N ranks=N` that a launcher printed before it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from r2cc_simai.errors import InputError
from r2cc_simai.measured.log_text import LogText
from r2cc_simai.measured.model import Measurement, SizeResult
from r2cc_simai.measured.nccl_table import HEADING, ROW, TableLayout, read_heading, read_row
from r2cc_simai.measured.settings import failure_warnings, run_settings

SIGN = re.compile(r"^# nThread \d|^# Using devices|^# Collective test starting|^\[nccl-tests\]|" + HEADING.pattern)
"""A line by which such a text is known."""

_SECTION = re.compile(r"^=+ (.+?) =+$")
_SETTING = re.compile(r"\b((?:R2CC|NCCL)_[A-Z0-9_]+)=(\S*)")
_SHAPE = re.compile(r"\bnodes=(\d+) ranks=(\d+)\b")
_PROGRAM = re.compile(r"\b([a-z_0-9]+)_perf\b")
_RANK = re.compile(r"^#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device")
_FOOTER = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)")
_EXIT = re.compile(r"^\[nccl-tests\] rc=(\d+)")
_START = re.compile(r"^# (?:nccl-tests version|Collective test starting|nThread \d)")
_ANNOUNCES = (_SHAPE, _START, _RANK)
"""Lines after which a table must follow."""
_SEPARATES = (_SECTION, _SETTING, *_ANNOUNCES)
"""Lines that belong to the next run when they follow a finished table."""


@dataclass
class _Run:
    """What the lines read so far say of one run."""

    section: str = ""
    announced: bool = False
    program: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    settings_line: int = 0
    shape: tuple[int, int] | None = None
    hosts: list[str] = field(default_factory=list)
    layout: TableLayout | None = None
    heading_line: int = 0
    sizes: list[SizeResult] = field(default_factory=list)
    closed: bool = False
    warnings: list[str] = field(default_factory=list)


def read_nccl_tests(log: LogText) -> list[Measurement]:
    """Every run of the text, in order.

    Raises InputError on a table that is cut short, has no rows or does not fit its heading, and when
    the text holds no table at all.
    """
    measurements: list[Measurement] = []
    run = _Run()
    for index, line in enumerate(log.lines):
        if run.closed and _matches(line, _SEPARATES):
            measurements.append(_measurement(log, run))
            run = _Run()
        _read_line(log, index, run)
    if measurements and run.layout is None and not run.announced:
        return measurements
    if not run.closed:
        raise log.truncated("the table of nccl-tests and its last line '# Out of bounds values'")
    return [*measurements, _measurement(log, run)]


def _matches(line: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    return any(pattern.search(line) for pattern in patterns)


def _read_line(log: LogText, index: int, run: _Run) -> None:
    line = log.lines[index]
    if HEADING.match(line):
        _open_table(log, index, run)
    elif footer := _FOOTER.match(line):
        _close_table(log, index, run, int(footer[1]))
    elif run.layout is not None and not run.closed:
        if _matches(line, (_SECTION, _START)):
            raise log.error(index, "the end of the table ('# Out of bounds values')")
        if ROW.match(line):
            run.sizes.append(read_row(log, index, run.layout))
    elif (exit_code := _EXIT.match(line)) and run.closed and int(exit_code[1]):
        run.warnings.append(f"{log.where(index)}: the run ended with exit code {exit_code[1]}")
    elif not run.closed:
        _read_context(index, line, run)


def _open_table(log: LogText, index: int, run: _Run) -> None:
    if run.layout is not None:
        raise log.error(index, "lines that tell one run from the next before a second table")
    run.layout = read_heading(log, index)
    run.heading_line = index
    if run.layout.cpu_time:
        run.warnings.append(f"{log.where(index)}: the times are CPU times")


def _close_table(log: LogText, index: int, run: _Run, wrong: int) -> None:
    if run.layout is None or not run.sizes:
        raise log.error(index, "a row of results before the end of the table")
    run.closed = True
    rows = [f"{size.bytes} bytes: {size.wrong} wrong elements" for size in run.sizes if size.wrong]
    run.warnings += [f"{log.where(run.heading_line)}: {row}" for row in rows]
    if wrong and not rows:
        run.warnings.append(f"{log.where(index)}: {wrong} values out of bounds")


def _read_context(index: int, line: str, run: _Run) -> None:
    """Takes what a line before the table says of the run."""
    run.announced |= _matches(line, _ANNOUNCES)
    if section := _SECTION.match(line):
        run.section = section[1]
    if shape := _SHAPE.search(line):
        run.shape = (int(shape[1]), int(shape[2]))
    if program := _PROGRAM.search(line):
        run.program = program[1]
    if rank := _RANK.match(line):
        run.hosts.append(rank[2])
    if settings := dict(_SETTING.findall(line)):
        run.variables |= settings
        run.settings_line = index


def _measurement(log: LogText, run: _Run) -> Measurement:
    settings_at = log.where(run.settings_line)
    settings = run_settings(run.variables, settings_at)
    hosts = tuple(dict.fromkeys(run.hosts))
    n_nodes, n_ranks = _shape(log, run, hosts)
    heading = log.where(run.heading_line)
    return Measurement(
        source=f"{heading} ({run.section})" if run.section else heading,
        collective=run.program or _collective_of_rows(log, run),
        mode=settings.mode,
        host_names=hosts,
        nic_names=settings.nic_names,
        n_nodes=n_nodes,
        n_ranks=n_ranks,
        failed=settings.failed,
        sizes=tuple(run.sizes),
        section=run.section,
        warnings=(*run.warnings, *failure_warnings(settings, n_nodes, settings_at)),
    )


def _shape(log: LogText, run: _Run, hosts: tuple[str, ...]) -> tuple[int | None, int | None]:
    """(servers, ranks), from the list of ranks and from what the launcher printed; they must agree."""
    listed = (len(hosts), len(run.hosts)) if hosts else None
    if listed and run.shape and listed != run.shape:
        raise InputError(
            f"{log.where(run.heading_line)}: expected the {run.shape[1]} ranks on {run.shape[0]} nodes that "
            f"the log announces, found {listed[1]} ranks on {listed[0]} nodes listed"
        )
    return listed or run.shape or (None, None)


def _collective_of_rows(log: LogText, run: _Run) -> str:
    """The collective of a text that does not print the program's name (nccl-tests before 2.17).

    A reduction without a root is an AllReduce, whose bus bandwidth 2(n-1)/n is at least the algorithm's,
    or a ReduceScatter, (n-1)/n, for which it is less.
    """
    last = max(run.sizes, key=lambda size: size.bytes)
    if last.redop == "none" or last.root != -1 or not last.algbw:
        raise log.error(run.heading_line, "the program's name (such as all_reduce_perf) before the table")
    return "all_reduce" if last.busbw >= last.algbw else "reduce_scatter"
