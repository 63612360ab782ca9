"""Overlapping `--fail` options: the least rate counts, `=1@t` repairs what had failed before it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.component import nics_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.parse import incidents_of, parse_failures
from r2cc_simai.failures.timeline import Event

H100 = load_cluster("h100x4")
COMPONENTS = ["server0.nic0", "server0.nic[0-3]", "server0", "rail0"]
NICS = {component: set(nics_of(H100, component)) for component in COMPONENTS}


def changes(*texts: str, nic: int = 0) -> list[tuple[float, float]]:
    """Time and fraction of the events of a NIC."""
    return [(event.time_s, event.fraction) for event in parse_failures(texts, H100).events if event.nic == nic]


def test_the_repair_of_a_rail_leaves_a_nic_below_it_down() -> None:
    """rail0 is back at 5 s, server0.nic0 at 10 s; the rail's other NICs at 5 s."""
    texts = ("rail0@0..5", "server0.nic0@2..10")
    assert changes(*texts) == [(0, 0), (10, 1)]
    assert changes(*texts, nic=8) == [(0, 0), (5, 1)]


def test_a_milder_failure_does_not_mend_a_worse_one() -> None:
    """Down for good, half its rate from 5 s on: it stays down."""
    assert changes("server0.nic0@0", "server0.nic0=0.5@5") == [(0, 0)]
    assert changes("server0.nic0@0..5", "server0.nic0=0.5@5") == [(0, 0), (5, 0.5)]


def test_an_explicit_repair_mends_all_that_was_down() -> None:
    """The NIC is up at 3 s although rail and server are not; what comes later is a new failure."""
    texts = ("rail0@0", "server0@1..9", "server0.nic0=1@3", "server0.nic0=0.5@6..7")
    assert changes(*texts) == [(0, 0), (3, 1), (6, 0.5), (7, 1)]
    assert changes(*texts, nic=8) == [(0, 0)]
    assert changes(*texts, nic=1) == [(1, 0), (9, 1)]


def test_a_repair_without_a_failure_changes_nothing() -> None:
    """No event where nothing changes."""
    assert parse_failures(["server0=1@3"], H100).events == ()


def test_at_one_time_the_last_one_written_counts() -> None:
    """Down then repaired is up, repaired then down is down."""
    assert changes("server0.nic0@1", "server0.nic0=1@1") == []
    assert changes("server0.nic0=1@1", "server0.nic0@1") == [(1, 0)]
    assert changes("server0.nic0@0", "server0.nic0=1@1", "server0.nic0@1") == [(0, 0)]


def test_a_repair_by_time_of_a_failure_by_bytes() -> None:
    """When the failure comes nobody knows beforehand, so its repair is an event of its own."""
    timeline = parse_failures(["server0.nic0@bytes:5", "server0.nic0=1@2"], H100)
    assert timeline.events == (Event(0, 1.0, time_s=2.0), Event(0, 0.0, at_bytes=5.0))


def test_a_repair_has_no_end() -> None:
    """`=1@1..2` says nothing that `=1@1` does not."""
    with pytest.raises(InputError, match=r"'server0.nic0=1@1\.\.2': a repair has no end"):
        parse_failures(["server0.nic0=1@1..2"], H100)


def text_of(entry: tuple[str, int, int | None, float]) -> str:
    component, begin, end, fraction = entry
    return f"{component}={fraction:g}@{begin}" + ("" if end is None else f"..{end}")


@st.composite
def an_entry(draw: st.DrawFn) -> tuple[str, int, int | None, float]:
    """Component, begin, end, fraction; a fraction of 1 is a repair."""
    begin, fraction = draw(st.integers(0, 6)), draw(st.sampled_from([0.0, 0.5, 1.0]))
    end = None if fraction == 1 else draw(st.none() | st.integers(begin + 1, 8))
    return draw(st.sampled_from(COMPONENTS)), begin, end, fraction


@given(st.lists(an_entry(), max_size=7))
def test_repairs_by_brute_force(entries: list[tuple[str, int, int | None, float]]) -> None:
    """f(t) = min of the failures with begin <= t < end, but for those that a repair up to t follows."""
    timeline = parse_failures([text_of(entry) for entry in entries], H100)
    for half in range(18):
        time_s = half / 2
        expected = []
        for nic in range(len(H100.nics)):
            own = [(b, place, e, f) for place, (c, b, e, f) in enumerate(entries) if nic in NICS[c]]
            repairs = [(b, place) for b, place, _, f in own if f == 1 and b <= time_s]
            states = [
                f
                for b, place, e, f in own
                if f < 1
                and b <= time_s < (math.inf if e is None else e)
                and not any((b, place) < repair for repair in repairs)
            ]
            expected.append(min(states, default=1.0))
        assert timeline.fractions(len(H100.nics), time_s).tolist() == expected


def test_incidents_before_composition() -> None:
    """In order of begin, ended by repairs; a component that is repaired in part goes on NIC by NIC."""
    assert incidents_of(["server0.nic1@3..4", "rail0@1", "rail0=1@2"], H100) == (
        Incident("rail0", 1, 2, cause="rail"),
        Incident("server0.nic1", 3, 4),
    )
    split = incidents_of(["server0.nic[0-1]@1", "server0.nic1=1@2"], H100)
    assert [(one.component, one.end_s) for one in split] == [("server0.nic0", math.inf), ("server0.nic1", 2)]
    ports = incidents_of(["rail0@1", "server1=1@2"], H100)
    assert [one.component for one in ports] == [f"server{i}.nic0.port" for i in range(4)]
    assert {one.cause for one in ports} == {"rail"}


def test_a_failure_by_bytes_is_no_incident() -> None:
    """Only a simulation knows when it happens."""
    with pytest.raises(InputError, match=r"--fail 'server0\.nic0@bytes:5': a failure by bytes has no time"):
        incidents_of(["server0.nic0@bytes:5"], H100)


def test_none_is_no_failure() -> None:
    """As scenario files write it."""
    assert parse_failures(["none"], H100) == parse_failures([], H100)
