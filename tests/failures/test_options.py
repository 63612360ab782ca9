# ruff: noqa: ARG001 - what counts is the signature
"""Options of a pattern: parameters with types, read from `name:key=value,...`."""

import math
from collections.abc import Iterator
from typing import Literal

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.options import split_options
from r2cc_simai.failures.pattern import Fraction, Incident, Pattern, Seconds, Site, pattern
from r2cc_simai.failures.registry import is_pattern, parse_pattern


@pattern
def every_kind(
    site: Site,
    component: str,
    number: int = 3,
    ratio: float = 0.5,
    open_: bool = False,
    at: Seconds = 0.0,
    until: Seconds | None = None,
    fraction: Fraction = 0.25,
    order: Literal["up", "down"] = "up",
) -> Iterator[Incident]:
    """One of each kind.

    And more.
    """
    yield Incident(component, at, math.inf if until is None else until, fraction)


def test_a_function_becomes_a_pattern() -> None:
    """Its name with - for _, its summary, its options with their defaults; an option may be a word of Python."""
    assert isinstance(every_kind, Pattern)
    assert (every_kind.name, every_kind.summary, every_kind.details) == ("every-kind", "One of each kind", "And more.")
    assert every_kind.form == (
        "every-kind:component=...,number=3,ratio=0.5,open=false,at=0,[until=...],fraction=0.25,order=up"
    )


def test_it_can_be_called_as_the_function_that_it_is(site) -> None:
    """So that a test of one's own needs no text."""
    assert list(every_kind(site, component="server0", until=3.0)) == [Incident("server0", 0.0, 3.0, 0.25)]


def test_values_of_each_kind() -> None:
    """Times have units, fractions may be written as such."""
    pairs = split_options(
        "component=server[0,2].nic1,number=-2,ratio=1e3,open=True,at=10ms,until=4h,fraction=1/8,order=down"
    )
    assert every_kind.values(pairs) == {
        "component": "server[0,2].nic1",
        "number": -2,
        "ratio": 1000.0,
        "open_": True,
        "at": pytest.approx(0.01),
        "until": 14400.0,
        "fraction": 0.125,
        "order": "down",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "option component is missing; a text is wanted"),
        ("component=", "component=: a text is wanted"),
        ("component", "'component': options are written key=value"),
        ("component=x,,number=1", "'': options are written key=value"),
        (
            "component=x,size=3",
            "no option 'size' .allowed: component, number, ratio, open, at, until, fraction, order.",
        ),
        ("component=x,number=1,number=2", "number: stands twice"),
        ("component=x,number=1.5", "number=1.5: a whole number is wanted"),
        ("component=x,ratio=nan", "ratio=nan: a number is wanted"),
        ("component=x,ratio=inf", "ratio=inf: a number is wanted"),
        ("component=x,open=maybe", "open=maybe: true or false is wanted"),
        ("component=x,at=soon", "at=soon: a time is wanted"),
        ("component=x,at=-1s", "at=-1s: a time is wanted"),
        ("component=x,fraction=2", "fraction=2: a fraction is wanted"),
        ("component=x,fraction=1/0", "fraction=1/0: a fraction is wanted"),
        ("component=x,order=left", "order=left: up or down is wanted"),
    ],
)
def test_wrong_options(options: str, message: str) -> None:
    """Each says what would be right."""
    with pytest.raises(InputError, match=message):
        every_kind.values(split_options(options))


@pytest.mark.parametrize("text", ["flap", "flap:count=3", "mttf:table=a/b@c.yml,seed=3", "none", "server0"])
def test_what_is_a_pattern(text: str) -> None:
    """A name, with options after a colon."""
    assert is_pattern(text)


@pytest.mark.parametrize("text", ["server0@0", "server0.nic1@bytes:5", "server0.nic3", "rail0=0.5@1", "", "@0"])
def test_what_is_not(text: str) -> None:
    """Components at a time."""
    assert not is_pattern(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flop", r"pattern 'flop': unknown; flap was meant\? .allowed: nic, .*component.=fraction.@time"),
        ("server0", "'server0': unknown.*or component"),
        ("flap:duty=2", "pattern 'flap': duty=2: a fraction is wanted"),
        ("flap:seed=1", "pattern 'flap': no option 'seed'"),
        ("random-nics:seed=-1", "pattern 'random-nics': seed=-1: a whole number from 0 on"),
        ("random-nics:sed=1", "no option 'sed' .allowed: count, .*, seed."),
        ("nic:server", "'server': options are written key=value"),
    ],
)
def test_wrong_patterns(text: str, message: str) -> None:
    """Name, option, and what is allowed, on one line."""
    with pytest.raises(InputError, match=message) as caught:
        parse_pattern(text)
    assert "\n" not in str(caught.value)


def no_site() -> Iterator[Incident]:
    """It has no parameter at all."""
    yield Incident("rail0", 0.0)


def no_type(site: Site, number=3) -> Iterator[Incident]:
    """An option must have a type."""
    yield Incident("rail0", number)


def odd_type(site: Site, numbers: list[int]) -> Iterator[Incident]:
    """A list is no option."""
    yield Incident("rail0", numbers[0])


def all_options(site: Site, **options: int) -> Iterator[Incident]:
    """Options have names."""
    yield Incident("rail0", options["at"])


def BigName(site: Site) -> Iterator[Incident]:
    """A name has no capitals."""
    yield Incident("rail0", 0.0)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_site, "pattern 'no-site': its first parameter must be the site"),
        (no_type, "parameter number: its type must be int, float, str, bool, Seconds, Fraction or Literal"),
        (odd_type, "parameter numbers: its type must be"),
        (all_options, "parameter options: its type must be"),
        (BigName, "a name is lower-case words with - between"),
    ],
)
def test_functions_that_cannot_be_patterns(function, message: str) -> None:
    """Said where the decorator stands."""
    with pytest.raises(InputError, match=message):
        pattern(function)


def test_seed_is_the_option_of_all_that_draw() -> None:
    """A pattern that draws cannot have another one of that name."""

    def mine(site: Site, seed: int = 0) -> Iterator[Incident]:
        """Own seed."""
        yield Incident("rail0", site.random.random() + seed)

    with pytest.raises(InputError, match="has an option seed already"):
        pattern(draws=True)(mine)


def test_a_seed_in_the_text_wins() -> None:
    """Then the pattern no longer draws, as far as a sweep is concerned."""
    cluster = load_cluster("h100x4")
    free, fixed = parse_pattern("random-nics"), parse_pattern("random-nics:seed=7")
    assert (free.draws, fixed.draws, parse_pattern("nic").draws) == (True, False, False)
    assert fixed.incidents(cluster, 1) == fixed.incidents(cluster, 2) == free.incidents(cluster, 7)
    assert free.incidents(cluster, 1) != free.incidents(cluster, 2)
    assert fixed.text == "random-nics:seed=7"
