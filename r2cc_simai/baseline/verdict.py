"""What has moved between a baseline and a run, and whether that is allowed."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from r2cc_simai.baseline.numbers import Key, Number, kind
from r2cc_simai.baseline.rules import Allowed, Rules
from r2cc_simai.errors import InputError
from r2cc_simai.results import ERROR
from r2cc_simai.results.table import BANDWIDTHS

LEAST_COMMON = 0.1
"""A run that has less than this share of the baseline's numbers is one of something else."""


Case = tuple[str, str, str, str, str, str, int]
"""`Key.case`."""


class Kind(StrEnum):
    """What can be found of a number."""

    MOVED = "moved"
    MISSING = "missing"
    NEW = "new"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """A number that is not as in the baseline: before and now, what was allowed, and whether the check fails for it."""

    kind: Kind
    before: Number | None
    now: Number | None
    allowed: Allowed
    fails: bool

    @property
    def key(self) -> Key:
        """What names the number."""
        number = self.now or self.before
        assert number is not None  # one of them is there
        return number.key

    @property
    def change_pct(self) -> float | None:
        """The change of the value in percent of the baseline's; of a metric of which more is better, inverted.

        A positive change is a loss, as everywhere in the results table. Infinite where the divisor is 0.
        """
        if self.before is None or self.now is None:
            return None
        was, now = self.before.value, self.now.value
        return _change_pct(now, was) if self.key.metric in BANDWIDTHS else _change_pct(was, now)

    @property
    def overhead_points(self) -> float | None:
        """The change of the overhead in points; None where one of them does not exist."""
        if self.before is None or self.now is None:
            return None
        was, now = self.before.overhead_pct, self.now.overhead_pct
        return None if was is None or now is None else now - was

    @property
    def size(self) -> float:
        """How far the number moved, in percent, by value or by overhead, whichever is more; infinite if it is gone."""
        value = self.change_pct
        if value is None:
            return math.inf
        points, was = self.overhead_points, self.before.overhead_pct if self.before else None
        scaled = 0.0 if points is None or was is None else points / max(1.0, 1.0 + was / 100.0)
        return max(abs(value), abs(scaled))


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check: how many numbers of each strategy were compared, and what was found, largest first."""

    compared: Counter[str]
    findings: tuple[Finding, ...]
    cases: frozenset[tuple[str, str, str]]
    """(scenario, strategy, backend) of every number of the baseline and of the run."""

    @cached_property
    def ok(self) -> bool:
        """Whether nothing was found for which the check fails."""
        return not any(finding.fails for finding in self.findings)

    def of_kind(self, kind: Kind) -> tuple[Finding, ...]:
        """The findings of one kind, largest first."""
        return tuple(finding for finding in self.findings if finding.kind is kind)


def family(strategy: str) -> str:
    """A strategy's name without its options, by which findings are grouped."""
    return strategy.partition(":")[0]


def judge(baseline: Iterable[Number], run: Iterable[Number], rules: Rules) -> Verdict:
    """Compare a run with a baseline.

    Of numbers that only the run has, those count as new whose metric the baseline has of another case, so that a
    baseline of some metrics is not bothered by the others.

    Raises:
        InputError: the run has next to none of the baseline's numbers.
    """
    before = {number.key: number for number in baseline}
    kinds = {kind(key.metric) for key in before} | {ERROR}
    now = {number.key: number for number in run if kind(number.key.metric) in kinds}
    failed = {key.case for key in now if key.metric == ERROR}
    found_again = sum(key in now or key.case in failed for key in before)
    if found_again < LEAST_COMMON * len(before):
        raise InputError(
            f"only {found_again} of the baseline's {len(before)} numbers are in the run; "
            "a finished run of the baseline's own scenario is wanted"
        )
    findings = [*_changed(before, now, rules), *_gone(before, now, failed, rules), *_added(before, now, rules)]
    findings.sort(key=_order)
    compared = Counter(family(key.strategy) for key in before if key in now and key.metric != ERROR)
    cases = frozenset((key.scenario, key.strategy, key.backend) for key in (*before, *now))
    return Verdict(compared, tuple(findings), cases)


def _order(finding: Finding) -> tuple[bool, float, bool, Key]:
    """Those that the check fails for first, then the largest, then those with a measured value beside them."""
    unmeasured = finding.now is None or finding.now.measured is None
    return not finding.fails, -float(f"{finding.size:.6g}"), unmeasured, finding.key  # rounding errors order nothing


def _changed(before: dict[Key, Number], now: dict[Key, Number], rules: Rules) -> Iterator[Finding]:
    for key in before.keys() & now.keys():
        was, new, allowed = before[key], now[key], rules.allowed(before[key])
        if key.metric == ERROR:
            if new.value != was.value:
                yield Finding(Kind.ERROR, was, new, allowed, rules.rows.error == "fail")
        elif _value_moved(was, new, allowed, rules.default.zero_below) or _overhead_moved(was, new, allowed):
            yield Finding(Kind.MOVED, was, new, allowed, True)


def _gone(before: dict[Key, Number], now: dict[Key, Number], failed: set[Case], rules: Rules) -> Iterator[Finding]:
    """Numbers that the run does not have; where their case failed, the error says so instead."""
    for key in before.keys() - now.keys():
        if key.case not in failed:
            yield Finding(Kind.MISSING, before[key], None, rules.allowed(before[key]), rules.rows.missing == "fail")


def _added(before: dict[Key, Number], now: dict[Key, Number], rules: Rules) -> Iterator[Finding]:
    for key in now.keys() - before.keys():
        error = key.metric == ERROR
        fails = (rules.rows.error if error else rules.rows.new) == "fail"
        yield Finding(Kind.ERROR if error else Kind.NEW, None, now[key], rules.allowed(now[key]), fails)


def _value_moved(was: Number, now: Number, allowed: Allowed, zero_below: float) -> bool:
    if max(abs(was.value), abs(now.value)) < zero_below:
        return False
    return abs(now.value - was.value) > allowed.value_pct / 100.0 * abs(was.value)


def _overhead_moved(was: Number, now: Number, allowed: Allowed) -> bool:
    if was.overhead_pct is None or now.overhead_pct is None:
        return (was.overhead_pct is None) != (now.overhead_pct is None)
    return abs(now.overhead_pct - was.overhead_pct) > allowed.points_at(was.overhead_pct)


def _change_pct(was: float, now: float) -> float:
    if was == now:
        return 0.0
    return 100.0 * (now / was - 1.0) if was else math.copysign(math.inf, now)
