"""Rows of a small sweep, made from closed forms, and tolerances to judge them by."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

import pytest

from r2cc_simai.baseline.numbers import WATCHED, Number, watched
from r2cc_simai.baseline.rules import Rules
from r2cc_simai.baseline.verdict import Verdict, judge
from r2cc_simai.results import Row, make_row

GIB = 1 << 30
MakeRow = Callable[..., Row]
Scale = Callable[[Iterable[Row], str, float], list[Row]]
Judge = Callable[..., Verdict]


def _row(**given: object) -> Row:
    values: dict[str, object] = {
        "scenario": "demo",
        "cluster": "uniformx4",
        "workload": "all_reduce",
        "pattern": "server0.nic0=0.5@0",
        "strategy": "balance",
        "backend": "flow",
        "bytes": GIB,
        "metric": "time",
        "unit": "s",
        "simulated": 1.1,
        "ideal": 1.0,
    }
    return make_row(**{**values, **given})  # type: ignore[arg-type]


def _scaled(rows: Iterable[Row], strategy: str, factor: float) -> list[Row]:
    return [
        replace(
            row,
            simulated=row.simulated * factor,
            overhead_pct=None if row.ideal is None else 100 * (row.simulated * factor / row.ideal - 1),
        )
        if row.strategy.startswith(strategy) and row.simulated is not None and row.unit == "s"
        else row
        for row in rows
    ]


@pytest.fixture(scope="session")
def row() -> MakeRow:
    """Return a function that makes a row, with defaults for what a test does not name."""
    return _row


@pytest.fixture(scope="session")
def rows() -> list[Row]:
    """Return times and sent bytes of three strategies at an overhead of 2X, X, and 2/3 X, on both backends."""
    made = []
    for servers, lost, backend in product((4, 8, 16), (0.125, 0.25, 0.5), ("flow", "chunk")):
        place = {
            "cluster": f"uniformx{servers}",
            "pattern": f"server0.nic0={1 - lost:g}@0",
            "backend": backend,
            "ideal": 0.2,
        }
        for strategy, factor in (("hot-repair", 2.0), ("balance", 1.0), ("r2cc-allreduce:k=128", 2 / 3)):
            seconds = 0.2 * (1 + factor * lost)
            made.append(_row(**place, strategy=strategy, simulated=seconds))
            made.append(
                _row(**{**place, "ideal": None}, strategy=strategy, metric="tx_bytes[nic0]", unit="B", simulated=7.0)
            )
    return made


@pytest.fixture(scope="session")
def scaled() -> Scale:
    """Return a function: the rows with the times of one strategy multiplied by a factor."""
    return _scaled


@pytest.fixture(scope="session")
def rules() -> Rules:
    """Return tolerances of 0.1% and 0.1 points."""
    return Rules.model_validate({"default": {"value_pct": 0.1, "overhead_points": 0.1}})


@pytest.fixture(scope="session")
def compare(rules: Rules) -> Judge:
    """Return a function: the verdict on `after`, with what is watched of `before` as the baseline."""

    def run(before: Iterable[Row], after: Iterable[Row], rules: Rules = rules) -> Verdict:
        kept: list[Number] = watched(before, WATCHED)
        return judge(kept, watched(after, ("*",)), rules)

    return run
