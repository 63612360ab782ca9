"""Pattern files: Python and YAML, and one line for what is wrong with them."""

from pathlib import Path

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures import guard, registry
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.registry import load_pattern_file, parse_pattern, pattern_names

H100 = load_cluster("h100x4")
HEAD = """from r2cc_simai.failures.pattern import Incident, Seconds, Site, pattern
"""
GOOD = (
    HEAD
    + """
from __future__ import annotations
from r2cc_simai.failures.patterns.nics import nic

@pattern
def two_rails(site: Site, at: Seconds = 1.0):
    yield Incident("rail0", at)
    yield Incident("rail1", at + 1)

@pattern(draws=True)
def any_nic(site: Site):
    yield Incident(f"server0.nic{site.random.integers(8)}", 0.0)
"""
).replace(HEAD + "\nfrom __future__ import annotations\n", "from __future__ import annotations\n" + HEAD)


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns of files are those of one test."""
    monkeypatch.setattr(registry, "_FROM_FILES", {})


def put(tmp_path: Path, source: str, name: str = "mine.py") -> Path:
    path = tmp_path / name
    path.write_text(source)
    return path


def test_patterns_of_a_python_file(tmp_path: Path) -> None:
    """All that it defines, none that it imports; they are patterns like any other."""
    before = set(pattern_names())
    load_pattern_file(put(tmp_path, GOOD))
    assert set(pattern_names()) - before == {"two-rails", "any-nic"}
    assert parse_pattern("two-rails:at=5s").incidents(H100) == (Incident("rail0", 5.0), Incident("rail1", 6.0))
    assert len(parse_failures(["two-rails", "rail7@0"], H100).events) == 12
    assert parse_pattern("any-nic").draws
    assert sorted(tmp_path.iterdir()) == [tmp_path / "mine.py"]  # and no __pycache__


def test_loading_a_file_again_renews_it(tmp_path: Path) -> None:
    """What it no longer defines is gone."""
    path = put(tmp_path, GOOD)
    load_pattern_file(path)
    path.write_text(HEAD + "\n@pattern\ndef two_rails(site: Site):\n    yield Incident('rail2', 0.0)\n")
    load_pattern_file(path)
    assert parse_pattern("two-rails").incidents(H100) == (Incident("rail2", 0.0),)
    with pytest.raises(InputError, match="'any-nic': unknown"):
        parse_pattern("any-nic")


def test_a_name_that_two_files_define(tmp_path: Path) -> None:
    """Both are named; the first stays."""
    load_pattern_file(put(tmp_path, GOOD))
    with pytest.raises(InputError, match=r"other\.py: pattern 'two-rails' stands in .*mine\.py already"):
        load_pattern_file(put(tmp_path, GOOD, "other.py"))


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        (GOOD.replace("two_rails", "flap"), "mine.py", "pattern 'flap' is a built-in one; give yours another name"),
        ("x = 1", "mine.py", "defines no pattern; write @pattern above a function"),
        ("from r2cc_simai.failures.patterns.nics import nic", "mine.py", "defines no pattern"),
        ("x = 1 +", "mine.py", "cannot be loaded: SyntaxError: invalid syntax"),
        ("import nothing_like_it", "mine.py", "cannot be loaded: ModuleNotFoundError"),
        ("raise RuntimeError('two\\nlines')", "mine.py", r"cannot be loaded: RuntimeError: two lines \(.*mine\.py:1\)"),
        (HEAD + "@pattern\ndef mine(site: Site, size): yield", "mine.py", "parameter size: its type must be"),
        ("pattern: mine", "mine.yml", "changes: missing"),
        ("pattern: mine", "mine.txt", r"a pattern file ends in \.py or \.yml"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, source: str, name: str, message: str) -> None:
    """The file, and what is wrong with it, in one line."""
    path = put(tmp_path, source, name)
    with pytest.raises(InputError, match=message) as caught:
        load_pattern_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["nowhere.py", "nowhere.yml", "folder.py"])
def test_files_that_are_not_there(tmp_path: Path, name: str) -> None:
    """Nor is a folder a file."""
    if name == "folder.py":
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=f"{name}: (No such file|Is a directory)"):
        load_pattern_file(tmp_path / name)


BROKEN = {
    "it raises": ("raise KeyError('x')\n    yield", r"failed: KeyError: 'x' \(.*mine\.py:4\)"),
    "it raises later": ("yield Incident('rail0', 0.0)\n    1 / 0", "failed: ZeroDivisionError"),
    "it raises an input error": ("yield Incident('rail9', 0.0)", "'rail9': h100x4 has no such component"),
    "it gives nothing": ("pass", "it gives NoneType; it must yield incidents"),
    "it gives a number": ("return 3", "it gives int; it must yield incidents"),
    "it yields texts": ("yield 'rail0'", "incident 1 is of type str, not Incident"),
    "no component": ("yield Incident(None, 0.0)", "incident 1: component None and cause '' must be texts"),
    "an infinite begin": ("yield Incident('rail0', float('inf'))", "rail0 begins at inf s"),
    "a begin that is none": ("yield Incident('rail0', float('nan'))", "rail0 begins at nan s"),
    "a begin that is a text": ("yield Incident('rail0', '5')", "incident 1: begin_s '5' is no number"),
    "a negative begin": ("yield Incident('rail0', -1.0)", "rail0 begins at -1 s; a time from 0 on"),
    "an end at the begin": ("yield Incident('rail0', 1.0, 1.0)", r"rail0 ends at 1 s, not after it begins \(1 s\)"),
    "an end that is none": ("yield Incident('rail0', 1.0, float('nan'))", "rail0 ends at nan s"),
    "a state above 1": ("yield Incident('rail0', 1.0, state=2.0)", r"rail0 is at state 2; 0 \(down\) to below 1"),
    "a repair": ("yield Incident('rail0', 1.0, state=1.0)", "rail0 is at state 1"),
    "a state that is none": ("yield Incident('rail0', 1.0, state=float('nan'))", "rail0 is at state nan"),
    "no end to it": ("while True: yield Incident('rail0', 0.0)", "more than 1000 incidents; does it ever end"),
    "randomness that is not said": ("yield Incident('rail0', site.random.random())", "write @pattern.draws=True."),
}


@pytest.mark.parametrize(("body", "message"), BROKEN.values(), ids=BROKEN)
def test_patterns_that_do_not_work(tmp_path: Path, body: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names pattern and file, never a traceback; nor a hang where it yields without an end."""
    monkeypatch.setattr(guard, "MOST_INCIDENTS", 1000)
    path = put(tmp_path, f"{HEAD}@pattern\ndef mine(site: Site):\n    {body}\n")
    load_pattern_file(path)
    with pytest.raises(InputError, match=message) as caught:
        parse_failures(["mine"], H100)
    assert str(caught.value).startswith(f"--fail 'mine': pattern 'mine' of {path}")
    assert "\n" not in str(caught.value)


def test_two_uses_of_a_pattern_are_two_draws(tmp_path: Path) -> None:
    """In one scenario; equal for a seed."""
    load_pattern_file(put(tmp_path, GOOD))
    texts = ["any-nic"] * 20
    nics = [event.nic for event in parse_failures(texts, H100).events]
    assert len(nics) > 3
    assert nics == [event.nic for event in parse_failures(texts, H100).events]
