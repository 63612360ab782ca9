"""How far a number may lie from its baseline: `tolerances.yml`."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from r2cc_simai.baseline.numbers import Number
from r2cc_simai.config import Strict, read_yaml, validated
from r2cc_simai.paths import baselines_dir

TOLERANCES = "tolerances.yml"
GLOBS = ("scenario", "cluster", "workload", "pattern", "strategy", "backend", "metric")

Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Answer = Literal["fail", "note"]


@dataclass(frozen=True)
class Allowed:
    """What one number may move by.

    `value_pct`: its value, in percent of the baseline's. `overhead_points`: its overhead, in points where the overhead
    is near zero; where it is o%, in points times 1 + o/100, so that a large overhead is judged in relative terms.
    """

    value_pct: float
    overhead_points: float

    def points_at(self, overhead_pct: float) -> float:
        """The points that an overhead of `overhead_pct` percent may move by."""
        return self.overhead_points * max(1.0, 1.0 + overhead_pct / 100.0)


class Default(Strict):
    """What is allowed where no rule says otherwise. A value below `zero_below`, in its own unit, counts as zero."""

    value_pct: Tolerance
    overhead_points: Tolerance
    zero_below: Tolerance = 1e-9


class Rule(Strict):
    """Tolerances of the numbers that all of its patterns match (`*`, `?` and `[...]` as in a shell).

    `drawn`: only means over drawn patterns (true), or only what is not drawn (false).
    """

    scenario: str = "*"
    cluster: str = "*"
    workload: str = "*"
    pattern: str = "*"
    strategy: str = "*"
    backend: str = "*"
    metric: str = "*"
    drawn: bool | None = None
    value_pct: Tolerance | None = None
    overhead_points: Tolerance | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Rule":
        if self.value_pct is None and self.overhead_points is None:
            raise ValueError("value_pct or overhead_points is wanted")
        return self

    def fits(self, number: Number) -> bool:
        """Whether the rule speaks of this number."""
        if self.drawn is not None and self.drawn != bool(number.seeds):
            return False
        return all(fnmatchcase(getattr(number.key, name), getattr(self, name)) for name in GLOBS)


class RowRules(Strict):
    """What it means that a number of the baseline is missing, that one is new, and that a case failed."""

    missing: Answer = "fail"
    new: Answer = "note"
    error: Answer = "fail"


class Rules(Strict):
    """A tolerances file. Of the rules that fit a number, the last one that names a tolerance counts."""

    default: Default
    rules: list[Rule] = Field(default_factory=list)
    rows: RowRules = RowRules()

    def allowed(self, number: Number) -> Allowed:
        """What `number` may move by."""
        value, points = self.default.value_pct, self.default.overhead_points
        for rule in self.rules:
            if rule.fits(number):
                value = value if rule.value_pct is None else rule.value_pct
                points = points if rule.overhead_points is None else rule.overhead_points
        return Allowed(value, points)


def load_rules(path: Path) -> Rules:
    """The tolerances of a file.

    Raises:
        InputError: no such file, or the first thing that is wrong with it.
    """
    return validated(Rules, read_yaml(path), str(path))


def rules_beside(baseline: Path) -> Path:
    """The tolerances file that belongs to a baseline: `tolerances.yml` beside it, or else the one that ships."""
    beside = baseline.parent / TOLERANCES
    return beside if beside.is_file() else baselines_dir() / TOLERANCES
