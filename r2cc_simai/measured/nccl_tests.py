"""Reads the text that nccl-tests prints, one run or several after another in a file, whole or not.

What a run is comes from the lines around its table: the program's name, the list of ranks, and the
R2CC_*, NCCL_* settings and `nodes=N ranks=N` that a launcher printed before it. A text that was cut, or into which
several ranks wrote, is read as far as its rows are certain; what was skipped stands in the warnings of the first run.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from r2cc_simai.errors import InputError
from r2cc_simai.measured.log_text import LogText
from r2cc_simai.measured.model import Measurement
from r2cc_simai.measured.nccl_context import COUNTED, RANK, SECTION, SETTING, SHAPE, START, RunContext
from r2cc_simai.measured.nccl_lines import HEAD, RowReader
from r2cc_simai.measured.nccl_table import HEADING, WHOLE_HEADING, read_heading
from r2cc_simai.measured.settings import failure_warnings, run_settings
from r2cc_simai.measured.skipped import Skipped

SIGN = re.compile(r"^# nThread \d|^# Using devices|^# Collective test starting|^\[nccl-tests\]|" + HEADING.pattern)
"""A line by which such a text is known."""

_FOOTER = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)")
_EXIT = re.compile(r"^\[nccl-tests\] rc=(\d+)")
_NEXT_LAUNCH = (SECTION, SHAPE)
"""Lines that only a launcher prints, between runs."""
_OF_A_RUN = (SECTION, SHAPE, SETTING, START, RANK)


@dataclass
class _Table:
    """A table, and the run that it belongs to. Several ranks that share a stream share the table."""

    context: RunContext
    heading: int
    reader: RowReader
    headings: int = 1
    footers: int = 0
    ended: bool = False
    """Whether the launcher has said that the run is over."""
    warnings: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every rank that printed a heading printed the table's last line."""
        return self.footers >= self.headings

    @property
    def begun(self) -> bool:
        """Whether what follows may belong to another run: the table has rows, or its end."""
        return bool(self.reader.rows) or self.footers > 0 or self.ended


def read_nccl_tests(log: LogText) -> list[Measurement]:
    """Every run of the text that has rows, in order.

    Raises:
        InputError: no row of any run can be read.
    """
    scan = _Scan(log)
    for index in range(len(log.lines)):
        scan.line(index)
    return scan.measurements()


def _matches(line: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    return any(pattern.search(line) for pattern in patterns)


class _Scan:
    """Goes through the lines once; no line changes what earlier ones yielded."""

    def __init__(self, log: LogText) -> None:
        self._log = log
        self._skipped = Skipped(log.name)
        self._tables: list[_Table] = []
        self._next = RunContext()
        self._strays: list[str] = []
        """Rows that stood before the heading of their table."""
        self._same_launch = False
        """Whether a table that follows may belong to the launch of the one before."""

    @property
    def _table(self) -> _Table | None:
        return self._tables[-1] if self._tables else None

    def line(self, index: int) -> None:
        """Reads one line."""
        line = self._log.lines[index]
        if HEADING.match(line) or WHOLE_HEADING.search(line):
            self._heading(index)
        elif footer := _FOOTER.match(line):
            self._footer(index, int(footer[1]))
        elif exit_code := _EXIT.match(line):
            self._exit(index, int(exit_code[1]))
        elif _matches(line, _OF_A_RUN):
            self._context(line)
        if self._table is not None and not self._table.ended:
            self._table.reader.take(index)
        elif HEAD.match(line.lstrip()):
            complaint = self._log.error(index, "the heading of the table ('# size count type ..') before its rows")
            self._skipped.line(self._log.number(index), "no heading of a table before it", complaint)
            self._strays.append(line)
        if self._table is None or self._table.begun:
            self._next.take(index, line)
        else:
            self._table.context.take(index, line)

    def _heading(self, index: int) -> None:
        table = self._table
        try:
            layout = read_heading(self._log, index)
        except InputError as error:
            self._skipped.line(self._log.number(index), "heading of a table cut short", error)
            return
        if table is not None and table.reader.layout == layout and self._of_another_rank(table):
            table.headings += 1
            table.reader.several = True
            return
        context = self._next
        if table is not None and not table.complete and self._same_launch:
            context = context.of_launch(table.context)
        reader = RowReader(self._log, layout, self._skipped)
        if table is not None and self._same_launch:
            reader = table.reader.following(layout)
        reader.several |= context.repeated
        reader.after(self._strays)
        self._strays = []
        self._tables.append(_Table(context, index, reader))
        self._next, self._same_launch = RunContext(), True
        if layout.cpu_time:
            self._tables[-1].warnings.append(f"{self._log.where(index)}: the times are CPU times")

    def _of_another_rank(self, table: _Table) -> bool:
        """Whether another heading only repeats that of the table, which another rank of the run prints."""
        return not table.begun or (self._same_launch and not table.complete and not self._next.announced)

    def _footer(self, index: int, wrong: int) -> None:
        table = self._table
        if table is None:
            return
        table.footers += 1
        if table.complete:
            table.reader.settle()
        if wrong and not any(row.wrong for row in table.reader.rows):
            table.warnings.append(f"{self._log.where(index)}: {wrong} values out of bounds")

    def _exit(self, index: int, code: int) -> None:
        table = self._table
        if table is None or table.ended or self._next.announced:
            return
        table.ended = True
        table.reader.settle()
        if code:
            table.warnings.append(f"{self._log.where(index)}: the run ended with exit code {code}")

    def _context(self, line: str) -> None:
        """A line that says what runs: the first of them behind a table begins another run."""
        table = self._table
        if table is None:
            return
        table.ended |= _matches(line, _NEXT_LAUNCH)
        if not table.begun:
            return
        self._same_launch = self._same_launch and not table.ended
        if table.ended or table.complete:
            table.reader.settle()
        elif START.match(line):
            table.reader.several = True

    def measurements(self) -> list[Measurement]:
        """The runs that have rows; the first carries the notes on what was skipped."""
        runs = []
        for table in self._tables:
            table.reader.settle()
            try:
                runs.append(_measurement(self._log, table))
            except InputError as error:
                self._skipped.remark(f"run skipped: {error}", error)
        if not runs:
            raise self._skipped.first or self._log.truncated("a whole row of the table of nccl-tests")
        if self._next.announced:
            last = self._log.truncated("").args[0].partition(": expected")[0]
            self._skipped.remark(f"{last}: the log ends before the table of its last run")
        return [replace(runs[0], warnings=(*runs[0].warnings, *self._skipped.notes)), *runs[1:]]


def _measurement(log: LogText, table: _Table) -> Measurement:
    context, sizes = table.context, tuple(table.reader.rows)
    if not sizes:
        raise log.error(table.heading, "a whole row of results in the table that begins here")
    settings_at = log.where(context.settings_line)
    settings = run_settings(context.variables, settings_at)
    heading = log.where(table.heading)
    n_nodes, n_ranks = context.shape_at(heading)
    return Measurement(
        source=f"{heading} ({context.section})" if context.section else heading,
        collective=context.program or _collective_of_rows(log, table),
        mode=settings.mode,
        host_names=context.hosts,
        nic_names=settings.nic_names,
        n_nodes=n_nodes,
        n_ranks=n_ranks,
        failed=settings.failed,
        failures=settings.failures,
        cluster=settings.cluster,
        sizes=sizes,
        section=context.section,
        warnings=(
            *(f"{heading}: {size.bytes} bytes: {size.wrong} wrong elements" for size in sizes if size.wrong),
            *table.warnings,
            *_extent(heading, table),
            *context.remarks(heading),
            *failure_warnings(settings, n_nodes, settings_at),
        ),
    )


def _extent(heading: str, table: _Table) -> list[str]:
    """What to say of a table that is not that of one rank from its heading to its end."""
    found = []
    rows = table.reader.rows
    if table.headings > 1:
        found.append(f"{heading}: {table.headings} headings: the rows of several ranks stand in one table")
    if not table.complete:
        read = f"{len(rows)} row{'s' if len(rows) > 1 else ''} read, the last of {rows[-1].bytes} bytes"
        found.append(f"{heading}: the table has no end ('# Out of bounds values'): {read}")
    return found


def _collective_of_rows(log: LogText, table: _Table) -> str:
    """The collective of a text that does not print the program's name (nccl-tests before 2.17).

    A reduction without a root is an AllReduce, whose bus bandwidth 2(n-1)/n is at least the algorithm's,
    or a ReduceScatter, (n-1)/n, for which it is less.
    """
    known = [size for size in table.reader.rows if size.redop != "none" and size.root == -1 and size.algbw]
    if not known:
        raise log.error(table.heading, f"the program's name ({COUNTED}) before the table")
    last = max(known, key=lambda size: size.bytes)
    return "all_reduce" if last.busbw >= last.algbw else "reduce_scatter"
