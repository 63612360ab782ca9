"""The cluster drawn with its failures: every NIC of a small one, the telling servers of a large one."""

from xml.etree import ElementTree

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import ClusterSpec
from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.registry import parse_pattern
from r2cc_simai.results.report import palette
from r2cc_simai.results.report.cluster_picture import cluster_svg
from r2cc_simai.results.report.cluster_states import servers_to_show, worst_states


def texts(svg: str) -> list[str]:
    """All texts of an SVG document, which must be well-formed."""
    return ["".join(n.itertext()).strip() for n in ElementTree.fromstring(svg).iter() if n.tag.endswith("}text")]


def squares(svg: str, color: str) -> int:
    """How many shapes are filled with a colour."""
    return svg.count(f"fill: {color}")


@pytest.mark.parametrize(
    ("cluster", "incidents", "down", "slower", "wanted"),
    [
        ("h100", [Incident("server0.nic3", 1.0)], 1, 0, {"one switch for all NICs", "server1", "nic3 down", "8 GPUs"}),
        ("r7525", [Incident("server1.mlx5_2", 0.0, 5.0, 0.5)], 0, 1, {"mlx5_2", "mlx5_2 50% left"}),
        ("h100", [Incident("server0", 0.0)], 8, 0, {"nic0 down", "nic1 down", "and 6 more NICs"}),
        ("a100-leaf-spine", [Incident("leaf3", 0.0, 9.0, 0.5)], 0, 5, {"spine", "leaf3", "leaf15", "nic3 50% left"}),
    ],
)
def test_small_clusters(cluster: str, incidents: list[Incident], down: int, slower: int, wanted: set[str]) -> None:
    """A square for each NIC in the colour of its worst state, with its switch; what is wrong stands in words."""
    one = load_cluster(cluster)
    svg = cluster_svg(one, incidents, "title")
    assert wanted | {"title"} <= set(texts(svg))
    assert squares(svg, palette.DOWN) == down
    assert squares(svg, palette.SLOWER) == slower
    hurt = int((worst_states(incidents, one).nic < 1).sum())
    assert squares(svg, palette.WORKS) == len(one.nics) - hurt


def test_rails_have_a_line_each() -> None:
    """A switch per rail: its name and, where it fails, its colour, besides the NICs that are drawn."""
    svg = cluster_svg(load_cluster("hpn-h800"), [Incident("rail2", 0.0)], "title")
    assert {f"rail{rail}" for rail in range(8)} <= set(texts(svg))
    assert squares(svg, palette.DOWN) >= 1 + 8


def test_the_worst_state_of_all_times_counts() -> None:
    """Half of the rate first and down later is down; a switch leaves its mark on its NICs and on itself."""
    one = load_cluster("a100-leaf-spine")
    states = worst_states(
        [
            Incident("server0.nic1", 0.0, 1.0, 0.5),
            Incident("server0.nic1.cable", 5.0, 6.0),
            Incident("rail0", 2.0, 3.0, 0.25),
        ],
        one,
    )
    assert states.nic[1] == 0
    assert set(states.nic[[n.index for n in one.nics if n.rail == 0]]) == {0.25}
    assert (states.rail, states.leaf, states.server) == ({0: 0.25}, {}, {})
    assert states.lost(one)[0] == pytest.approx((1 + 0.75) / 8)
    assert states.alone.tolist() == [2, 0, 0, 0, 0, 0, 0, 0]


def test_of_many_servers_those_that_failures_hit() -> None:
    """Own failures before those of a shared switch, much lost before little; at most eight, in order of number."""
    one = load_cluster("h100x2048")
    own = [Incident(f"server{s}.nic1", 0.0) for s in (1500, 7, 300)]
    assert servers_to_show(worst_states(own, one), one) == [7, 300, 1500]
    assert servers_to_show(worst_states([*own, Incident("rail2", 0.0)], one), one) == [0, 1, 2, 3, 4, 7, 300, 1500]
    assert servers_to_show(worst_states([], one), one) == [0]
    hurt = [Incident(f"server{s}.nic[0-{s % 8}]", 0.0) for s in range(100, 164)]
    assert servers_to_show(worst_states(hurt, one), one) == [103, 111, 119, 127, 135, 143, 151, 159]


def test_a_large_cluster_is_summed_up() -> None:
    """2,048 servers: eight of them in detail, all as squares, healthy ones counted; no more than 200 kB."""
    one = load_cluster("h100x2048")
    incidents = parse_pattern("mttf:days=30,scale=4,seed=3").incidents(one)
    hit = len({one.nics[n].server for n in np.nonzero(worst_states(incidents, one).nic < 1)[0]})
    svg = cluster_svg(one, incidents, "title")
    shown = texts(svg)
    assert f"All 2,048 servers by number: {2048 - hit:,} healthy, {hit} hit" in shown
    assert sum(text.startswith("server") for text in shown) == 8
    assert len(svg) < 200_000


def test_servers_that_only_a_shared_switch_hits_are_pale() -> None:
    """Otherwise a rail would hide what else fails."""
    shown = texts(
        cluster_svg(load_cluster("h100x2048"), [Incident("rail2", 0.0), Incident("server7.nic1", 0.0)], "title")
    )
    assert "All 2,048 servers by number: 0 healthy, 2,048 hit (pale: 2,047 only by a switch that they share)" in shown


def test_a_huge_cluster() -> None:
    """10,000 servers, a rail down: still a picture, within 200 kB."""
    server = {"gpus": {"count": 1}, "nics": [{"count": 2, "rate_gbps": 100}], "intra_server": {"rate_gbps": 1000}}
    spec = {
        "servers": 10_000,
        "server": server,
        "fabric": {"kind": "switch-per-rail"},
        "failover": {"detection_ms": 1},
    }
    svg = cluster_svg(Cluster("huge", ClusterSpec.model_validate(spec)), [Incident("rail1", 0.0)], "title")
    assert "10,000 servers with 20,000 NICs: 10,000 down at some time, on 10,000 of the servers" in texts(svg)
    assert len(svg) < 200_000


def test_the_same_cluster_gives_the_same_bytes() -> None:
    """And one without failures says that all work."""
    one = load_cluster("h100x16")
    first = cluster_svg(one, [], "title")
    assert cluster_svg(one, [], "title") == first
    assert "16 servers with 128 NICs: all work" in texts(first)


def test_a_component_that_is_not_there() -> None:
    """Named, as everywhere."""
    with pytest.raises(InputError, match="no such component"):
        cluster_svg(load_cluster("h100"), [Incident("server9.nic0", 0.0)], "title")
