"""`failures list`, `show`, `draw` and `new`: patterns as their users meet them."""

import json
from runpy import run_path

import pytest

from r2cc_simai.failures import registry
from r2cc_simai.failures.registry import pattern_names

MINE = """from r2cc_simai.failures.pattern import Incident, Seconds, Site, pattern

@pattern
def mine(site: Site, at: Seconds = 2.0):
    \"\"\"A rail, and what follows.\"\"\"
    yield Incident("rail0", at, at + 1)
"""


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """Patterns of files are those of one test."""
    monkeypatch.setattr(registry, "_FROM_FILES", {})


@pytest.fixture
def mine(tmp_path):
    """Return a pattern file."""
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_list_names_every_pattern_with_its_options(cli, mine):
    """Built-in ones, those that ship as files, and those of one's own; defaults are shown as one writes them."""
    printed = cli("failures", "list", "--pattern-file", str(mine)).out
    lines = printed.splitlines()
    for name in pattern_names():
        assert any(line.startswith(f"{name} ") for line in lines)
    assert "[component=...] period=1s duty=0.5 count=3 at=0 fraction=0" in printed
    assert f"A rail, and what follows ({mine})" in printed
    assert "`" not in printed


def test_show_explains_a_pattern(cli):
    """Its events, then its meaning and what each option takes."""
    printed = cli("failures", "show", "flap:count=1,period=10ms", "--cluster", "h100").out
    assert "flap:count=1,period=10ms on h100: 2 events" in printed
    assert "flap: A component goes down count times" in printed
    assert "duty=0.5             a fraction" in printed


def test_show_cuts_a_long_list(cli):
    """A hundred lines and how many more there are; --all prints them."""
    command = ("failures", "show", "flap:count=100", "--cluster", "h100")
    printed = cli(*command).out
    assert "... and 100 more; --all prints them" in printed
    assert "99.5 s" not in printed
    whole = cli(*command, "--all").out
    assert "99.5 s" in whole
    assert "more; --all" not in whole


def test_show_draws_by_seed_and_length(cli):
    """The same seed, the same failures; another one, others. A pattern over a job's length asks for it."""
    command = ("failures", "show", "random-nics", "--cluster", "h100x16")
    assert cli(*command, "--seed", "3").out == cli(*command, "--seed", "3").out != cli(*command, "--seed", "4").out
    asked = cli("failures", "show", "mttf", "--cluster", "h100")
    assert asked.code == 2
    assert "--hours" in asked.error
    assert cli("failures", "show", "mttf:scale=1000", "--cluster", "h100", "--hours", "720").code == 0


@pytest.mark.parametrize(("name", "begins"), [("x.svg", b"<?xml"), ("x.png", b"\x89PNG")])
def test_show_draws_a_picture(cli, tmp_path, name, begins):
    """SVG or PNG, as the file's name says, beside the table."""
    ended = cli("failures", "show", "bad-night", "--cluster", "h100", "--plot", str(tmp_path / name))
    assert ended.code == 0
    assert "events" in ended.out
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_draw_prints_incidents_and_causes(cli):
    """One after the other by seed, and how often each cause occurs."""
    printed = cli("failures", "draw", "optics:p=1,size=3,for=2h", "--draws", "2", "--seed", "5").out
    assert "optics:p=1,size=3,for=2h on h100x4: 2 draws of 720 h" in printed
    rows = [line.split() for line in printed.splitlines() if ".port" in line]
    assert [row[0] for row in rows] == ["5", "5", "5", "6", "6", "6"]
    assert "optics batch: 6 incidents, 3 a draw (3 to 3)" in printed


def test_draw_as_json(cli):
    """Seconds; an end that never comes is null. Two calls print the same."""
    command = ("failures", "draw", "random-nics:count=1,at=5", "--draws", "3", "--json")
    ended = cli(*command)
    found = json.loads(ended.out)
    assert [one["seed"] for one in found["incidents"]] == [0, 1, 2]
    assert {(one["begin_s"], one["end_s"], one["state"], one["cause"]) for one in found["incidents"]} == {
        (5, None, 0, "nic")
    }
    assert found["causes"] == {"nic": {"incidents": 3, "mean": 1, "least": 1, "most": 1}}
    assert (ended.err, ended.out) == ("", cli(*command).out)


def test_draw_of_what_is_certain(cli):
    """It works, and says that seeds change nothing."""
    ended = cli("failures", "draw", "rail", "server0@5..6", "--draws", "2")
    assert "rail: 2 incidents, 1 a draw" in ended.out
    assert "draws nothing that depends on --seed" in ended.err


def test_a_draw_without_a_failure(cli):
    """A short job may be spared."""
    assert "Nothing fails." in cli("failures", "draw", "mttf", "--hours", "0.001", "--draws", "2").out


@pytest.mark.parametrize("command", ["coll", "failures show", "failures draw"])
def test_a_pattern_file_of_ones_own(cli, mine, command):
    """`--pattern-file` wherever failures are written, repeatable."""
    arguments = {"coll": ["-b", "1M", "--fail", "mine:at=0"]}.get(command, ["mine:at=0"])
    ended = cli(*command.split(), *arguments, "--cluster", "h100", "--pattern-file", str(mine))
    assert ended.code == 0
    assert "mine:at=0" in ended.out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["advise", "--size", "1M"], "failures: down-for-good"),
        (["export", "--format", "chakra", "--size", "1M", "--output", "plan"], "plan.0.et"),
    ],
    ids=["advise", "export"],
)
def test_a_known_state_of_a_pattern_file(cli, tmp_path, monkeypatch, command, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yml").write_text(
        "pattern: down-for-good\ndescription: a NIC stays down\nchanges:\n  - {component: server0.nic3, from_s: 0}\n"
    )
    asked = [*command, "--cluster", "h100", "--fail", "down-for-good"]
    assert cli(*asked).code == 2
    ended = cli(*asked, "--pattern-file", "own.yml")
    assert (ended.code, ended.err.splitlines()[:1]) == (0, [])
    assert said in ended.out


def test_the_lines_of_a_patterns_failure_are_those_of_its_components(cli):
    """`--fail nic:nic=3` is `--fail server0.nic3@0`: equal rows but for the name of the pattern."""
    rows = []
    for fail in ("nic:nic=3,at=1ms,until=1s", "server0.nic3@1ms..1"):
        out = json.loads(cli("coll", "-b", "256M", "--cluster", "h100", "--fail", fail, "--json").out)["rows"]
        rows.append([{key: value for key, value in row.items() if key != "pattern"} for row in out])
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["show", "flop"], "flap was meant?"),
        (["show", "flap:duty=2"], "duty=2: a fraction is wanted"),
        (["show", "server0"], "component[=fraction]@time"),
        (["show", "nic", "--plot", "x.bmp"], ".svg"),
        (["show", "nic", "--plot", "/nowhere/x.svg"], "/nowhere"),
        (["show", "nic", "--hours", "0"], "--hours 0: a number above 0"),
        (["show", "nic", "--hours", "nan"], "--hours nan"),
        (["show", "nic", "--seed", "-1"], "--seed"),
        (["show", "server0.mlx5_0@bytes:5", "--plot", "x.svg"], "no time of its own"),
        (["show", "nic", "--pattern-file", "nowhere.py"], "nowhere.py: No such file"),
        (["list", "--pattern-file", "nowhere.yml"], "nowhere.yml: No such file"),
        (["draw", "nic", "--draws", "0"], "--draws"),
        (["draw", "nic", "--cluster", "h101"], "no such cluster"),
        (["draw", "server0.nic0@bytes:5"], "no time of its own"),
        (["new", "Power Cut"], "lower-case words with - between"),
        (["new", "flap"], "there is a pattern of this name"),
        (["new", "while"], "a word of Python"),
        (["new", "power-cut", "--dir", "/nowhere"], "--dir /nowhere"),
    ],
)
def test_bad_input(cli, arguments, named, tmp_path, monkeypatch):
    """Exit code 2 and one line; nothing is written."""
    monkeypatch.chdir(tmp_path)
    ended = cli("failures", *arguments)
    assert ended.code == 2
    assert named in ended.error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [[], ["--yaml"]])
def test_new_writes_a_pattern_whose_test_passes(cli, tmp_path, kind, monkeypatch):
    """The pattern can be shown, its test passes as written, and a second call overwrites nothing."""
    ended = cli("failures", "new", "power-cut", "--dir", str(tmp_path), *kind)
    file = tmp_path / ("power-cut.yml" if kind else "power_cut.py")
    assert ended.code == 0
    assert sorted(tmp_path.iterdir()) == sorted([file, tmp_path / "test_power_cut.py"])
    shown = cli("failures", "show", "power-cut", "--cluster", "h100x4", "--pattern-file", str(file))
    assert "power-cut on h100x4" in shown.out
    tests = [run for name, run in run_path(str(tmp_path / "test_power_cut.py")).items() if name.startswith("test_")]
    assert len(tests) == 1
    tests[0]()
    monkeypatch.setattr(registry, "_FROM_FILES", {})
    before = file.read_text()
    again = cli("failures", "new", "power-cut", "--dir", str(tmp_path), *kind)
    assert again.code == 2
    assert "is there already; nothing was written" in again.error
    assert file.read_text() == before
