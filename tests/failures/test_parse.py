"""`--fail component[range][=fraction]@time[..until]`, and the NICs that a component stands for."""

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.component import nics_of
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.timeline import Component, Event, Timeline, sorted_timeline

R7525 = load_cluster("r7525")
H100 = load_cluster("h100x4")


@pytest.mark.parametrize(
    ("name", "nics"),
    [
        ("server0.nic3", [3]),
        ("server2.nic0", [16]),
        ("server0.nic[0-3]", [0, 1, 2, 3]),
        ("server0.nic[0,2]", [0, 2]),
        ("server0.nic[0-1,7]", [0, 1, 7]),
        ("server0.nic[2-2]", [2]),
        ("server[0,2].nic1", [1, 17]),
        ("server[0-1].nic[6-7]", [6, 7, 14, 15]),
        ("server0.nic[1,1]", [1]),
        ("server1", list(range(8, 16))),
        ("rail2", [2, 10, 18, 26]),
        ("rail[0-1]", [0, 8, 16, 24, 1, 9, 17, 25]),
    ],
)
def test_components_and_ranges(name: str, nics: list[int]) -> None:
    """NIC numbers, each once, in the order written."""
    assert nics_of(H100, name) == nics


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("server0.nic8", "server0 has no NIC 'nic8' .*nic0, nic1"),
        ("server0.mlx5_0", "server0 has no NIC 'mlx5_0'"),
        ("server4.nic0", "no such component; write serverN.NIC, serverN .0 to 3. or railN"),
        ("server4", "no such component"),
        ("rail8", "no such component"),
        ("switch0", "no such component"),
        ("nic0", "no such component"),
        ("", "no such component"),
        ("server0.nic[3-1]", "is no range"),
        ("server0.nic[-1]", "is no range"),
        ("server0.nic[1-]", "is no range"),
        ("server0.nic[1,,2]", "is no range"),
        ("server0.nic[1-2-3]", "is no range"),
        ("server0.nic[0-99999999999]", "more components than any cluster has"),
        ("server[0-9999].nic[0-9]", "has no NIC 'nic8'"),
    ],
)
def test_components_that_do_not_exist(name: str, message: str) -> None:
    """Named, with what there is."""
    with pytest.raises(InputError, match=message):
        nics_of(H100, name)


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("server0.mlx5_2@0.528", [Event(1, 0.0, time_s=0.528)]),
        ("server0.mlx5_2@0", [Event(1, 0.0)]),
        ("server1.mlx5_0=0.5@1.5..2.0", [Event(3, 0.5, time_s=1.5), Event(3, 1.0, time_s=2.0)]),
        ("server1.mlx5_0=1/4@970ms", [Event(3, 0.25, time_s=0.97)]),
        ("server0.mlx5_3@48us", [Event(2, 0.0, time_s=48e-6)]),
        ("server0.mlx5_2@bytes:630194176", [Event(1, 0.0, at_bytes=630194176.0)]),
        ("server0.mlx5_2=0.5@bytes:601MiB", [Event(1, 0.5, at_bytes=601 * 2.0**20)]),
        ("server0.mlx5_[2-3]@1", [Event(1, 0.0, time_s=1.0), Event(2, 0.0, time_s=1.0)]),
        (" server0.mlx5_2@1 ", [Event(1, 0.0, time_s=1.0)]),
    ],
)
def test_what_a_user_writes(text: str, events: list[Event]) -> None:
    """Fractions are what is left of the rate, 0 where none is written; `..` repairs."""
    timeline = parse_failures([text], R7525)
    assert len(timeline.events) == len(events)
    for got, wanted in zip(timeline.events, events, strict=True):
        assert (got.nic, got.fraction, got.at_bytes) == (wanted.nic, wanted.fraction, wanted.at_bytes)
        assert got.time_s == pytest.approx(wanted.time_s)
    assert timeline.pattern == text.strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server0.mlx5_2", "write component"),
        ("server0.mlx5_2@", "write component"),
        ("@0.5", "write component"),
        ("server0.mlx5_2@soon", "'soon': not a time"),
        ("server0.mlx5_2@1..0.5", "ends at 0.5, before it begins"),
        ("server0.mlx5_2@1..1", "before it begins"),
        ("server0.mlx5_2=2@1", "no fraction"),
        ("server0.mlx5_2=-0.5@1", "no fraction"),
        ("server0.mlx5_2=half@1", "no fraction"),
        ("server0.mlx5_2=1/0@1", "no fraction"),
        ("server0.mlx5_2=nan@1", "no fraction"),
        ("server0.mlx5_2@bytes:many", "not a size"),
        ("server0.mlx5_2@bytes:1..2", "failure by bytes has no end"),
        ("server0.mlx5_9@1", "has no NIC 'mlx5_9' .mlx5_0, mlx5_2, mlx5_3."),
    ],
)
def test_a_wrong_failure_is_named(text: str, message: str) -> None:
    """`--fail 'TEXT': what is wrong`, one line."""
    with pytest.raises(InputError, match=message) as caught:
        parse_failures([text], R7525)
    assert str(caught.value).startswith(f"--fail {text!r}: ")
    assert "\n" not in str(caught.value)


def test_several_failures_make_one_timeline() -> None:
    """In order of time whatever the order written; those by bytes last; no failure is the pattern `none`."""
    texts = ["server0.mlx5_2@bytes:5", "server1.mlx5_0@2", "server0.mlx5_0@1..3"]
    timeline = parse_failures(texts, R7525)
    assert [(e.nic, e.time_s) for e in timeline.events if e.at_bytes is None] == [(0, 1.0), (3, 2.0), (0, 3.0)]
    assert timeline.events[-1].at_bytes == 5
    assert timeline.pattern == " ".join(texts)
    assert parse_failures([], R7525) == Timeline((), "none")


def test_equal_times_keep_the_order_given() -> None:
    """Down and up at one instant: the last one counts."""
    timeline = sorted_timeline([Event(0, 0.0, time_s=1.0), Event(0, 1.0, time_s=1.0)], "test")
    assert [e.fraction for e in timeline.events] == [0.0, 1.0]


def test_what_is_known_when() -> None:
    """A failure is known `delay` after it happened, a repair at once, what was there at time 0 from the start."""
    timeline = sorted_timeline([Event(0, 0.0), Event(1, 0.5, time_s=1.0), Event(1, 1.0, time_s=3.0)], "test")

    def known(time_s: float) -> list[float]:
        state: list[float] = timeline.fractions(3, time_s, delay_s=0.5).tolist()
        return state

    assert known(0.0) == [0, 1, 1]
    assert known(1.4) == [0, 1, 1]
    assert known(1.5) == [0, 0.5, 1]
    assert known(3.0) == [0, 1, 1]
    assert np.array_equal(timeline.fractions(3, 1.0), [0, 0.5, 1])


def test_a_flap_shorter_than_its_detection_is_never_known() -> None:
    """Down 1.0..1.2 s, detection 0.5 s."""
    timeline = sorted_timeline([Event(0, 0.0, time_s=1.0), Event(0, 1.0, time_s=1.2)], "test")
    assert [timeline.fractions(1, t, 0.5)[0] for t in (1.1, 1.3, 1.6, 2.0)] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("text", "component"),
    [
        ("server0.mlx5_2@1", Component.NIC),
        ("server0.mlx5_2.port@1", Component.PORT),
        ("server0.mlx5_2.cable=0.5@1..2", Component.CABLE),
        ("server[0-1].mlx5_2.path@1", Component.PATH),
        ("server0@1", Component.PORT),  # its ToR switch
        ("rail1@1", Component.PORT),
    ],
)
def test_the_part_that_fails(text: str, component: Component) -> None:
    """It stands behind the NIC; a server or a rail stands for its switch. The NICs are the same."""
    cluster = load_cluster("r7525")
    events = parse_failures([text], cluster).events
    assert {event.component for event in events} == {component}
    assert all(cluster.nics[event.nic].name == "mlx5_2" for event in events if "mlx5_2" in text)


def test_a_part_that_no_nic_has() -> None:
    """`server0.mlx5_2.fan` is no component."""
    with pytest.raises(InputError, match=r"no NIC 'mlx5_2\.fan'"):
        parse_failures(["server0.mlx5_2.fan@1"], load_cluster("r7525"))
