"""The table of an nccl-tests run that may have been cut short, or hit by a failure in its middle.

What can be compared is written as logs of its own, each in the form that `compare` reads: the rows measured before the
failure, and those after it. A row that was being measured meanwhile belongs to neither. Lines keep their numbers.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from r2cc_simai.errors import InputError
from r2cc_simai.measured.log_text import LogText
from r2cc_simai.measured.model import SizeResult
from r2cc_simai.measured.nccl_table import HEADING, ROW, read_heading, read_row
from r2cc_simai.measured.untangle import untangle
from r2cc_simai.real.injection import ENDED, STARTED

_FOOTER = re.compile(r"^#\s*Out of bounds values\s*:\s*\d+")
_SETTINGS = re.compile(r"^\[nccl-tests\] nodes=")


class Phase(Enum):
    """When a row was measured, seen from the failure."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(frozen=True)
class TableRow:
    """A row of results: the index of its line, what it says, and when it was measured."""

    line: int
    size: SizeResult
    phase: Phase


@dataclass(frozen=True)
class Table:
    """What a run printed of its table; `complete` is False where the end of it never came."""

    log: LogText
    rows: tuple[TableRow, ...]
    complete: bool
    torn: int | None
    """Index of a last row that was cut in its middle."""

    @property
    def hit(self) -> bool:
        """Whether a failure was made before the last row ended."""
        return any(row.phase is not Phase.BEFORE for row in self.rows)


def read_table(path: Path, text: str) -> Table:
    """The rows that a log holds, however it ended.

    Raises:
        InputError: a heading that is none, or a row in the middle of the table that does not fit it.
    """
    log = LogText(str(path), tuple(untangle(text)))
    heading = log.find(HEADING)
    if heading is None:
        return Table(log, (), False, None)
    layout = read_heading(log, heading[0])
    rows: list[TableRow] = []
    phase = _phase_at(log.lines[: heading[0]])
    for index in range(heading[0] + 1, len(log.lines)):
        line = log.lines[index]
        phase = _next_phase(phase, line)
        if _FOOTER.match(line):
            return Table(log, tuple(rows), True, None)
        if not ROW.match(line):
            continue
        try:
            rows.append(TableRow(index, read_row(log, index, layout), phase.seen))
        except InputError:
            if any(ROW.match(later) or _FOOTER.match(later) for later in log.lines[index + 1 :]):
                raise
            return Table(log, tuple(rows), False, index)
        phase = phase.after_row()
    return Table(log, tuple(rows), False, None)


def write_part(table: Table, phases: Iterable[Phase], path: Path, settings: Mapping[str, str]) -> None:
    """Writes the rows of some phases as a log of its own, its settings replaced where `settings` names them.

    Where the run ended before it counted wrong values, the sum over the rows stands for that count.
    """
    wanted = set(phases)
    left_out = {row.line for row in table.rows if row.phase not in wanted} | {table.torn}
    lines = ["" if index in left_out else line for index, line in enumerate(table.log.lines)]
    lines = [_with_settings(line, settings) if _SETTINGS.match(line) else line for line in lines]
    if not table.complete:
        wrong = sum(row.size.wrong for row in table.rows if row.phase in wanted)
        lines = [line for line in lines if not line.startswith("[nccl-tests] rc=")]
        lines.append(f"# Out of bounds values : {wrong} in the rows above; the run ended before it counted")
    path.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def _with_settings(line: str, settings: Mapping[str, str]) -> str:
    for name, value in settings.items():
        line = re.sub(rf"\b{name}=\S*", f"{name}={value}", line)
    return line


@dataclass(frozen=True)
class _State:
    """What the marks so far say: whether the failure hook has started and ended, and whether a row has ended since."""

    started: bool = False
    ended: bool = False
    settled: bool = False

    @property
    def seen(self) -> Phase:
        if not self.started:
            return Phase.BEFORE
        return Phase.AFTER if self.settled else Phase.DURING

    def after_row(self) -> "_State":
        """A row that began after the hook had ended is the first that the failure accompanies from its start."""
        return _State(self.started, self.ended, self.ended)


def _next_phase(state: _State, line: str) -> _State:
    if line.startswith(f"[r2cc-simai] {STARTED}"):
        return _State(True, False, False)
    if line.startswith(f"[r2cc-simai] {ENDED}"):
        return _State(True, True, False)
    return state


def _phase_at(lines: Sequence[str]) -> _State:
    """The state where the table begins: a failure that was made before then is there from the first row on."""
    state = _State()
    for line in lines:
        state = _next_phase(state, line)
    return state.after_row()
