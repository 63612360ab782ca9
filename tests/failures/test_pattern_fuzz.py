"""Whatever is written as a pattern gives incidents, or one line."""

import math
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures import guard
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.parse import incidents_of
from r2cc_simai.failures.pattern_files import patterns_in
from r2cc_simai.failures.registry import BoundPattern, built_in
from r2cc_simai.paths import failures_dir

H100 = load_cluster("h100x2")
MONTH_S = 720 * 3600.0
VALUES = [
    "",
    "0",
    "1",
    "-1",
    "2.5",
    "1e-300",
    "1e308",
    "nan",
    "inf",
    "9" * 5000,
    "10ms",
    "4h",
    "1/3",
    "rail0",
    "server[0-1]",
    "nic9",
    "[",
    "up",
]
OPTIONS = {name: [option.name for option in one.options] + ["seed", "sise"] for name, one in built_in().items()}


@pytest.fixture(autouse=True)
def _few_incidents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that goes on and on is refused sooner."""
    monkeypatch.setattr(guard, "MOST_INCIDENTS", 2000)


def in_order(incidents: tuple[Incident, ...]) -> bool:
    """Each begins, ends later and leaves less than the whole rate; sorted by begin."""
    begins = [one.begin_s for one in incidents]
    valid = all(0 <= one.begin_s < one.end_s and math.isfinite(one.begin_s) and one.state < 1 for one in incidents)
    return valid and begins == sorted(begins)


def outcome(call: Callable[[], tuple[Incident, ...]]) -> tuple[Incident, ...] | str:
    """What a call gives, or its error, which is one line."""
    try:
        return call()
    except InputError as error:
        return str(error)


@st.composite
def a_text(draw: st.DrawFn) -> str:
    """A name with up to four options, most of them its own."""
    name = draw(st.sampled_from(sorted(OPTIONS)))
    keys = draw(st.lists(st.sampled_from(OPTIONS[name]), max_size=4))
    return f"{name}:" + ",".join(f"{key}={draw(st.sampled_from(VALUES))}" for key in keys)


@settings(max_examples=200)
@given(a_text())
def test_options_at_random(text: str) -> None:
    """Of every built-in pattern; the same again gives the same."""
    found = outcome(lambda: incidents_of([text], H100, seed=3, horizon_s=MONTH_S))
    if isinstance(found, str):
        assert found.startswith("--fail ")
        assert "\n" not in found
    else:
        assert in_order(found)
    assert found == outcome(lambda: incidents_of([text], H100, seed=3, horizon_s=MONTH_S))


@settings(max_examples=200)
@given(st.text(max_size=30) | st.text("nicsrail0123456789[]-,.:=@%bytes", max_size=30))
def test_texts_at_random(text: str) -> None:
    """Of any letters, and of those that failures are made of."""
    found = outcome(lambda: incidents_of([text], H100))
    assert not isinstance(found, str) or len(found.splitlines()) == 1


def mutated(text: str, random: Random) -> str:
    """A file with a line lost, doubled or cut, or a value or a letter exchanged."""
    lines = text.splitlines()
    place = random.randrange(len(lines))
    kind = random.randrange(5)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(place, lines[place])
    elif kind == 2:
        lines[place] = lines[place][: random.randrange(len(lines[place]) + 1)]
    elif kind == 3:
        key, colon, _ = lines[place].rpartition(":")
        lines[place] = key + colon + random.choice([" 7", " []", " {}", " -1s}", " x", " null", " .nan}", " rail0}"])
    else:
        column = random.randrange(len(lines[place]) + 1)
        lines[place] = lines[place][:column] + random.choice("{}[]:,-'\"#&*!7x \t") + lines[place][column + 1 :]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", sorted(path.name for path in failures_dir().glob("*.yml")))
def test_mutated_files(name: str, tmp_path: Path) -> None:
    """A hundred of each that ships: incidents, or one line that names the file."""
    text, random = (failures_dir() / name).read_text(), Random(name)
    path = tmp_path / name
    refused = 0
    for _ in range(100):
        path.write_text(mutated(text, random))
        found = outcome(lambda: BoundPattern(name, patterns_in(path)[0], {}).incidents(H100, 0, MONTH_S))
        if isinstance(found, str):
            refused += 1
            assert str(path) in found
            assert "\n" not in found
        else:
            assert in_order(found)
    assert 20 < refused < 100


def test_a_file_that_is_valid_stays_so(tmp_path: Path) -> None:
    """Written anew by a YAML library, in another layout: the same incidents."""
    for source in failures_dir().glob("*.yml"):
        again = tmp_path / source.name
        again.write_text(yaml.safe_dump(yaml.safe_load(source.read_text()), default_flow_style=False))
        one, other = (BoundPattern("", patterns_in(path)[0], {}).incidents(H100) for path in (source, again))
        assert one == other
