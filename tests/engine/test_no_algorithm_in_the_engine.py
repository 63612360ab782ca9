"""The engine knows no algorithm and no strategy: their names do not occur under simulator/.

The reader of traces is no part of that: Chakra's schema names what a node asks for, and so must the code that reads it.
"""

import re
from pathlib import Path

import pytest

from r2cc_simai.strategies.registry import STRATEGIES

SIMULATOR = Path(__file__).resolve().parents[2] / "simulator"
ALGORITHMS = ["ring", "rings", "allreduce", "all_reduce", "allgather", "all_gather", "reduce_scatter", "tree"]
STRATEGY_NAMES = ["nccl", "balance", "hot-repair", "hot_repair", "r2cc", "optcc", "adapcc", "ideal", "dejavu"]
NAMES = sorted({*ALGORITHMS, *STRATEGY_NAMES, *STRATEGIES} - {"auto"})  # a word of C++


def words(text: str) -> set[str]:
    """Words of C++ text in lower case, CamelCase and kConstants cut into their parts, snake_case kept whole and cut."""
    cut = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
    whole = set(re.findall(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", cut))
    joined = set(re.findall(r"[a-z0-9_-]+", text.lower()))
    return whole | joined | {part for word in whole for part in re.split(r"[-_]", word)}


def reads_traces(path: Path) -> bool:
    """Whether a file belongs to the reader of traces."""
    return path.parent.name == "trace" or path.name == "trace.cpp"


def test_there_is_an_engine_to_look_at() -> None:
    """An empty folder would pass every search."""
    assert len(list(SIMULATOR.rglob("*.cpp"))) > 5


def test_the_search_finds_names_in_every_spelling() -> None:
    """`ring_pass`, `RingPass`, `kBalance` and `hot-repair` are found; `string` and `during` are not."""
    assert {"ring", "balance", "hot-repair"} <= words("ring_pass kBalance // hot-repair")
    assert "ring" in words("struct RingPass")
    assert "ring" not in words("std::string during wiring")


@pytest.mark.parametrize("name", NAMES)
def test_no_source_file_names(name: str) -> None:
    """Word by word, in code and comments; the tests beside the code may."""
    files = [p for p in SIMULATOR.rglob("*.?pp") if not p.name.endswith("_test.cpp") and not reads_traces(p)]
    naming = [str(p.relative_to(SIMULATOR)) for p in files if name in words(p.read_text())]
    assert naming == []
