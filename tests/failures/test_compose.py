"""A NIC is at the least state of all incidents that cover it: f(t) = min {state_i : begin_i <= t < end_i}, else 1."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.component import component_of, nics_of
from r2cc_simai.failures.compose import timeline_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.timeline import Component, Event

H100 = load_cluster("h100x4")
COMPONENTS = ["server0.nic0", "server0.nic0.cable", "server0.nic[0-3]", "server0", "rail0", "rail1", "server[0,2].nic1"]
NICS = {component: set(nics_of(H100, component_of(component)[0])) for component in COMPONENTS}


@st.composite
def an_incident(draw: st.DrawFn) -> Incident:
    """Whole seconds, so that incidents often begin and end at one time."""
    begin = draw(st.integers(0, 9))
    end = draw(st.integers(begin + 1, 10) | st.just(math.inf))
    return Incident(draw(st.sampled_from(COMPONENTS)), begin, end, draw(st.sampled_from([0.0, 0.25, 0.5])))


def state(incidents: list[Incident], nic: int, time_s: float) -> float:
    """The definition, by brute force."""
    covering = [one.state for one in incidents if one.begin_s <= time_s < one.end_s and nic in NICS[one.component]]
    return min(covering, default=1.0)


@given(st.lists(an_incident(), max_size=8))
def test_the_least_state_of_all_that_cover_a_nic(incidents: list[Incident]) -> None:
    """At every time of a change, and between them."""
    timeline = timeline_of(incidents, H100, "drawn")
    for half in range(22):
        got = timeline.fractions(len(H100.nics), half / 2)
        assert got.tolist() == [state(incidents, nic, half / 2) for nic in range(len(H100.nics))]


@given(st.lists(an_incident(), max_size=8))
def test_an_event_is_a_change(incidents: list[Incident]) -> None:
    """In order of time; one a NIC and time; each differs from the state before, which is 1 at first."""
    events = timeline_of(incidents, H100, "drawn").events
    assert all(one.time_s <= other.time_s for one, other in pairwise(events))
    for nic in {event.nic for event in events}:
        own = [event for event in events if event.nic == nic]
        assert all(one.time_s < other.time_s for one, other in pairwise(own))
        assert all(one.fraction != other.fraction for one, other in pairwise([Event(nic, 1.0), *own]))


@given(st.lists(an_incident(), max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_incidents_changes_no_state(incidents: list[Incident], random) -> None:
    """A minimum knows no order."""
    mixed = list(incidents)
    random.shuffle(mixed)
    one, other = timeline_of(incidents, H100, ""), timeline_of(mixed, H100, "")
    for half in range(22):
        assert one.fractions(len(H100.nics), half / 2).tolist() == other.fractions(len(H100.nics), half / 2).tolist()


def events(*incidents: Incident) -> list[tuple[float, float, Component]]:
    """Time, fraction and part of the events of server0.nic0."""
    return [(e.time_s, e.fraction, e.component) for e in timeline_of(incidents, H100, "").events if e.nic == 0]


def test_a_repair_does_not_end_anothers_outage() -> None:
    """The rail is back at 5 s, the NIC below it at 10 s."""
    assert events(Incident("rail0", 0, 5), Incident("server0.nic0", 2, 10)) == [
        (0, 0, Component.PORT),
        (10, 1, Component.NIC),
    ]


def test_nested_fractions() -> None:
    """Half, a quarter within it, nothing within that: each end gives back what the next outer one leaves."""
    nested = [Incident("server0.nic0", 0, 9, 0.5), Incident("rail0", 2, 7, 0.25), Incident("server0.nic0.cable", 3, 4)]
    assert events(*nested) == [
        (0, 0.5, Component.NIC),
        (2, 0.25, Component.PORT),
        (3, 0, Component.CABLE),
        (4, 0.25, Component.CABLE),
        (7, 0.5, Component.PORT),
        (9, 1, Component.NIC),
    ]


def test_one_that_follows_another_at_once() -> None:
    """Down until 5 s and down from 5 s on is down: no event at 5 s. A milder one that follows is one event."""
    assert events(Incident("server0.nic0", 1, 5), Incident("rail0", 5, 8)) == [
        (1, 0, Component.NIC),
        (8, 1, Component.PORT),
    ]
    assert events(Incident("server0.nic0", 1, 5), Incident("rail0", 5, 8, 0.5))[1] == (5, 0.5, Component.NIC)


def test_events_of_one_time_keep_the_order_of_incidents() -> None:
    """So that what a user writes first happens first."""
    both = [Incident("server1.nic2", 1), Incident("server0.nic[3,1]", 1)]
    assert [event.nic for event in timeline_of(both, H100, "").events] == [10, 3, 1]


def test_components_that_the_cluster_lacks() -> None:
    """The name, and what there is."""
    with pytest.raises(InputError, match="has no such component"):
        timeline_of([Incident("rail9", 0)], H100, "")
