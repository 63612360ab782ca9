"""The language of cuts, and what planners and the simulation are told of them."""

import pytest

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Component
from r2cc_simai.lab.cuts import Cut, Kind, known_fractions, parse_script, timeline_of
from r2cc_simai.lab.spec import load_lab


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    name, spec = load_lab("ci")
    return spec.cluster(name)


def one(text: str, cluster: Cluster) -> Cut:
    (cut,) = parse_script([text], cluster)
    return cut


def kinds(cut: Cut) -> list[Kind]:
    return [action.kind for action in cut.actions]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("server1.nic1@0.5", Kind.LINK_DOWN),
        ("server1.nic1=link-down@500ms", Kind.LINK_DOWN),
        ("server1.nic1=port-down@0.5", Kind.PORT_DOWN),
        ("server1.nic1=silent@0.5", Kind.SILENT),
        ("server1.nic1=rate:0.25@0.5", Kind.RATE),
    ],
)
def test_kinds_at_a_time(text: str, kind: Kind, cluster: Cluster) -> None:
    cut = one(text, cluster)
    assert (cut.nic, kinds(cut), cut.at_s, cut.at_bytes) == (4, [kind], 0.5, None)
    assert cut.lasting
    assert not cut.before


def test_cut_at_a_byte_count_is_never_there_before(cluster: Cluster) -> None:
    cut = one("server1.nic1=silent@bytes:5M", cluster)
    assert (cut.at_bytes, cut.before) == (5 * 2**20, False)


def test_time_zero_is_known_from_the_start(cluster: Cluster) -> None:
    cuts = parse_script(["server1.nic1@0", "server0.nic2=rate:0.5@0", "server2.nic0@0.1"], cluster)
    known = known_fractions(cuts, len(cluster.nics))
    assert {nic: left for nic, left in enumerate(known) if left < 1} == {4: 0.0, 2: 0.5}


def test_repair_by_time_and_by_duration(cluster: Cluster) -> None:
    """`..until` counts from the collective's start, `..+` from the cut."""
    for text in ("server1.nic1@0.5..1.25", "server1.nic1@0.5..+0.75"):
        cut = one(text, cluster)
        assert kinds(cut) == [Kind.LINK_DOWN, Kind.UP]
        assert cut.actions[1].after_s == pytest.approx(0.75)
        assert not cut.lasting


def test_flap_is_down_for_the_rest_of_each_period(cluster: Cluster) -> None:
    """flap:PERIOD,DUTY,COUNT: down at k PERIOD, up at k PERIOD + (1 - DUTY) PERIOD, for k < COUNT."""
    cut = one("server1.nic1=flap:0.4,0.25,3@0.1", cluster)
    assert kinds(cut) == [Kind.LINK_DOWN, Kind.UP] * 3
    assert [action.after_s for action in cut.actions] == pytest.approx([0.0, 0.3, 0.4, 0.7, 0.8, 1.1])


def test_a_range_cuts_every_nic_that_it_names(cluster: Cluster) -> None:
    assert [cut.nic for cut in parse_script(["server[0,2].nic1@0.5", "rail2@1"], cluster)] == [1, 7, 2, 5, 8]


def test_simulation_hears_of_the_part_that_fails_and_when_it_really_did(cluster: Cluster) -> None:
    """A silent failure takes down no link: for the simulated detection it is one of the path, a port's is the
    cable's; the lab's own time of the cut replaces the byte count."""
    cuts = parse_script(["server1.nic1=silent@bytes:5M", "server0.nic0=port-down@0.2..+0.3", "server2.nic0@0"], cluster)
    timeline = timeline_of(cuts, {0: 0.42, 1: 0.21}, "p")
    found = [(event.nic, event.fraction, event.component, event.at_bytes) for event in timeline.events]
    assert found == [
        (6, 0.0, Component.NIC, None),
        (0, 0.0, Component.CABLE, None),
        (4, 0.0, Component.PATH, None),
        (0, 1.0, Component.NIC, None),
    ]
    assert [event.time_s for event in timeline.events] == pytest.approx([0.0, 0.21, 0.42, 0.51])


def test_simulation_counts_bytes_itself_where_no_time_was_measured(cluster: Cluster) -> None:
    (event,) = timeline_of(parse_script(["server1.nic1@bytes:5M"], cluster), {}, "p").events
    assert event.at_bytes == 5 * 2**20


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("server1.nic1", "write component"),
        ("server1.nic1=silently@0", "no kind 'silently'"),
        ("server1.nic1=silent:2@0", "no kind 'silent:2'"),
        ("server1.nic1=rate:0@0", "FRACTION '0' is no number from 0.01 to 1"),
        ("server1.nic1=flap:1,0.5@0", "write flap:PERIOD,DUTY,COUNT"),
        ("server1.nic1=flap:1,1,3@0", "DUTY '1' must lie between 0 and 1"),
        ("server1.nic1=flap:1,0.5,0@0", "COUNT '0' is none from 1 to 1000"),
        ("server1.nic1=flap:1,0.5,2@0..3", "a flap has an end of its own"),
        ("server1.nic1@1..0.5", "it ends at 0.5, before it begins"),
        ("server1.nic1@bytes:1M..2", r"write ..+2"),
        ("server1.nic1@bytes:0", "a number of bytes above 0"),
        ("server1.nic1@-1", "write 0 for what is there from the start"),
        ("server1.nic7@0", "has no NIC 'nic7'"),
    ],
)
def test_bad_cut_is_one_line(text: str, told: str, cluster: Cluster) -> None:
    with pytest.raises(InputError) as error:
        parse_script([text], cluster)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
