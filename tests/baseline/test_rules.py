"""Tolerances: what may move by how much."""

import re

import pytest
import yaml

from r2cc_simai.baseline.numbers import WATCHED, watched
from r2cc_simai.baseline.rules import Allowed, Rules, load_rules, rules_beside
from r2cc_simai.errors import InputError
from r2cc_simai.paths import baselines_dir

TEXT = """
default: {value_pct: 1, overhead_points: 2}
rules:
  - {backend: chunk, value_pct: 3}
  - {metric: "[rt]x_bytes*", value_pct: 0.01}
  - {scenario: "r7525-*", backend: chunk, overhead_points: 5}
  - {drawn: true, value_pct: 7}
"""


@pytest.fixture(scope="module")
def written():
    """Return the rules of TEXT."""
    return Rules.model_validate(yaml.safe_load(TEXT))


@pytest.mark.parametrize(
    ("given", "value_pct", "points"),
    [
        ({}, 1, 2),
        ({"backend": "chunk"}, 3, 2),
        ({"backend": "chunk", "metric": "tx_bytes[server0.nic0]"}, 0.01, 2),
        ({"backend": "chunk", "scenario": "r7525-cut"}, 3, 5),
        ({"scenario": "r7525-cut"}, 1, 2),
        ({"seed": 4}, 7, 2),
    ],
)
def test_the_last_rule_that_fits_and_names_a_tolerance_counts(written, row, given, value_pct, points):
    (number,) = watched([row(**given)], ("*",))
    assert written.allowed(number) == Allowed(value_pct, points)


def test_an_overhead_near_zero_is_judged_in_points_and_a_large_one_in_relative_terms():
    """At an overhead o the allowed points are p max(1, 1 + o/100), that is p percent of time/ideal = 1 + o/100."""
    allowed = Allowed(value_pct=1, overhead_points=0.1)
    assert allowed.points_at(0.0) == 0.1
    assert allowed.points_at(-50.0) == 0.1
    assert allowed.points_at(900.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default: {value_pct: 1}", "default.overhead_points: missing"),
        ("default: {value_pct: -1, overhead_points: 1}", "default.value_pct"),
        ("default: {value_pct: .nan, overhead_points: 1}", "default.value_pct"),
        ("default: {value_pct: 1, overhead_points: 1}\nrules: [{metrics: time}]", r"metric was meant\?"),
        ("default: {value_pct: 1, overhead_points: 1}\nrules: [{metric: time}]", "value_pct or overhead_points"),
        ("default: {value_pct: 1, overhead_points: 1}\nrows: {missing: pass}", "rows.missing"),
        ("rules: []", "default: missing"),
        ("[]", "a mapping"),
        ("default: {", "not YAML"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_file_and_key(tmp_path, text, said):
    path = tmp_path / "tolerances.yml"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        load_rules(path)
    assert str(path) in str(caught.value)
    assert not re.search(r"\n", str(caught.value))


def test_tolerances_lie_beside_the_baseline_or_ship(tmp_path):
    assert rules_beside(tmp_path / "kept.csv") == baselines_dir() / "tolerances.yml"
    (tmp_path / "tolerances.yml").write_text(TEXT)
    assert rules_beside(tmp_path / "kept.csv") == tmp_path / "tolerances.yml"


@pytest.mark.parametrize("backend", ["flow", "chunk"])
@pytest.mark.parametrize("metric", WATCHED)
def test_what_ships_sees_a_change_of_a_tenth_of_a_percent(row, metric, backend):
    (number,) = watched([row(metric=metric, backend=backend)], WATCHED)
    assert load_rules(baselines_dir() / "tolerances.yml").allowed(number).value_pct < 0.1
