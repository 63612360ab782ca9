"""What each built-in pattern does: components, begin and end in seconds, state."""

import math
from collections.abc import Callable

import pytest

from r2cc_simai.cluster.load import load_cluster, preset_names
from r2cc_simai.errors import InputError
from r2cc_simai.failures import guard
from r2cc_simai.failures.compose import timeline_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.registry import built_in, parse_pattern, pattern_named

INF = math.inf
DAY_S = 86_400.0

Outage = tuple[str, float, float, float]


def outages(text: str, cluster: str = "h100x4", seed: int = 0, horizon_s: float = INF) -> list[Outage]:
    """Component, begin, end and state of what a pattern does."""
    found = parse_pattern(text).incidents(load_cluster(cluster), seed, horizon_s)
    return [(one.component, one.begin_s, one.end_s, one.state) for one in found]


@pytest.mark.parametrize(
    ("text", "cluster", "expected"),
    [
        ("nic", "h100x4", [("server0.nic0", 0, INF, 0)]),
        ("nic:server=2,nic=5,at=1,until=3", "h100x4", [("server2.nic5", 1, 3, 0)]),
        ("nic:nic=1,fraction=1/4", "r7525", [("server0.mlx5_2", 0, INF, 0.25)]),
        ("nic:nic=mlx5_3,at=1,for=10ms", "r7525", [("server0.mlx5_3", 1, 1.01, 0)]),
        ("nics", "h100x4", [("server0.nic0", 0, INF, 0), ("server0.nic1", 0, INF, 0)]),
        ("nics:server=1,first=6", "h100x4", [("server1.nic6", 0, INF, 0), ("server1.nic7", 0, INF, 0)]),
        ("servers", "r7525", [("server0.mlx5_0", 0, INF, 0), ("server1.mlx5_0", 0, INF, 0)]),
        ("servers:count=1,first=3,nic=2", "h100x4", [("server3.nic2", 0, INF, 0)]),
        ("cable:nic=3", "h100x4", [("server0.nic3.cable", 0, INF, 0.5)]),
        ("cable:fraction=0,for=2", "h100x4", [("server0.nic0.cable", 0, 2, 0)]),
        ("rail", "hpn-h800", [("rail0", 0, INF, 0)]),
        ("rail:rail=3,at=1min,for=1h", "hpn-h800", [("rail3", 60, 3660, 0)]),
        ("rail:leaf=9", "a100-leaf-spine", [("leaf9", 0, INF, 0)]),
        ("dual-tor:rail=1,until=5", "hpn-h800", [("rail1", 0, 5, 0.5)]),
        ("dual-tor:leaf=1", "a100-leaf-spine", [("leaf1", 0, INF, 0.5)]),
        ("flap:count=2", "r7525", [("server0.mlx5_0", 0, 0.5, 0), ("server0.mlx5_0", 1, 1.5, 0)]),
        ("flap:component=rail1,period=10,duty=0.2,count=1,at=5", "h100x4", [("rail1", 5, 7, 0)]),
        ("flap:duty=1,count=1,fraction=0.5", "h100x4", [("server0.nic0", 0, 1, 0.5)]),
        ("repaired", "h100x4", [("server0.nic0", 0, 60, 0)]),
        ("repaired:component=server1,at=5,for=1h", "h100x4", [("server1", 5, 3605, 0)]),
        ("repaired:at=5,until=6", "h100x4", [("server0.nic0", 5, 6, 0)]),
        ("rolling:count=2", "h100x4", [("rail0", 0, 600, 0), ("rail1", 900, 1500, 0)]),
        ("rolling:over=server,first=2,each=10,gap=0", "h100x4", [("server2", 0, 10, 0), ("server3", 10, 20, 0)]),
        ("rolling:over=leaf,first=15,at=7,each=1", "a100-leaf-spine", [("leaf15", 7, 8, 0)]),
        ("rolling:over=nic,first=8,count=1", "r7525", [("server2.mlx5_3", 0, 600, 0)]),
        ("mooncake-2960", "h100x4", [("server0.nic0.port", 1, 6, 0), ("server0.nic1.port", 11, 16, 0)]),
    ],
)
def test_what_fails(text: str, cluster: str, expected: list[Outage]) -> None:
    """Defaults first, then options."""
    assert outages(text, cluster) == [(name, *(pytest.approx(number) for number in rest)) for name, *rest in expected]


def test_a_flap_to_the_end_of_the_job() -> None:
    """count=0: as often as periods begin before the end."""
    assert [begin for _, begin, _, _ in outages("flap:count=0,period=10,at=5", horizon_s=36)] == [5, 15, 25, 35]
    assert outages("flap:count=0,period=10,at=50", horizon_s=36) == []


def test_a_flap_that_is_always_down_is_one_outage() -> None:
    """duty=1: where one period ends the next begins, so nothing changes but at both ends."""
    cluster = load_cluster("h100x4")
    timeline = timeline_of(parse_pattern("flap:duty=1,count=5").incidents(cluster), cluster, "")
    assert [(event.time_s, event.fraction) for event in timeline.events] == [(0, 0), (5, 1)]


def test_random_nics_are_distinct_and_evenly_drawn() -> None:
    """3 of 32 NICs in 400 draws: each NIC 37.5 times on average, sd sqrt(400 p (1 - p)) = 5.8 with p = 3/32."""
    names = [name for seed in range(400) for name, *_ in outages("random-nics:count=3", seed=seed)]
    for seed in range(5):
        assert len({name for name, *_ in outages("random-nics:count=3", seed=seed)}) == 3
    counts = [names.count(nic.full_name) for nic in load_cluster("h100x4").nics]
    assert sum(counts) == 1200
    assert all(abs(count - 37.5) < 4 * 5.8 for count in counts)
    assert len(outages("random-nics:count=32")) == 32


def test_a_batch_of_optics() -> None:
    """Binomial(size, p) NICs, each once, within the window; 400 draws of 8 with p = 1/4: mean 2, sd sqrt(1.5 / 400)."""
    draws = [outages("optics:p=1/4,at=10,window=100,for=5,fraction=0.5", seed=seed) for seed in range(400)]
    assert abs(sum(map(len, draws)) / 400 - 2) < 4 * math.sqrt(1.5 / 400)
    for drawn in draws:
        assert len({name for name, *_ in drawn}) == len(drawn) <= 8
        assert all(10 <= begin < 110 and end == begin + 5 and state == 0.5 for _, begin, end, state in drawn)
    assert outages("optics:p=0") == []
    assert len(outages("optics:p=1,size=32")) == 32


def test_options_of_a_draw_keep_what_they_do_not_name() -> None:
    """The same NICs at the same times, whatever is left of their rate: scenarios can be compared."""
    assert [one[:2] for one in outages("optics:fraction=0.5")] == [one[:2] for one in outages("optics:for=1h")]


def test_nics_below_a_switch_die_one_by_one() -> None:
    """Each NIC of the component once, in the window."""
    drawn = outages("tor:component=rail2,window=10,at=5")
    assert sorted(name for name, *_ in drawn) == [f"server{i}.nic2.port" for i in range(4)]
    assert all(5 <= begin < 15 for _, begin, _, _ in drawn)
    assert [begin for _, begin, _, _ in drawn] == sorted(begin for _, begin, _, _ in drawn)
    assert outages("tor:p=0") == []
    assert {name.partition(".")[0] for name, *_ in outages("tor:component=server3")} == {"server3"}


@pytest.mark.parametrize(
    ("text", "cluster", "message"),
    [
        ("nic:server=4", "h100x4", "server=4: h100x4 has servers 0 to 3"),
        ("nic:nic=8", "h100x4", "nic=8: h100x4's server0 has NICs 0 to 7 .nic0, nic1"),
        ("nic:at=5,until=5", "h100x4", "until=5 s: not after at=5 s"),
        ("nic:until=5,for=5", "h100x4", "until and for: give one of them"),
        ("nic:for=0", "h100x4", "for=0: a time above 0"),
        ("nic:fraction=1", "h100x4", "fraction=1: that is no failure"),
        ("nics:count=9", "h100x4", "count=9: 1 to 8 is wanted; server0's NICs: 8, first=0"),
        ("nics:count=0", "h100x4", "count=0: 1 to 8"),
        ("nics:first=8", "h100x4", "nic=8"),
        ("servers:count=4,first=1", "h100x4", "count=4: 1 to 3 is wanted; h100x4's servers: 4, first=1"),
        ("rail:rail=8", "h100x4", "rail=8: h100x4 has rails 0 to 7"),
        ("rail:leaf=0", "h100x4", "leaf=0: h100x4 has no leaf switches; write rail="),
        ("rail:leaf=16", "a100-leaf-spine", "leaf=16: a100-leaf-spine has leaves 0 to 15"),
        ("rail:leaf=1,rail=1", "a100-leaf-spine", "rail=1 and leaf=1: give one of them"),
        ("flap:period=0", "h100x4", "period=0"),
        ("flap:duty=0", "h100x4", "duty=0: .* above 0 and at most 1"),
        ("flap:count=-1", "h100x4", "count=-1: at least 1"),
        ("flap:count=0", "h100x4", "count=0: .* needs a job of a known length"),
        ("flap:component=server9", "h100x4", "'server9': h100x4 has no such component"),
        ("optics:size=33", "h100x4", "size=33: 1 to 32 is wanted; h100x4 has 32 NICs"),
        ("tor:component=leaf0", "h100x4", "'leaf0': h100x4 has no such component"),
        ("rolling:over=leaf", "h100x4", "over=leaf: h100x4 has no leaf switches"),
        ("rolling:first=8", "h100x4", "first=8: h100x4 has rails 0 to 7"),
        ("rolling:count=8,first=1", "h100x4", "count=8: 1 to 7"),
        ("rolling:each=0", "h100x4", "each=0"),
        ("random-nics:count=33", "h100x4", "count=33: 1 to 32 is wanted"),
        ("bad-night", "r7525", "r7525's server0 has no NIC 'nic1'"),
    ],
)
def test_what_cannot_be(text: str, cluster: str, message: str) -> None:
    """One line: the pattern, the option, what would be right on this cluster."""
    with pytest.raises(InputError, match=message) as caught:
        outages(text, cluster)
    assert str(caught.value).startswith(f"pattern {text.partition(':')[0]!r}: ")
    assert "\n" not in str(caught.value)


def test_more_incidents_than_any_job_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million, here a thousand; it is never held in memory."""
    monkeypatch.setattr(guard, "MOST_INCIDENTS", 1000)
    assert len(outages("flap:count=1000")) == 1000
    with pytest.raises(InputError, match="pattern 'flap': it yields more than 1000 incidents; does it ever end"):
        outages("flap:count=1000000000")


@pytest.mark.parametrize("cluster", preset_names())
@pytest.mark.parametrize("name", [name for name in built_in() if name not in ("log",)])
def test_defaults_work_on_every_preset(
    name: str, cluster: str, incidents_or_none: Callable[[str, str], tuple[Incident, ...] | None]
) -> None:
    """They fail something, or say which number the cluster has less of; and the same seed fails the same."""
    found = incidents_or_none(name, cluster)
    if found is None:
        assert (name, cluster) in {("nics", "uniform"), ("optics", "uniform")}
        return
    assert found == incidents_or_none(name, cluster)
    if name != "mttf":  # a month may pass without a failure
        assert timeline_of(found, load_cluster(cluster), name).events


@pytest.mark.parametrize("name", [*built_in(), "bad-night", "leaf-upgrade", "mooncake-2960"])
def test_every_pattern_says_what_it_does(name: str) -> None:
    """A line for `failures list`."""
    assert 20 < len(pattern_named(name).summary) <= 120
