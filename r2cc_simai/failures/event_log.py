"""Event logs: what failed when, as an operator's monitoring exports it (CSV), read as incidents."""

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.component import component_of, nics_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.log_times import Clock, read_time

COLUMNS = ("time", "component", "state")
CAUSE = "cause"
"""A fourth column that is read where it is there; all others are left alone."""
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?)(%?)")
_NUMBERED = re.compile(r"(server|rail|leaf)([0-9]+)(\..+)?")
_LONGEST = 200


@dataclass(frozen=True)
class _Line:
    """One event: seconds of the log's clock, and the rate fraction that the component has from then on."""

    time_s: float
    component: str
    fraction: float
    cause: str


@dataclass
class _Outage:
    """What is known of a component that is not at its full rate."""

    since_s: float
    state: float
    cause: str


@dataclass
class _Replay:
    """Reads the events of a file in order and gives the incidents that they end."""

    cluster: Cluster
    last_s: float = -math.inf
    clock: Clock | None = None
    outages: dict[str, _Outage] = field(default_factory=dict)
    changed: dict[str, tuple[float, int]] = field(default_factory=dict)

    def line(self, number: int, cells: dict[str, str]) -> _Line:
        """The event of one line, checked against those before it but not yet applied."""
        _check_lengths(cells)
        time_s, clock = read_time(cells["time"])
        if self.clock not in (None, clock):
            raise InputError(f"{cells['time']!r} is {clock}, the lines before are {self.clock}; write all alike")
        if time_s < self.last_s:
            raise InputError(f"{cells['time']!r} is before the line above; sort the log by time")
        component, fraction = cells["component"], _fraction(cells["state"])
        if component not in self.changed:
            _check_component(component, self.cluster)
        self._check_change(component, time_s, fraction)
        self.last_s, self.clock = time_s, clock
        self.changed[component] = time_s, number
        return _Line(time_s, component, fraction, " ".join(cells.get(CAUSE, "").split()))

    def apply(self, line: _Line) -> Incident | None:
        """Put an event into effect; the incident that it ends, in seconds of the log's clock."""
        before = self.outages.pop(line.component, None)
        if line.fraction < 1:
            cause = line.cause or (before.cause if before else "")
            self.outages[line.component] = _Outage(line.time_s, line.fraction, cause)
        if before is None:
            return None
        return Incident(line.component, before.since_s, line.time_s, before.state, before.cause)

    def _check_change(self, component: str, time_s: float, fraction: float) -> None:
        outage = self.outages.get(component)
        since, number = self.changed.get(component, (-math.inf, 0))
        where = f" (line {number})" if number else ", as nothing has changed it before"
        if fraction == (outage.state if outage else 1.0):
            raise InputError(
                f"{component} is {_word(fraction)} already{where}; "
                "states of one component follow each other: down, then up or a fraction"
            )
        if time_s == since:
            raise InputError(f"{component} has two states at one time{where}; keep the one that lasts")


def read_event_log(path: Path, cluster: Cluster, at: str = "") -> tuple[Incident, ...]:
    """The incidents of an event log, in order of begin. Time 0 is `at`, written as the log's times, or the first event.

    The CSV has the columns `time`, `component` and `state` (down, up, a fraction of the rate such as 0.5 or 50%) and
    may have `cause`; other columns are ignored. A component that is down at time 0 has been so from the start, one that
    is down at the end stays so.

    Raises:
        InputError: `file:line: ...` for the first line that is wrong.
    """
    replay = _Replay(cluster)
    ended: list[Incident] = []
    first_s: float | None = None
    for number, cells in _cells(path):
        try:
            line = replay.line(number, cells)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None
        first_s = line.time_s if first_s is None else first_s
        incident = replay.apply(line)
        if incident is not None:
            ended.append(incident)
    if first_s is None:
        raise InputError(f"{path}:2: no events; a line for each is wanted: time,component,state")
    lasting = [Incident(name, one.since_s, math.inf, one.state, one.cause) for name, one in replay.outages.items()]
    zero_s = _time_zero(at, replay.clock) if at else first_s
    return tuple(sorted(_shifted(ended + lasting, zero_s), key=lambda one: one.begin_s))


def _shifted(incidents: list[Incident], zero_s: float) -> Iterator[Incident]:
    """The incidents on the job's clock, without what was over when it began."""
    for one in incidents:
        begin_s, end_s = max(0.0, one.begin_s - zero_s), one.end_s - zero_s
        if end_s > begin_s:
            yield Incident(one.component, begin_s, end_s, one.state, one.cause)


def _time_zero(at: str, clock: Clock | None) -> float:
    zero_s, written = read_time(at)
    if written != clock:
        raise InputError(f"at={at}: {written}, the times of the log are {clock}; write all alike")
    return zero_s


def _cells(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells by column of each event."""
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    columns: list[str] = []
    try:
        for row in reader:
            row = [cell.strip() for cell in row]
            if not any(row):
                continue
            if not columns:
                columns = _header(path, reader.line_num, row)
            elif len(row) != len(columns):
                raise InputError(f"{path}:{reader.line_num}: {len(row)} cells; the header has {len(columns)}")
            else:
                yield reader.line_num, dict(zip(columns, row, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not CSV: {error}") from None
    if not columns:
        raise InputError(f"{path}:1: empty; a header is wanted: {','.join(COLUMNS)}")


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    try:
        return data.decode("utf-8-sig")  # spreadsheets write the mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8; save the log as UTF-8 text") from None


def _header(path: Path, line: int, row: list[str]) -> list[str]:
    columns = [cell.lower() for cell in row]
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise InputError(
            f"{path}:{line}: the header lacks {missing[0]!r}; its columns are {','.join(COLUMNS)}, with commas between"
        )
    twice = [name for name in (*COLUMNS, CAUSE) if columns.count(name) > 1]
    if twice:
        raise InputError(f"{path}:{line}: the header has {twice[0]!r} twice; keep one")
    return columns


def _check_lengths(cells: dict[str, str]) -> None:
    for column in (*COLUMNS, CAUSE):
        if len(cells.get(column, "")) > _LONGEST:
            raise InputError(f"{column}: {len(cells[column])} characters; at most {_LONGEST} are read")


def _check_component(name: str, cluster: Cluster) -> None:
    if "[" in name:
        raise InputError(f"{name!r}: a log has one component a line, no ranges")
    numbered = _NUMBERED.fullmatch(name)
    if numbered and numbered[2] != str(int(numbered[2])):
        raise InputError(f"{name!r}: write {numbered[1]}{int(numbered[2])}{numbered[3] or ''}, without zeros before it")
    nics_of(cluster, component_of(name)[0])


def _fraction(text: str) -> float:
    word = text.lower()
    if word in ("down", "up"):
        return 1.0 if word == "up" else 0.0
    match = _NUMBER.fullmatch(word)
    fraction = float(match[1]) / (100 if match[2] else 1) if match else math.nan
    if not 0 <= fraction <= 1:
        raise InputError(f"{text!r} is no state; write down, up, or the rate that is left: 0.5 or 50%")
    return fraction


def _word(fraction: float) -> str:
    return {0.0: "down", 1.0: "up"}.get(fraction, f"at {100 * fraction:.4g}%")
