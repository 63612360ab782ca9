"""What moved: an injected change is caught and named, and nothing else is blamed."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.baseline.files import read_baseline, write_baseline
from r2cc_simai.baseline.numbers import WATCHED, watched
from r2cc_simai.baseline.rules import Rules
from r2cc_simai.baseline.verdict import Kind, family, judge
from r2cc_simai.baseline.wording import failure_line, headline, moved_groups
from r2cc_simai.errors import InputError
from r2cc_simai.results import error_row, make_row

STRATEGIES = ("hot-repair", "balance", "r2cc-allreduce")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("factor", [1.02, 0.98])
def test_a_change_of_2_percent_of_one_strategy_is_caught_and_named(rows, scaled, compare, strategy, factor):
    """All 18 times of that strategy moved by 2%, those of the others did not. An improvement is a move, too."""
    verdict = compare(rows, scaled(rows, strategy, factor))
    assert not verdict.ok
    assert {family(f.key.strategy) for f in verdict.findings} == {strategy}
    (group,) = moved_groups(verdict)
    assert group.sentence().startswith(f"{strategy}: 18 of 18 numbers moved, {100 * (factor - 1):+.2f}%; the largest: ")
    others = [s for s in STRATEGIES if s != strategy]
    assert not any(other in failure_line(verdict) for other in others)
    assert headline(verdict) == "54 numbers compared: 18 moved"


@pytest.mark.parametrize("factor", [1.0, 1.0005, 0.9995])
def test_a_change_within_the_tolerance_passes(rows, scaled, compare, factor):
    verdict = compare(rows, scaled(rows, "balance", factor))
    assert verdict.ok
    assert verdict.findings == ()


def test_the_order_of_rows_does_not_matter(rows, scaled, compare):
    after = scaled(rows, "balance", 1.02)
    mixed = list(after)
    random.Random(3).shuffle(mixed)
    assert compare(mixed[::-1], mixed).findings == ()
    assert compare(rows, mixed) == compare(rows, after)


def test_moves_are_told_from_what_to_what_beside_the_measured_value_and_its_source(row, compare):
    before = row(simulated=2.0, ideal=1.6, measured=2.1, source="log 08")
    verdict = compare([before], [row(simulated=2.1, ideal=1.6, measured=2.1, source="log 08")])
    assert failure_line(verdict) == (
        "balance: 1 of 1 number moved, +5.00%; the largest: demo, uniformx4, all_reduce, server0.nic0=0.5@0, balance, "
        "flow, 1 GiB, time: 2 to 2.1 s (+5.00%), overhead +25.00 to +31.25%, measured or published 2.1 s (log 08)"
    )


def test_the_largest_move_comes_first(row, compare):
    before = [row(strategy=s, simulated=1.0) for s in "abc"]
    after = [row(strategy="a", simulated=1.01), row(strategy="b", simulated=0.7), row(strategy="c", simulated=1.2)]
    assert [group.strategy for group in moved_groups(compare(before, after))] == ["b", "c", "a"]


def test_of_a_number_of_which_more_is_better_less_is_a_loss(row, compare):
    """Change = 100 (before/now - 1), as the overhead of bandwidths in the results table."""
    tokens = {"metric": "tokens_per_s", "unit": "1/s"}
    (finding,) = compare([row(**tokens, simulated=100.0)], [row(**tokens, simulated=80.0)]).findings
    assert finding.change_pct == pytest.approx(25.0)


def test_an_overhead_can_move_where_the_value_does_not(row, compare):
    """The healthy cluster became slower: the time stays, the overhead falls from 10 to 0 percent."""
    (finding,) = compare([row(simulated=1.1, ideal=1.0)], [row(simulated=1.1, ideal=1.1)]).findings
    assert (finding.change_pct, finding.overhead_points) == (0.0, pytest.approx(-10.0))


@pytest.mark.parametrize(("points", "ok"), [(0.09, True), (0.11, False)])
def test_an_overhead_near_zero_is_compared_in_points(row, compare, points, ok):
    """0.01% to 0.10% is ten times as much, and 0.09 points."""
    loose = Rules.model_validate({"default": {"value_pct": 50, "overhead_points": 0.1}})
    before, after = row(simulated=1.0001), row(simulated=1.0001 + points / 100)
    assert compare([before], [after], loose).ok is ok


def test_a_value_of_zero_may_become_what_counts_as_zero(row, compare):
    stopped = {"metric": "stopped", "ideal": None}
    assert compare([row(**stopped, simulated=0.0)], [row(**stopped, simulated=1e-12)]).ok
    (finding,) = compare([row(**stopped, simulated=0.0)], [row(**stopped, simulated=1.0)]).findings
    assert finding.change_pct == math.inf


def test_a_number_that_disappeared_fails_and_a_new_one_is_noted(rows, row, compare):
    verdict = compare(rows, [*rows[2:], row(scenario="later")])
    missing, new = verdict.findings
    assert (missing.kind, missing.fails, new.kind, new.fails) == (Kind.MISSING, True, Kind.NEW, False)
    assert headline(verdict) == "53 numbers compared: 1 missing, 1 new"
    assert failure_line(verdict).startswith("1 missing, the first: demo, uniformx4, all_reduce, server0.nic0=0.875@0, ")


def test_what_missing_and_new_numbers_mean_is_a_rule(rows, row, compare):
    content = {"default": {"value_pct": 0, "overhead_points": 0}, "rows": {"missing": "note", "new": "fail"}}
    rules = Rules.model_validate(content)
    assert compare(rows, rows[2:], rules).ok
    assert not compare(rows, [*rows, row(scenario="later")], rules).ok


def test_a_metric_that_the_baseline_does_not_keep_is_not_new(rows, row, compare):
    assert compare(rows, [*rows, row(metric="algbw", unit="B/s")]).findings == ()


def _failed(case, seed=None):
    return error_row(
        scenario=case.scenario,
        cluster=case.cluster,
        workload=case.workload,
        pattern=case.pattern,
        strategy=case.strategy,
        backend=case.backend,
        bytes=case.bytes,
        seed=seed,
        error="no NIC is left between server0 and server1",
    )


def test_a_case_that_fails_is_named_once_with_its_reason(rows, compare):
    """Its numbers are not told as missing beside."""
    verdict = compare(rows, [_failed(rows[0]), *rows[2:]])
    (finding,) = verdict.findings
    assert (finding.kind, finding.fails) == (Kind.ERROR, True)
    assert "1 failed, the first: demo, " in failure_line(verdict)
    assert "(no NIC is left between server0 and server1)" in failure_line(verdict)


def test_a_case_that_failed_already_is_as_expected_and_one_that_does_no_longer_is_told(rows, compare):
    with_error = [_failed(rows[0]), *rows[2:]]
    assert compare(with_error, with_error).findings == ()
    healed = compare(with_error, rows)
    assert [f.kind for f in healed.findings] == [Kind.MISSING, Kind.NEW]
    assert not healed.ok


def test_more_seeds_that_fail_are_told(row, rows, compare):
    drawn = [row(seed=seed) for seed in range(9)]
    before, after = [*drawn, _failed(rows[0], 7)], [*drawn, _failed(rows[0], 7), _failed(rows[0], 8)]
    (finding,) = compare(before, after).findings
    assert (finding.kind, finding.before.value, finding.now.value) == (Kind.ERROR, 1, 2)


def test_a_drawn_mean_that_moved_says_over_which_seeds(row, compare):
    before = [row(seed=seed, simulated=1.0 + seed) for seed in range(4)]
    assert "seeds 0-3 before, 0-1 now" in failure_line(compare(before, before[:2]))


def test_a_run_of_something_else_is_told_in_one_line(rows, row, compare):
    other = [row(scenario="other", strategy=f"s{i}") for i in range(50)]
    with pytest.raises(InputError, match="only 0 of the baseline's 54 numbers are in the run; a finished run"):
        compare(rows, other)


def test_a_run_in_which_everything_fails_is_no_run_of_something_else(rows, compare):
    verdict = compare(rows, [_failed(row) for row in rows[::2]])
    assert {finding.kind for finding in verdict.findings} == {Kind.ERROR}
    assert not verdict.ok


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
VALUE = st.floats(-1e300, 1e300, allow_subnormal=True)
ANY_ROW = st.builds(
    make_row,
    scenario=NAME,
    cluster=NAME,
    workload=NAME,
    pattern=TEXT,
    strategy=NAME,
    backend=st.sampled_from(["flow", "chunk"]),
    bytes=st.integers(0, 1 << 40),
    metric=st.sampled_from(["time", "tokens_per_s", "stopped", "tx_bytes[nic0]"]),
    unit=TEXT,
    simulated=st.none() | VALUE,
    seed=st.none() | st.integers(0, 5),
)
STRICT = Rules.model_validate({"default": {"value_pct": 0, "overhead_points": 0, "zero_below": 0}})


@given(st.lists(ANY_ROW, max_size=12), st.randoms(use_true_random=False))
def test_a_run_agrees_with_the_baseline_that_was_made_of_it(tmp_path_factory, row, drawn, shuffler: random.Random):
    """check(update(rows)) finds nothing, whatever text and values the rows hold, their order, and with no tolerance."""
    rows = [row(), *drawn]
    path = tmp_path_factory.mktemp("baseline") / "kept.csv"
    write_baseline(watched(rows, WATCHED), path)
    shuffler.shuffle(rows)
    verdict = judge(read_baseline(path), watched(rows, ("*",)), STRICT)
    assert verdict.ok
    assert verdict.findings == ()
