"""The section "Your own failure pattern" of docs/tutorial.md: its files, its commands and what they print."""

import re
import tomllib
from pathlib import Path

import pytest

from r2cc_simai.cli.main import run
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.failures import registry
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.plugins import GROUP
from r2cc_simai.failures.registry import load_pattern_file

DOCS = Path(__file__).parents[2] / "docs/tutorial.md"
HEADING = re.compile(r"^## (?:\d+\. )?Your own failure pattern$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```(?:python|yaml)\n(# (\S+)\n.*?)^```$", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^```\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
CUT = "…"


def section() -> str:
    """The text under the heading."""
    found = HEADING.search(DOCS.read_text(encoding="utf-8"))
    assert found, f"{DOCS} has no section 'Your own failure pattern'"
    return found[1]


def commands() -> list[tuple[list[str], list[str]]]:
    """The arguments of each command of the section, and the lines that it prints there."""
    found = []
    for block in SESSION.findall(section()):
        for call in re.split(r"^\$ r2cc-simai ", block, flags=re.MULTILINE)[1:]:
            first, *printed = call.splitlines()
            found.append((first.split(), printed))
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with the files of the section, as the current one."""
    for text, name in FILE.findall(section()):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(registry, "_FROM_FILES", {})
    return tmp_path


def test_the_pattern_is_short(folder):
    """At most 20 lines, comment and imports included."""
    assert len((folder / "firmware.py").read_text().splitlines()) <= 20


def test_the_yaml_file_fails_what_the_docs_say(folder):
    """The same events as the function on four servers."""
    for name in ("firmware.py", "rollout-of-four.yml"):
        load_pattern_file(folder / name)
    cluster = load_cluster("h100x4")
    ours, same = (parse_failures([text], cluster).events for text in ("firmware:wave=3", "rollout-of-four"))
    assert len(ours) == 64
    assert ours == same


def test_the_entry_point_of_the_docs(folder):
    """Its group, and a name that the file defines."""
    entries = tomllib.loads(re.search(r"^```toml\n(.*?)^```$", section(), re.MULTILINE | re.DOTALL)[1])
    (group,) = entries["project"]["entry-points"]
    assert group == GROUP
    load_pattern_file(folder / "firmware.py")
    for name, value in entries["project"]["entry-points"][GROUP].items():
        assert registry.pattern_named(name).function.__name__ == value.partition(":")[2]


def test_the_commands_print_what_the_docs_say(folder, capsys):
    """Every line that is shown, in order; the sweep's report tells of the pattern."""
    shown = commands()
    assert [arguments[0] for arguments, _ in shown].count("sweep") == 1
    for arguments, wanted in shown:
        workers = ["--workers", "1"] if arguments[0] == "sweep" else []
        assert run([*arguments, *workers]) == 0
        printed = iter([line.rstrip() for line in capsys.readouterr().out.splitlines()])
        for line in wanted:
            assert line == CUT or line in printed, f"{' '.join(arguments)} no longer prints {line!r} there"
    assert "firmware" in (folder / "rollout/report.md").read_text(encoding="utf-8")
    assert "firmware" in (folder / "rollout/report.html").read_text(encoding="utf-8")
