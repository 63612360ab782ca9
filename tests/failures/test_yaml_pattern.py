"""Patterns in YAML: changes, nested patterns, repetition; and what is refused, with file and key."""

import math
from pathlib import Path

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern_files import patterns_in
from r2cc_simai.failures.registry import BoundPattern

H100 = load_cluster("h100x4")


def bound(tmp_path: Path, body: str) -> BoundPattern:
    """The pattern of a file with such a body."""
    path = tmp_path / "mine.yml"
    path.write_text(f"pattern: mine\n{body}\n")
    (one,) = patterns_in(path)
    return BoundPattern("mine", one, {})


def test_changes(tmp_path: Path) -> None:
    """Down for good from the start by default; times with their unit or, with _s, in seconds."""
    mine = bound(
        tmp_path,
        """
description: >
  a rail, then
  a cable.
changes:
  - {component: rail1}
  - {component: server0.nic1.cable, state: 0.5, from: 10ms, to: 2min, cause: optics}
  - {component: "server[0,2].nic2", state: down, from_s: 1.5, to_s: 2}
""",
    )
    assert mine.incidents(H100) == (
        Incident("rail1", 0.0, math.inf),
        Incident("server0.nic1.cable", pytest.approx(0.01), 120.0, 0.5, "optics"),
        Incident("server[0,2].nic2", 1.5, 2.0),
    )
    assert mine.pattern.summary == "a rail, then a cable"
    assert not mine.draws


def test_repetition(tmp_path: Path) -> None:
    """All changes again after each period; without `times` as often as a period begins in the job."""
    body = "changes: [{component: rail0, from: 1s, to: 2s}]\nrepeat: {every: 1h, times: 3}"
    assert [one.begin_s for one in bound(tmp_path, body).incidents(H100)] == [1, 3601, 7201]
    endless = bound(tmp_path, "changes: [{component: rail0, from: 1s, to: 2s}]\nrepeat: {every_s: 10}")
    assert [one.begin_s for one in endless.incidents(H100, horizon_s=25)] == [1, 11, 21]
    with pytest.raises(InputError, match="repeat without times needs a job of a known length"):
        endless.incidents(H100)


def test_nested_patterns(tmp_path: Path) -> None:
    """They start at a time of their own, and see what is left of the job."""
    body = 'changes: [{pattern: "flap:component=rail0,count=0,period=10", at: 1min}, {component: rail1, from_s: 5}]'
    found = bound(tmp_path, body).incidents(H100, horizon_s=85)
    assert [(one.component, one.begin_s) for one in found] == [
        ("rail1", 5),
        ("rail0", 60),
        ("rail0", 70),
        ("rail0", 80),
    ]
    assert bound(tmp_path, body).incidents(H100, horizon_s=30) == (Incident("rail1", 5.0),)


def test_nested_draws(tmp_path: Path) -> None:
    """The pattern draws if a part of it does; each use and each repetition is a draw of its own, equal for a seed."""
    body = "changes: [{pattern: random-nics}, {pattern: random-nics}]\nrepeat: {every: 1h, times: 2}"
    mine = bound(tmp_path, body)
    assert mine.draws
    assert mine.incidents(H100, 1) == mine.incidents(H100, 1)
    assert mine.incidents(H100, 1) != mine.incidents(H100, 2)
    four = mine.incidents(H100, 1)
    assert len({one.component for one in four}) > 4
    assert not bound(tmp_path, 'changes: [{pattern: "random-nics:seed=1"}]').draws


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "changes: missing"),
        ("changes: []", "changes: List should have at least 1 item"),
        ("changes: {component: rail0}", "changes: Input should be a valid list"),
        ("change: [{component: rail0}]", r"change: unknown key; changes was meant\?"),
        ("changes: [{komponent: rail0}]", r"changes.0.komponent: unknown key; component was meant\?"),
        ("changes: [{from: 1s}]", "changes.0: write component .* or pattern"),
        ("changes: [{component: rail0, pattern: flap}]", "changes.0: write component"),
        ("changes: [{component: rail0, at: 1s}]", "changes.0: at is a key of a pattern"),
        ("changes: [{pattern: flap, from: 1s}]", "changes.0: from is a key of a component"),
        (
            "changes: [{component: rail0, state: 1}]",
            "changes.0.state: 1: write down, or the fraction of the rate that is left, 0 to below 1",
        ),
        ("changes: [{component: rail0, state: up}]", "changes.0.state: 'up': write down"),
        ("changes: [{component: rail0, state: -0.5}]", "changes.0.state: -0.5: write down"),
        ("changes: [{component: rail0, state: .nan}]", "changes.0.state: nan: write down"),
        ("changes: [{component: rail0, state: true}]", "changes.0.state: True: write down"),
        ("changes: [{component: rail0, from: soon}]", "changes.0: from: 'soon': not a time"),
        ("changes: [{component: rail0, from: -1s}]", "changes.0: from: -1s is before the start"),
        ("changes: [{component: rail0, from: 10}]", "changes.0.from: Input should be a valid string, got 10"),
        ("changes: [{component: rail0, from: 10s, from_s: 10}]", "from and from_s stand together"),
        ("changes: [{component: rail0, from_s: -1}]", "changes.0.from_s: .*greater than or equal to 0"),
        ("changes: [{component: rail0, to_s: .inf}]", "changes.0.to_s: .*finite"),
        ("changes: [{component: rail0, from: 2s, to: 1s}]", r"rail0 ends at 1 s, not after it begins \(2 s\)"),
        ("changes: [{pattern: flop}]", r"changes.0.pattern: pattern 'flop': unknown; flap was meant\?"),
        ('changes: [{pattern: "flap:size=1"}]', "changes.0.pattern: pattern 'flap': no option 'size'"),
        ("changes: [{pattern: mine}]", "changes.0.pattern: mine cannot contain itself"),
        ("changes: [{component: rail0}]\nrepeat: {times: 3}", "repeat: every or every_s is wanted"),
        ("changes: [{component: rail0}]\nrepeat: {every: 0s, times: 3}", "repeat: every or every_s is wanted"),
        ("changes: [{component: rail0}]\nrepeat: {every: 1s, times: 0}", "repeat.times"),
        ("changes: [", "line 3: not YAML"),
    ],
)
def test_what_is_refused(tmp_path: Path, body: str, message: str) -> None:
    """One line: the file, the key, what is wrong."""
    with pytest.raises(InputError, match=message) as caught:
        bound(tmp_path, body)
    assert str(caught.value).startswith(f"{tmp_path / 'mine.yml'}:")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["Mine", "my pattern", "", "7up", "a--b"])
def test_names(tmp_path: Path, name: str) -> None:
    """Lower-case words with - between."""
    path = tmp_path / "mine.yml"
    path.write_text(f"pattern: {name!r}\nchanges: [{{component: rail0}}]\n")
    with pytest.raises(InputError, match="a name is lower-case words"):
        patterns_in(path)


def test_a_component_that_the_cluster_lacks(tmp_path: Path) -> None:
    """Known when it runs; the message names pattern and file."""
    with pytest.raises(InputError, match=r"pattern 'mine' of .*mine\.yml: 'rail9': h100x4 has no such component"):
        bound(tmp_path, "changes: [{component: rail9}]").incidents(H100)
