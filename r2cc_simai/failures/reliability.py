"""Reliability tables: how often the parts of a cluster fail, and how long their repair takes."""

import math
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from r2cc_simai.config import Strict, read_yaml, validated
from r2cc_simai.errors import InputError
from r2cc_simai.paths import reliability_dir

MONTH_H = 730.0
"""Hours of a month: 365 days * 24 h / 12."""

Kind = Literal["nic", "port", "cable", "server", "rail", "leaf", "tor"]
Cause = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
"""Name of a cause: it stands in options and in the names of metrics."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Observed(Strict):
    """What an operator counted: `events` failures of `components` components in `days` days."""

    events: Positive
    components: Annotated[int, Field(ge=1)]
    days: Positive


class FailureClass(Strict):
    """One cause of failures: which components it hits, how often each, and what it leaves until the repair.

    `tor` is the switch that NICs hang on: a leaf, or a rail's switch where the fabric has one switch per rail. Of each
    component there are `parts` that fail one by one and carry equal shares of its rate (2 for a dual-ToR link).
    """

    component: Kind
    parts: Annotated[int, Field(ge=1, le=64)] = 1
    mttf_h: Positive | None = None
    percent_per_month: Positive | None = None
    observed: Observed | None = None
    mttr_h: Positive
    repair: Literal["fixed", "exponential", "lognormal"] = "fixed"
    repair_sigma: Positive | None = None
    state: tuple[tuple[float, float], ...] = ((0.0, 1.0),)

    @field_validator("state", mode="before")
    @classmethod
    def _states(cls, value: Any) -> tuple[tuple[float, float], ...]:
        """Pairs (rate that is left, share of the failures) of `down`, of a fraction, or of {state: share}."""
        shares = value if isinstance(value, dict) else {value: 1.0} if isinstance(value, str | int | float) else {}
        pairs = tuple((_left(state), _share(share)) for state, share in shares.items())
        if not pairs or abs(sum(share for _, share in pairs) - 1.0) > 1e-6:
            raise ValueError("write down, a rate that is left (0.5), or {down: 0.8, 0.5: 0.2} with shares of sum 1")
        return pairs

    @model_validator(mode="after")
    def _consistent(self) -> "FailureClass":
        rates = [key for key in ("mttf_h", "percent_per_month", "observed") if getattr(self, key) is not None]
        if len(rates) != 1:
            raise ValueError("write one of mttf_h, percent_per_month and observed: {events, components, days}")
        if (self.repair == "lognormal") != (self.repair_sigma is not None):
            raise ValueError("repair: lognormal and repair_sigma belong together")
        if self.parts > 1 and self.state != ((0.0, 1.0),):
            raise ValueError("state: with parts above 1 each failed part takes its share of the rate; leave state out")
        return self

    @property
    def mttf_s(self) -> float:
        """Mean seconds that one part works before it fails: component-hours over events."""
        if self.mttf_h is not None:
            hours = self.mttf_h
        elif self.percent_per_month is not None:
            hours = MONTH_H / (self.percent_per_month / 100)
        else:
            assert self.observed is not None
            hours = self.observed.components * self.observed.days * 24 / self.observed.events
        return hours * 3600


class ReliabilityTable(Strict):
    """A table: causes by name, where the figures come from, and which of them are assumed."""

    name: str
    source: str
    assumed: str = ""
    components: Annotated[dict[Cause, FailureClass], Field(min_length=1)]


def table_names() -> list[str]:
    """Names of the shipped tables, sorted."""
    return sorted(_shipped())


def load_table(name: str, base: Path | None = None) -> ReliabilityTable:
    """The table `name`: a shipped one (`llama3`) or a YAML file, relative to the folder `base` where that is given.

    Raises:
        InputError: there is no such table, or the file is wrong.
    """
    if name in _shipped():
        return _read(_shipped()[name], None)
    path = Path(name) if base is None else base / name
    if path.suffix not in (".yml", ".yaml"):
        raise InputError(f"{name!r}: no such reliability table; write {', '.join(table_names())} or a .yml file")
    return _read(path, _stamp(path))


@cache
def _shipped() -> dict[str, Path]:
    return {path.stem: path for path in reliability_dir().glob("*.yml")}


@lru_cache(maxsize=32)
def _read(path: Path, _changed: tuple[int, int] | None) -> ReliabilityTable:
    return validated(ReliabilityTable, read_yaml(path), str(path))


def _stamp(path: Path) -> tuple[int, int] | None:
    """What changes with a file's content: it is read again then, and once for a thousand draws otherwise."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _left(state: Any) -> float:
    if state == "down":
        return 0.0
    left = _number(state)
    if not 0 <= left < 1:
        raise ValueError(f"{state!r} is no state; write down or the rate that is left, from 0 to below 1")
    return left


def _share(share: Any) -> float:
    number = _number(share)
    if not 0 < number <= 1:
        raise ValueError(f"{share!r} is no share of the failures; write a number above 0, up to 1")
    return number


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
