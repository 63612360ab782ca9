"""`auto` takes the best of all strategies for this size, group and state, and `advise` says why."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.cli.main import run
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Event
from r2cc_simai.strategies.auto import CANDIDATES
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.ranking import rank
from r2cc_simai.strategies.registry import parse_strategy


@settings(max_examples=15)
@given(
    name=st.sampled_from(["r7525", "uniformx8", "h100x3", "hpn-h800x4"]),
    size=st.sampled_from([0, 1000, 2**20, 2**25, 2**28, 2**31]),
    nics=st.dictionaries(st.integers(0, 7), st.sampled_from([0.25, 0.5, 0.875]), min_size=1, max_size=2),
)
def test_auto_is_never_worse_than_the_best_single_one(name: str, size: int, nics: dict[int, float]) -> None:
    """Within 1%, by the flow backend, over all that apply."""
    cluster = load_cluster(name)
    left = {nic % len(cluster.nics): fraction for nic, fraction in nics.items()}
    view = View(cluster, tuple(left.get(nic.index, 1.0) for nic in cluster.nics))
    request = Request("all_reduce", tuple(range(cluster.n_ranks)), size)
    plan = parse_strategy("auto").plan(request, view)
    events = tuple(Event(nic, fraction) for nic, fraction in left.items())
    mine = run_schedule(cluster, plan.schedule, plan.binding, events, Backend.FLOW).elapsed_s
    for candidate in CANDIDATES:
        try:
            other = candidate.plan(request, view)
        except InputError:
            continue
        assert mine <= 1.01 * run_schedule(cluster, other.schedule, other.binding, events, Backend.FLOW).elapsed_s


def test_the_plan_says_what_it_took() -> None:
    cluster = load_cluster("uniformx16")
    view = View(cluster, (0.5, *[1.0] * 15))
    plan = parse_strategy("auto").plan(Request("all_reduce", tuple(range(16)), 2**33), view)
    assert plan.note.startswith("auto takes optcc")


def test_what_does_not_apply_is_ranked_last_with_the_reason() -> None:
    """Ten bytes do not make 16 segments; the others do without."""
    cluster = load_cluster("uniformx3")
    view = View(cluster, (0.5, 1.0, 1.0))
    ranked = rank(CANDIDATES, Request("all_reduce", (0, 1, 2), 10), view)
    reasons = {one.strategy: one.why for one in ranked if one.time_s is None}
    assert "more segments than the 10 bytes" in reasons["optcc:k=16,mix=off"]
    assert [one.time_s is None for one in ranked] == sorted(one.time_s is None for one in ranked)


def test_advise_ranks_and_finds_crossovers(capsys: pytest.CaptureFixture[str]) -> None:
    """Ranking by time, overhead over healthy, gap to the bound, and from which size on which strategy is best."""
    asked = ["advise", "--cluster", "r7525", "--size", "1GiB", "--fail", "server0.mlx5_2@0"]
    assert run(asked) == 0
    printed = capsys.readouterr().out
    assert "over bound (%)" in printed
    assert "Best by size:" in printed
    assert run([*asked, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    times = [row["simulated"] for row in rows if row["scenario"] == "advise" and row["simulated"] is not None]
    assert times == sorted(times)
    assert all(t >= row["bound"] for t, row in zip(times, rows, strict=False))
    sizes = [row["bytes"] for row in rows if row["scenario"] == "crossover"]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1024


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--fail", "server0.mlx5_2@0.5"], 2, "known to be down"),
        (["--fail", "server0@0"], 3, "no NIC"),
        (["--size", "huge"], 2, "not a size"),
    ],
)
def test_advise_refuses_in_one_line(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["advise", "--cluster", "r7525", *arguments]) == code
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "\n" not in error
