"""Costs that have been simulated: kept in memory, and in a folder that processes share."""

import json
from pathlib import Path

import pytest

from r2cc_simai.runners.courses.cache import CostCache
from r2cc_simai.runners.courses.costs import HitCost, StateCost

COST = StateCost(0.25, 2.0).to_json()


def only_file(folder: Path) -> Path:
    """The one file of a folder."""
    (found,) = folder.iterdir()
    return found


def test_lookups_and_hits_are_counted() -> None:
    """Nothing is there before it has been put."""
    cache = CostCache()
    assert cache.get("a") is None
    cache.put("a", COST)
    assert cache.get("a") == COST
    assert cache.get("b") is None
    assert (cache.lookups, cache.hits) == (3, 1)


def test_another_process_finds_what_one_has_kept(tmp_path: Path) -> None:
    """The folder is what they share; it is made where it is not there."""
    CostCache(tmp_path / "costs").put("a", COST)
    other = CostCache(tmp_path / "costs")
    assert other.get("a") == COST
    assert (other.lookups, other.hits) == (1, 1)


@pytest.mark.parametrize("damage", [b"", b'{"key": "a", "cost', b"[1]", b"\xff\xfe", b'{"key": "b", "cost": {}}'])
def test_a_file_that_is_torn_or_foreign_is_no_cost_and_is_written_again(tmp_path: Path, damage: bytes) -> None:
    """Half a file, another kind of file, and one whose name belongs to another key."""
    CostCache(tmp_path).put("a", COST)
    only_file(tmp_path).write_bytes(damage)
    cache = CostCache(tmp_path)
    assert cache.get("a") is None
    cache.put("a", COST)
    assert json.loads(only_file(tmp_path).read_bytes()) == {"key": "a", "cost": COST}
    assert CostCache(tmp_path).get("a") == COST


def test_nothing_but_whole_files_is_left(tmp_path: Path) -> None:
    """A cost appears under its name by being renamed; no unfinished file stays."""
    cache = CostCache(tmp_path)
    for key in "abc":
        cache.put(key, COST)
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"] * 3


@pytest.mark.parametrize("cost", [StateCost(0.0), StateCost(float("inf")), StateCost(-0.01, 4 / 3)])
def test_the_cost_of_a_state_is_the_same_after_a_file(cost: StateCost) -> None:
    """A job that cannot go on is infinitely slow, which JSON does not know."""
    assert StateCost.from_json(json.loads(json.dumps(cost.to_json(), allow_nan=False))) == cost


@pytest.mark.parametrize("cost", [HitCost(1.5, 1.0), HitCost(restart_s=0.0), HitCost(restart_s=60.0, replaced=True)])
def test_the_cost_of_a_change_is_the_same_after_a_file(cost: HitCost) -> None:
    """A restart that takes no time is another thing than none."""
    assert HitCost.from_json(json.loads(json.dumps(cost.to_json(), allow_nan=False))) == cost
