"""The section of a report that says what differs from another run or from a baseline."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from r2cc_simai.baseline.numbers import Key, Number
from r2cc_simai.results import ERROR
from r2cc_simai.results.report import labels, units
from r2cc_simai.results.report.document import Block, Cell, Section, Table, Text, Tone, columns
from r2cc_simai.results.table import BANDWIDTHS

SLUG = "against"
EQUAL = 1e-9
"""Relative difference up to which values are the same: files hold 12 digits."""
MOST = 200
"""Changes in the table at most, the largest."""


@dataclass(frozen=True)
class Change:
    """A number that both have, with another value."""

    before: Number
    now: Number

    @property
    def pct(self) -> float:
        """100 (now/before - 1); infinite where a zero changed."""
        was, is_now = self.before.value, self.now.value
        return 100.0 * (is_now / was - 1.0) if was else math.copysign(math.inf, is_now)

    @property
    def worse(self) -> bool:
        """Whether a time got longer, or a bandwidth smaller."""
        return (self.pct > 0) != (self.now.key.metric in BANDWIDTHS)

    @property
    def tone(self) -> Tone:
        """Whether the change is good or bad news."""
        return "bad" if self.worse else "ok"


def build(now: Sequence[Number], before: Sequence[Number], name: str) -> Section:
    """Return the section on the numbers of a run (`now`) against those of `name`: largest change first."""
    was, is_now = {n.key: n for n in before}, {n.key: n for n in now}
    common = [Change(was[key], number) for key, number in is_now.items() if key in was]
    changes = [change for change in common if not _equal(change)]
    changes.sort(
        key=lambda change: (-round(abs(change.pct), 6) if math.isfinite(change.pct) else -math.inf, change.now.key)
    )
    gone = [key for key in was if key not in is_now]
    new = [key for key in is_now if key not in was]
    said = _said(name, len(common), len(changes), len(gone), len(new))
    blocks: list[Block] = [Text(said)]
    if changes:
        blocks += [_strategy_table(common, changes), _change_table(changes)]
    if gone or new:
        blocks.append(_one_sided_table(gone, new))
    return Section(SLUG, f"Against {name}", tuple(blocks), (said,))


def _equal(change: Change) -> bool:
    return math.isclose(change.before.value, change.now.value, rel_tol=EQUAL)


def _rank(change: Change) -> tuple[float, Key]:
    """Largest change first; equal ones, up to rounding, in the order of their keys."""
    return -(round(abs(change.pct), 6) if math.isfinite(change.pct) else math.inf), change.now.key


def _said(name: str, common: int, changed: int, gone: int, new: int) -> str:
    if not common:
        return f"Against {name}: no number of this run is in it, so there is nothing to compare."
    numbers = _count(common, "number")
    if not (changed or gone or new):
        return f"Against {name}: nothing differs, {numbers} compared."
    verb = "differ" if changed > 1 else "differs"
    parts = [f"{changed or 'none'} of {numbers} {verb}"]
    parts += [f"{_count(new, 'number')} only in this run"] if new else []
    parts += [f"{_count(gone, 'number')} only in {name}"] if gone else []
    return f"Against {name}: {', '.join(parts)}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _strategy_table(common: Sequence[Change], changes: Sequence[Change]) -> Table:
    compared = Counter(change.now.key.strategy for change in common)
    lines = []
    for strategy in sorted({change.now.key.strategy for change in changes}, key=labels.strategy_order):
        own = [change for change in changes if change.now.key.strategy == strategy]  # the largest first
        worse = sum(change.worse for change in own)
        numbers = (compared[strategy], len(own), worse, len(own) - worse)
        counts = (Cell(f"{number}") for number in numbers)
        lines.append((Cell(labels.strategy_name(strategy)), *counts, Cell(_percent(own[0].pct))))
    titles = columns("<strategy", "compared", "differ", "worse", "better", "largest change")
    return Table("What differs by strategy", titles, tuple(lines))


def _change_table(changes: Sequence[Change]) -> Table:
    titles = columns(
        *("<scenario", "<cluster", "<failure", "<strategy", "<backend", "size", "<metric", "from", "to", "change"),
    )
    caption = "Numbers that differ, the largest change first"
    if len(changes) > MOST:
        caption += f": the first {MOST} of {len(changes)}"
    return Table(caption, titles, tuple(_change_line(change) for change in changes[:MOST]))


def _change_line(change: Change) -> tuple[Cell, ...]:
    key, before, now = change.now.key, change.before, change.now
    seeds = f"seeds {before.seeds}, now {now.seeds}" if before.seeds != now.seeds else ""
    return (
        Cell(key.scenario),
        Cell(key.cluster),
        Cell(labels.short_pattern(key.pattern) or units.DASH, seeds),
        Cell(labels.strategy_name(key.strategy)),
        Cell(key.backend),
        Cell(units.size(key.bytes) if key.bytes else units.DASH),
        Cell(labels.metric_name(key.metric)),
        _value(before),
        _value(now),
        Cell(_percent(change.pct), tone=change.tone),
    )


def _value(number: Number) -> Cell:
    if number.key.metric == ERROR:
        return Cell(_count(round(number.value), "case"))
    overhead = "" if number.overhead_pct is None else f"overhead {units.percent(number.overhead_pct)}"
    return Cell(units.value(number.value, number.key.unit), overhead)


def _percent(pct: float) -> str:
    if math.isinf(pct):
        return units.DASH
    if abs(pct) < 0.01:
        return f"{pct:+.8f}".rstrip("0").replace("-", "−") + "%"
    return units.error(pct)


def _one_sided_table(gone: Iterable[Key], new: Iterable[Key]) -> Table:
    lost, fresh = Counter(map(_group, gone)), Counter(map(_group, new))
    order = sorted({*lost, *fresh}, key=lambda group: (group[0], labels.strategy_order(group[1]), group[2]))
    lines = [
        (
            Cell(scenario),
            Cell(labels.strategy_name(strategy)),
            Cell(backend),
            Cell(f"{fresh[group]}"),
            Cell(f"{lost[group]}"),
        )
        for group in order
        for scenario, strategy, backend in [group]
    ]
    titles = columns("<scenario", "<strategy", "<backend", "only in this run", "only in the other")
    return Table("Numbers that only one of them has", titles, tuple(lines))


def _group(key: Key) -> tuple[str, str, str]:
    return key.scenario, key.strategy, key.backend
