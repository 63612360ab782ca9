"""Failure patterns of other packages: found by entry point, and one line where one does not work."""

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.plugins import GROUP
from r2cc_simai.failures.registry import parse_pattern, pattern_names, working_patterns

GOOD = """
from r2cc_simai.failures.pattern import Incident, Seconds, Site, pattern

@pattern
def mine(site: Site, at: Seconds = 2.0):
    \"\"\"A rail.\"\"\"
    yield Incident("rail0", at)
"""


def test_a_plug_in_works_like_any_other(install):
    """Its options, its incidents; it is among the names."""
    install("good-pack", "pack", GOOD, {"mine": "pack:mine"}, GROUP)
    assert parse_pattern("mine:at=5").incidents(load_cluster("h100x4")) == (Incident("rail0", 5.0),)
    assert "mine" in pattern_names()
    assert ("mine", "A rail") in [(one.name, one.summary) for one in working_patterns()[0]]


@pytest.mark.parametrize(
    ("source", "value", "message"),
    [
        ("import nothing_like_it", "pack:mine", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("x = 1 +", "pack:mine", "cannot be loaded: SyntaxError: invalid syntax"),
        ("raise RuntimeError('two\\nlines')", "pack:mine", r"cannot be loaded: RuntimeError: two lines \("),
        (GOOD, "pack:yours", "cannot be loaded: AttributeError"),
        ("def mine(site): yield", "pack:mine", "pack:mine is no pattern; write @pattern above the function"),
        (GOOD.replace("def mine", "def yours"), "pack:yours", "the pattern names itself 'yours'; both must agree"),
    ],
)
def test_what_cannot_be_loaded(source, value, message, install):
    """The name, the distribution, the reason; `failures list` goes on without it."""
    install("bad-pack", "pack", source, {"mine": value}, GROUP)
    with pytest.raises(InputError, match=message) as refused:
        parse_pattern("mine")
    assert "pattern 'mine' of distribution 'bad-pack'" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert working_patterns()[1] == [str(refused.value)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError(at)", r"failed: KeyError: 2\.0 \(.*pack\.py:"),
        ("yield 7", "incident 1 is of type int, not Incident"),
        ("yield Incident('rail0', -at)", "incident 1: rail0 begins at -2 s"),
    ],
)
def test_what_fails_when_it_runs(body, message, install):
    """As for files: one line, with the distribution."""
    install("bad-pack", "pack", GOOD.replace('yield Incident("rail0", at)', body), {"mine": "pack:mine"}, GROUP)
    with pytest.raises(InputError, match=message) as refused:
        parse_pattern("mine").incidents(load_cluster("h100x4"))
    assert "pattern 'mine' of distribution 'bad-pack'" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_projects_own_names_cannot_be_taken(install):
    """`flap` is this project's, whatever is installed."""
    install("good-pack", "pack", GOOD.replace("def mine", "def flap"), {"flap": "pack:flap"}, GROUP)
    assert parse_pattern("flap").incidents(load_cluster("h100x4"))[0].component == "server0.nic0"


def test_a_name_that_two_packages_offer(install):
    """Neither wins."""
    install("pack-a", "pack_a", GOOD, {"mine": "pack_a:mine"}, GROUP)
    install("pack-b", "pack_b", GOOD, {"mine": "pack_b:mine"}, GROUP)
    with pytest.raises(InputError, match="distribution 'pack-a' and distribution 'pack-b'; uninstall one"):
        parse_pattern("mine")


def test_an_unknown_name_lists_those_of_plug_ins(install):
    """And means the nearest; nothing is loaded for that."""
    install("good-pack", "pack", "raise RuntimeError('loaded')", {"mine-own": "pack:mine"}, GROUP)
    with pytest.raises(InputError, match=r"'mine-ownn': unknown; mine-own was meant\? \(allowed: nic, .*mine-own"):
        parse_pattern("mine-ownn")
