"""What was found, in words: a line for each strategy, and the cells of a table of findings."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from r2cc_simai.baseline.numbers import Number
from r2cc_simai.baseline.verdict import Finding, Kind, Verdict, family
from r2cc_simai.results import ERROR
from r2cc_simai.units import format_size

NOTHING = "-"
WIDTH = 32
"""Characters of a workload or of a drawn pattern that a line or a table shows."""
COLUMNS = (
    "scenario",
    "cluster",
    "workload",
    "failure",
    "strategy",
    "backend",
    "size",
    "metric",
    "from",
    "to",
    "change [%]",
    "allowed [%]",
    "overhead [%]",
    "overhead change [points]",
    "measured",
    "source",
)
TEXT_COLUMNS = 8
WORDS = {Kind.MOVED: "moved", Kind.MISSING: "missing", Kind.ERROR: "failed", Kind.NEW: "new"}


@dataclass(frozen=True)
class Moved:
    """The numbers of one strategy that moved, largest first, and how many of it were compared."""

    strategy: str
    findings: tuple[Finding, ...]
    compared: int

    def sentence(self) -> str:
        """`balance: 4 of 9 numbers moved, +1.90 to +2.10%; the largest: figure7, uniformx4, ...`."""
        head = f"{self.strategy}: {len(self.findings)} of {_count(self.compared, 'number')} moved, {self._range()}"
        return f"{head}; the largest: {place(self.findings[0])}: {movement(self.findings[0])}"

    def _range(self) -> str:
        changes = [change for f in self.findings if (change := f.change_pct) and not math.isinf(change)]
        if changes:
            return f"{_between(changes)}%"
        points = [change for f in self.findings if (change := f.overhead_points)]
        return f"overhead by {_between(points)} points" if points else "from or to nothing"


def moved_groups(verdict: Verdict) -> list[Moved]:
    """The moves by strategy; the strategy with the largest move first."""
    names = dict.fromkeys(family(f.key.strategy) for f in verdict.of_kind(Kind.MOVED))
    return [
        Moved(
            name,
            tuple(f for f in verdict.of_kind(Kind.MOVED) if family(f.key.strategy) == name),
            verdict.compared[name],
        )
        for name in names
    ]


def headline(verdict: Verdict) -> str:
    """`983 numbers compared: 41 moved, 2 missing, 5 new`, or that nothing moved."""
    compared = f"{_count(sum(verdict.compared.values()), 'number')} compared"
    found = [f"{len(verdict.of_kind(kind)):,} {word}" for kind, word in WORDS.items() if verdict.of_kind(kind)]
    return f"{compared}: {', '.join(found)}" if found else f"{compared}: none moved"


def failure_line(verdict: Verdict) -> str:
    """What the check fails for, in one line that names each strategy that moved."""
    parts = [group.sentence() for group in moved_groups(verdict)[:1]]
    others = [group.strategy for group in moved_groups(verdict)[1:]]
    if others:
        parts.append(f"moved as well: {', '.join(others)}")
    for kind in (Kind.ERROR, Kind.MISSING, Kind.NEW):
        found = [finding for finding in verdict.of_kind(kind) if finding.fails]
        if found:
            parts.append(f"{len(found)} {WORDS[kind]}, the first: {place(found[0])}{_reason(found[0])}")
    return "; ".join(parts)


def place(finding: Finding, width: int | None = WIDTH) -> str:
    """Where a number stands: `figure7, uniformx4, all_reduce, server0.nic0=0.5@0, r2cc-allreduce:k=128, flow, ...`.

    A workload or pattern longer than `width` characters is cut (None: never).
    """
    key = finding.key
    workload, pattern = _cut(key.workload, width), _cut(key.pattern, width)
    parts = [key.scenario, key.cluster, workload, pattern, key.strategy, key.backend]
    if key.bytes:
        parts.append(format_size(key.bytes))
    if key.metric != ERROR:
        parts.append(key.metric)
    return ", ".join(part for part in parts if part)


def movement(finding: Finding) -> str:
    """`0.35 to 0.357 s (+2.00%), overhead +58.00 to +61.16%, measured 0.351 s (closed form)`."""
    was, now = finding.before, finding.now
    if was is None or now is None:
        return _state(finding)
    if finding.kind is Kind.ERROR:
        return f"{_failures(was)} before, {_failures(now)} now: {now.error}"
    before, after = _pair(was.value, now.value)
    parts = [f"{before} to {after} {_unit(was)}".rstrip() + f" ({_signed(finding.change_pct)}%)"]
    if was.overhead_pct is not None or now.overhead_pct is not None:
        parts.append(f"overhead {_signed(was.overhead_pct)} to {_signed(now.overhead_pct)}%")
    if was.seeds != now.seeds:
        parts.append(f"seeds {was.seeds or 'none'} before, {now.seeds or 'none'} now")
    if now.measured is not None:
        parts.append("measured or published {} ({})".format(*_reference(now)))
    return ", ".join(parts)


def cells(finding: Finding) -> list[str]:
    """The cells of `COLUMNS`; long workloads and patterns are cut."""
    key, was, now = finding.key, finding.before, finding.now
    size = format_size(key.bytes) if key.bytes else NOTHING
    workload, pattern = _cut(key.workload, WIDTH), _cut(key.pattern, WIDTH)
    place = [key.scenario, key.cluster, workload, pattern, key.strategy, key.backend, size, key.metric]
    before, after = _pair(was.value if was else None, now.value if now else None)
    overheads = f"{_signed(was.overhead_pct if was else None)} to {_signed(now.overhead_pct if now else None)}"
    unit = f" {key.unit}" if _unit_of(key.unit) else ""
    return [
        *place,
        before + (unit if was else ""),
        after + (unit if now else ""),
        _signed(finding.change_pct),
        f"{finding.allowed.value_pct:g}",
        overheads if finding.overhead_points is not None else NOTHING,
        _signed(finding.overhead_points),
        *_reference(now),
    ]


def listed(findings: Iterable[Finding], width: int | None = WIDTH) -> list[str]:
    """One line for each finding: where (as in `place`), and what."""
    return [f"{place(finding, width)}: {movement(finding)}" for finding in findings]


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _state(finding: Finding) -> str:
    number = finding.now or finding.before
    assert number is not None  # one of them is there
    if finding.key.metric == ERROR:
        return f"fails: {number.error}" if finding.now else "failed before, and is not in the run any more"
    gone = "not in the run" if finding.kind is Kind.MISSING else "not in the baseline"
    return f"{_digits(number.value, 6)} {_unit(number)}".rstrip() + f", {gone}"


def _reason(finding: Finding) -> str:
    return f" ({finding.now.error})" if finding.now and finding.now.error else ""


def _failures(number: Number) -> str:
    return f"{_count(int(number.value), 'seed')} failed" if number.seeds else "failed"


def _pair(was: float | None, now: float | None) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to tell them apart."""
    if was is None or now is None:
        return _digits(was, 6), _digits(now, 6)
    digits = next((d for d in range(6, 13) if was == now or _digits(was, d) != _digits(now, d)), 12)
    return _digits(was, digits), _digits(now, digits)


def _digits(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}g}"


def _signed(value: float | None) -> str:
    return NOTHING if value is None else f"{value:+.4g}" if 0 < abs(value) < 0.01 else f"{value:+.2f}"


def _reference(number: Number | None) -> tuple[str, str]:
    """The measured or published value, and where it comes from."""
    if number is None or number.measured is None:
        return NOTHING, NOTHING
    return f"{_digits(number.measured, 6)} {_unit(number)}".rstrip(), number.source or NOTHING


def _unit(number: Number) -> str:
    return _unit_of(number.key.unit)


def _unit_of(unit: str) -> str:
    return "" if unit == "1" else unit


def _between(changes: Sequence[float]) -> str:
    least, most = _signed(min(changes)), _signed(max(changes))
    return least if least == most else f"{least} to {most}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
