"""How the hops of a group at a degraded server are spread: every NIC gets its part."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.channels import left_pairs
from r2cc_simai.strategies.shared_servers import Pairs, around, gap_pairs, levelled_pairs

RAILS = {"kind": "switch-per-rail"}


def view_of(cluster, lost):
    return View(cluster, tuple(lost.get(nic.index, 1.0) for nic in cluster.nics))


def by_nic(pairs: Pairs) -> dict[int, float]:
    """The part of a hop that each NIC carries."""
    found: dict[int, float] = defaultdict(float)
    for a, b, share in pairs:
        found[a] += share
        found[b] += share
    return dict(found)


def test_what_is_left_is_used_in_proportion(cluster_of) -> None:
    """NIC 0 dead, NIC 1 at a half, two whole ones: 0, 1/5, 2/5, 2/5 on either side, rail by rail."""
    view = view_of(cluster_of(nics=4), {0: 0.0, 1: 0.5})
    pairs = left_pairs(view, 0, 1)
    assert [(a, b) for a, b, _ in pairs] == [(1, 5), (2, 6), (3, 7)]
    assert [share for *_, share in pairs] == pytest.approx([1 / 5, 2 / 5, 2 / 5])


@given(
    left=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=8, max_size=8).filter(
        lambda f: any(f[:4]) and any(f[4:])
    )
)
def test_levelled_pairs_give_every_nic_its_part(left: list[float], cluster_of) -> None:
    """Of what its server has left; and as much as can be stays on a rail."""
    view = View(cluster_of(nics=4), tuple(left))
    pairs = levelled_pairs(view, 0, 1)
    assert sum(share for *_, share in pairs) == pytest.approx(1)
    wanted = {n: f / sum(half) for half, at in ((left[:4], 0), (left[4:], 4)) for n, f in enumerate(half, at) if f}
    assert by_nic(pairs) == pytest.approx(wanted)
    same = sum(share for a, b, share in pairs if b - a == 4)
    assert same == pytest.approx(sum(min(wanted.get(n, 0.0), wanted.get(n + 4, 0.0)) for n in range(4)))


def test_the_hop_around_a_degraded_server_takes_the_rail_that_it_lost(cluster_of) -> None:
    """All of it, or a part; the rest is spread over the other rails."""
    view = view_of(cluster_of(servers=3, nics=4, fabric=RAILS), {1: 0.0})
    assert gap_pairs(view, 0, 2, 1, 1.0) == ((9, 5, 1.0),)
    assert by_nic(gap_pairs(view, 0, 2, 1, 0.4)) == pytest.approx(
        {9: 0.4, 5: 0.4, 8: 0.2, 4: 0.2, 10: 0.2, 6: 0.2, 11: 0.2, 7: 0.2}
    )


@given(lost=st.sampled_from([{1: 0.0}, {0: 0.5, 3: 0.0}, {2: 0.25}]), x=st.floats(0.01, 0.9))
def test_a_neighbour_of_one_degraded_server_is_busy_on_all_rails_alike(
    lost: dict[int, float], x: float, cluster_of
) -> None:
    """What it sends to the degraded server (1 - x) and past it (x) adds up to the same part on every NIC, unless x is
    too little to fill what the lost rails leave free."""
    view = view_of(cluster_of(servers=3, nics=4, fabric=RAILS), lost)
    missing = view.lost(0)
    pairs = around(view, (0, 1, 2), x, 1.0)
    there, past = pairs(2, 0), pairs(2, 1)
    assert there is not None
    assert past is not None
    sent = [
        sum((1 - x) * s for a, _, s in there if a == n) + sum(x * s for a, _, s in past if a == n) for n in range(8, 12)
    ]
    assert sum(sent) == pytest.approx(1)
    if x >= missing and len({view.fraction[n] for n in range(4)} - {1.0}) == 1 and min(lost.values()) == 0:
        assert sent == pytest.approx([0.25] * 4)
    assert pairs(1, 2) is None  # a hop between whole servers stays on the group's rail
