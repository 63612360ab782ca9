"""The picture of failures over time: what is drawn, what is left out, and how times are told."""

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.registry import built_in, parse_pattern
from r2cc_simai.results.report import palette
from r2cc_simai.results.report.failure_lanes import Lane, bars_of, duration, end_of, groups_of, told, unit_of
from r2cc_simai.results.report.failure_picture import bandwidth_lost, failure_svg, write_failure_picture

H100 = load_cluster("h100x4")
DAY = 86_400.0


def texts(svg: str) -> list[str]:
    """All texts of an SVG document, which must be well-formed."""
    return [
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")
    ]


@pytest.mark.parametrize(
    ("pattern", "cluster", "wanted"),
    [
        ("nic:server=1,nic=3,at=1s", "h100x4", {"server1.nic3", "down from 1 s on", "time (s)"}),
        ("nics:count=2,at=1s,for=2s", "h100x4", {"server0.nic0", "server0.nic1", "down for 2 s"}),
        ("rail:rail=2", "hpn-h800", {"rail2", "down from the start"}),
        ("dual-tor:leaf=3,at=1s", "a100-leaf-spine", {"leaf3", "50% left from 1 s on", "50%"}),
        ("cable:fraction=0.25,at=2h,for=30min", "h100x4", {"server0.nic0.cable", "25% left for 30 min", "time (h)"}),
        ("flap:component=server0.nic3,period=10ms,duty=0.3,count=1000", "h100x4", {"server0.nic3", "1000 × 3 ms"}),
        ("rolling:over=rail", "hpn-h800", {"maintenance", "rail7", "down for 10 min", "time (min)"}),
        ("mttf:days=30,scale=50,seed=2", "h100x4", {"nic", "switch-or-cable", "down for 4 h", "time (days)"}),
    ],
)
def test_patterns(pattern: str, cluster: str, wanted: set[str]) -> None:
    """Components, causes, what happens in words, and an axis in a unit that fits."""
    one = load_cluster(cluster)
    svg = failure_svg(parse_pattern(pattern).incidents(one), one, pattern)
    assert wanted | {pattern} <= set(texts(svg))


@pytest.mark.parametrize("name", [name for name in built_in() if name != "log"])
def test_every_built_in_pattern_has_a_picture(name: str) -> None:
    """With its default options, on the fabric that has every kind of component, in a job of a day."""
    cluster = load_cluster("a100-leaf-spine")
    incidents = parse_pattern(name).incidents(cluster, 1, DAY)
    shown = set(texts(failure_svg(incidents, cluster, name, DAY)))
    assert {lane.component for group in groups_of(incidents) for lane in group.lanes} <= shown
    assert "time (h)" in shown


def test_colours_tell_down_from_slower() -> None:
    """Red bars are down, amber ones slower; the legend has what occurs, and each colour has a dark form."""
    down, slower = Incident("server0.nic0", 1.0, 2.0), Incident("server0.nic1", 1.0, 2.0, 0.5)
    for incidents in ([down], [slower], [down, slower]):
        svg = failure_svg(incidents, H100, "title")
        assert (palette.DOWN in svg) == ("down" in texts(svg)) == (down in incidents)
        assert (palette.SLOWER in svg) == ("slower (rate left)" in texts(svg)) == (slower in incidents)
    assert {palette.DOWN, palette.SLOWER, palette.WORKS} <= set(palette.DARK)


def test_the_same_failures_give_the_same_bytes() -> None:
    """Whatever was drawn before; no date."""
    incidents = parse_pattern("mttf:days=30,scale=50").incidents(H100)
    first = failure_svg(incidents, H100, "title")
    failure_svg([], H100, "another")
    assert failure_svg(incidents, H100, "title") == first
    assert "date" not in first


def test_too_many_components_are_counted() -> None:
    """At most 28 lanes, shared by the causes so that a rare one is seen; `and N more` for the others of each."""
    many = [Incident(f"server{i // 8}.nic{i % 8}", float(i), cause="nic") for i in range(32)]
    groups = groups_of([*many, Incident("rail0", 50.0, cause="switch")])
    assert [(group.cause, len(group.lanes), group.left_out) for group in groups] == [("nic", 27, 5), ("switch", 1, 0)]
    shown = texts(failure_svg([*many, Incident("rail0", 50.0, cause="switch")], H100, "title"))
    assert "and 5 more" in shown
    assert "rail0" in shown


def test_a_title_or_cause_is_plain_text() -> None:
    """Dollars, brackets and ampersands of a user's cause are not markup, any script is welcome; a long title is cut."""
    svg = failure_svg([Incident("server0.nic0", 1.0, 2.0, cause="<b> & $x^2$ 光模块")], H100, "long " * 100)
    shown = texts(svg)
    assert "<b> & $x^2$ 光模块" in shown
    assert any(text.endswith("…") and len(text) < 120 for text in shown)


def test_nothing_fails() -> None:
    """A picture that says so."""
    assert "nothing fails" in texts(failure_svg([], H100, "none"))


@given(
    st.lists(st.tuples(st.floats(0, 99), st.floats(0.001, 30), st.sampled_from([0.0, 0.5])), min_size=1, max_size=300)
)
def test_bars_cover_what_they_stand_for(raw: list[tuple[float, float, float]]) -> None:
    """Every incident lies in a bar that is as low as it; a bar knows how many it stands for, and stays in the axis."""
    incidents = tuple(sorted((Incident("x", b, b + d, s) for b, d, s in raw), key=lambda one: one.begin_s))
    bars = bars_of(Lane("x", incidents), 100.0)
    assert sum(bar.count for bar in bars) == len(incidents)
    assert all(0 < bar.density <= 1 and 0 <= bar.begin_s < bar.end_s <= 100 for bar in bars)
    for one in incidents:
        assert any(
            bar.begin_s <= one.begin_s and min(one.end_s, 100.0) <= bar.end_s and bar.state <= one.state for bar in bars
        )


def test_a_dense_flap_is_one_pale_bar() -> None:
    """1,000 outages with duty 0.3 at a pitch that nobody can see: one bar of density 0.3."""
    flaps = tuple(Incident("server0.nic3", 0.01 * k, 0.01 * k + 0.003) for k in range(1000))
    (bar,) = bars_of(Lane("server0.nic3", flaps), 10.0)
    assert (bar.count, round(bar.density, 2)) == (1000, 0.3)


def test_the_loss_below_is_that_of_the_timeline() -> None:
    """One of 32 equal NICs down is 3.125 % of the bandwidth; a NIC at half is 1.5625 %; overlaps count once."""
    incidents = [Incident("server0.nic0", 1.0, 5.0), Incident("rail0", 2.0, 4.0, 0.5)]
    times, lost = bandwidth_lost(incidents, H100)
    assert times.tolist() == [0, 1, 2, 4, 5]
    assert np.allclose(lost, [0, 3.125, 3.125 + 3 * 1.5625, 3.125, 0])


@pytest.mark.parametrize(
    ("incidents", "horizon_s", "end_s"),
    [
        ([Incident("x", 0.0)], None, 0.0),
        ([Incident("x", 2.0)], None, 2.3),
        ([Incident("x", 2.0, 10.0)], None, 10.4),
        ([Incident("x", 2.0, 10.0)], 5.0, 5.0),
        ([Incident("x", 2.0, 10.0)], math.inf, 10.4),
        ([], None, 0.0),
    ],
)
def test_where_the_axis_ends(incidents: list[Incident], horizon_s: float | None, end_s: float) -> None:
    """At the end of the job, or a little behind the last change."""
    assert end_of(incidents, horizon_s) == pytest.approx(end_s)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2e-5, "20 µs"), (0.003, "3 ms"), (1, "1 s"), (60, "1 min"), (3600, "1 h"), (DAY, "24 h"), (30 * DAY, "30 days")],
)
def test_how_a_duration_is_told(seconds: float, text: str) -> None:
    """Three digits, the largest unit of which there is one (two days)."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("span_s", "unit"),
    [(1e-4, "µs"), (0.5, "ms"), (90, "s"), (600, "min"), (7200, "h"), (2 * DAY, "h"), (4 * DAY, "days")],
)
def test_the_unit_of_an_axis(span_s: float, unit: str) -> None:
    """Two or three of a unit make an axis."""
    assert unit_of(span_s)[1] == unit


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ([(0.0, 2.0, 0.0), (2.0, 3.0, 0.5)], "down, then 50% left"),
        ([(0.0, 2.0, 0.0), (5.0, 9.0, 0.0)], "2 times, 6 s in all"),
        ([(0.0, 2.0, 0.0), (5.0, math.inf, 0.0)], "2 times, the last for good"),
    ],
)
def test_what_happens_in_words(times: list[tuple[float, float, float]], text: str) -> None:
    """Several outages of a component."""
    assert told(Lane("x", tuple(Incident("x", b, e, s) for b, e, s in times))) == text


def test_files(tmp_path: Path) -> None:
    """`.svg` and `.png` by the file's name; another ending, or a folder that is not there, is one line."""
    incidents = [Incident("server0.nic0", 1.0, 2.0)]
    for name, head in (("a.svg", b"<?xml"), ("a.PNG", b"\x89PNG")):
        write_failure_picture(tmp_path / name, incidents, H100, "title")
        assert (tmp_path / name).read_bytes().startswith(head)
    with pytest.raises(InputError, match=r"a picture's name ends in \.svg or \.png"):
        write_failure_picture(tmp_path / "a.pdf", incidents, H100, "title")
    with pytest.raises(InputError, match="No such file"):
        write_failure_picture(tmp_path / "none" / "a.svg", incidents, H100, "title")
