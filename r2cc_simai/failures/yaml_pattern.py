"""A failure pattern written as YAML: changes of components, other patterns, and how often all of it is repeated."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from r2cc_simai.config import Strict, read_yaml, validated
from r2cc_simai.errors import InputError
from r2cc_simai.failures.guard import MOST_INCIDENTS
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import NAME, Pattern, Site
from r2cc_simai.failures.registry import BoundPattern, parse_pattern
from r2cc_simai.units import parse_duration

_TimeS = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _left(state: object) -> float:
    """The fraction of the rate that a state leaves."""
    if state == "down":
        return 0.0
    if isinstance(state, bool) or not isinstance(state, int | float) or not 0 <= state < 1:
        raise ValueError(f"{state!r}: write down, or the fraction of the rate that is left, 0 to below 1")
    return float(state)


class ChangeSpec(Strict):
    """A component that changes, `from` a time `to` another (for good without), or a pattern that starts `at` a time.

    Every time has two keys: with `_s` a number of seconds, without a text with its unit.
    """

    component: str | None = None
    state: Annotated[float, BeforeValidator(_left)] = 0.0
    from_: str | None = Field(None, alias="from")
    from_s: _TimeS | None = None
    to: str | None = None
    to_s: _TimeS | None = None
    cause: str = ""
    pattern: str | None = None
    at: str | None = None
    at_s: _TimeS | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "ChangeSpec":
        if (self.component is None) == (self.pattern is None):
            raise ValueError("write component (with state, from, to, cause) or pattern (with at)")
        wrong = self.model_fields_set & (_OF_PATTERN if self.component else _OF_COMPONENT)
        if wrong:
            other = "pattern" if self.component else "component"
            raise ValueError(f"{min(wrong).rstrip('_')} is a key of a {other}")
        if self.component and self.end_s <= self.begin_s:
            raise ValueError(f"{self.component} ends at {self.end_s:g} s, not after it begins ({self.begin_s:g} s)")
        _ = self.start_s
        return self

    @property
    def begin_s(self) -> float:
        """Second at which the component changes."""
        return _seconds("from", self.from_, self.from_s, 0.0)

    @property
    def end_s(self) -> float:
        """Second at which it is in order again."""
        return _seconds("to", self.to, self.to_s, math.inf)

    @property
    def start_s(self) -> float:
        """Second of the job that is 0 for the nested pattern."""
        return _seconds("at", self.at, self.at_s, 0.0)


_OF_COMPONENT = {"component", "state", "from_", "from_s", "to", "to_s", "cause"}
_OF_PATTERN = {"pattern", "at", "at_s"}


class RepeatSpec(Strict):
    """All changes again after each `every`; without `times` to the end of the job."""

    every: str | None = None
    every_s: _TimeS | None = None
    times: Annotated[int, Field(ge=1, le=MOST_INCIDENTS)] | None = None

    @model_validator(mode="after")
    def _has_a_period(self) -> "RepeatSpec":
        if not self.period_s > 0:
            raise ValueError("every or every_s is wanted: a time above 0")
        return self

    @property
    def period_s(self) -> float:
        """Seconds from one repetition to the next."""
        return _seconds("every", self.every, self.every_s, 0.0)


class PatternSpec(Strict):
    """The whole file."""

    pattern: str
    description: str = ""
    changes: Annotated[list[ChangeSpec], Field(min_length=1)]
    repeat: RepeatSpec | None = None

    @model_validator(mode="after")
    def _has_a_name(self) -> "PatternSpec":
        if not NAME.fullmatch(self.pattern):
            raise ValueError(f"pattern {self.pattern!r}: a name is lower-case words with - between")
        return self


@dataclass(frozen=True)
class _Part:
    """One change, or a nested pattern that starts at a time in seconds."""

    incident: Incident | None = None
    nested: BoundPattern | None = None
    at_s: float = 0.0


def read_pattern(path: Path) -> Pattern:
    """The pattern of a YAML file. Patterns that it nests must be known already.

    Raises:
        InputError: the file is wrong: one line with its name, the key and what is allowed.
    """
    spec = validated(PatternSpec, read_yaml(path), str(path))
    parts = [_part(f"{path}: changes.{place}", spec.pattern, change) for place, change in enumerate(spec.changes)]
    draws = any(part.nested is not None and part.nested.draws for part in parts)
    summary = " ".join(spec.description.split()).rstrip(".")
    run = partial(_incidents, tuple(parts), spec.repeat, path.parent)
    return Pattern(spec.pattern, summary, (), run, draws, str(path))


def _part(where: str, name: str, change: ChangeSpec) -> _Part:
    if change.component is not None:
        return _Part(Incident(change.component, change.begin_s, change.end_s, change.state, change.cause))
    assert change.pattern is not None
    try:
        if change.pattern.partition(":")[0] == name:
            raise InputError(f"{name} cannot contain itself")
        return _Part(nested=parse_pattern(change.pattern), at_s=change.start_s)
    except InputError as error:
        raise InputError(f"{where}.pattern: {error}") from None


def _incidents(parts: tuple[_Part, ...], repeat: RepeatSpec | None, folder: Path, site: Site) -> Iterator[Incident]:
    for start_s in _starts(repeat, site.horizon_s):
        for stream, part in enumerate(parts):
            found = _nested(part, stream, start_s, folder, site) if part.incident is None else (part.incident,)
            shift_s = start_s + part.at_s
            for one in found:
                yield replace(one, begin_s=one.begin_s + shift_s, end_s=one.end_s + shift_s)


def _starts(repeat: RepeatSpec | None, horizon_s: float) -> Iterator[float]:
    if repeat is None:
        yield 0.0
        return
    if repeat.times is None and math.isinf(horizon_s):
        raise InputError("repeat without times needs a job of a known length; give times, or the hours of the job")
    times = repeat.times or math.ceil(horizon_s / repeat.period_s)
    yield from (number * repeat.period_s for number in range(times))


def _nested(part: _Part, stream: int, start_s: float, folder: Path, site: Site) -> tuple[Incident, ...]:
    one = part.nested
    assert one is not None
    left_s = site.horizon_s - start_s - part.at_s
    if left_s <= 0:
        return ()
    seed = int(site.random.integers(2**62)) if one.draws else 0
    return one.incidents(site.cluster, seed, left_s, base=folder, stream=stream)


def _seconds(key: str, text: str | None, number: float | None, default: float) -> float:
    if text is None:
        return default if number is None else number
    if number is not None:
        raise ValueError(f"{key} and {key}_s stand together; write one of them")
    try:
        seconds = parse_duration(text)
    except InputError as error:
        raise ValueError(f"{key}: {error}") from None
    if seconds < 0:
        raise ValueError(f"{key}: {text} is before the start; a time from 0 on is wanted")
    return seconds
