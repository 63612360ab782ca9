"""Drawn failures: an alternating renewal process per part, the same for a seed, whatever else is asked."""

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.registry import parse_pattern
from r2cc_simai.failures.renewal import Outages, Repair, draw_outages, shares_lost

H100 = load_cluster("h100x4")
HOUR = 3600.0


def drawn(parts: int, mttf_h: float, repair: Repair, hours: float, seed: int = 1) -> Outages:
    """Outages of equal parts, times in hours at the door and seconds inside."""
    return draw_outages(np.random.default_rng(seed), parts, mttf_h * HOUR, repair, hours * HOUR)


def spans(outages: Outages) -> dict[int, list[tuple[float, float]]]:
    """Begin and end of the outages of each part, in order."""
    found: dict[int, list[tuple[float, float]]] = {}
    for part, begin, end in zip(outages.part, outages.begin_s, outages.end_s, strict=True):
        found.setdefault(int(part), []).append((float(begin), float(end)))
    return found


@pytest.mark.parametrize(
    "repair", [Repair(5 * HOUR), Repair(5 * HOUR, "exponential"), Repair(5 * HOUR, "lognormal", 1)]
)
def test_the_number_of_outages_is_that_of_a_renewal_process(repair: Repair) -> None:
    """A part fails once per cycle m = MTTF + MTTR in the long run; n parts over H within 4 standard errors.

    E[N] = n (H/m + (s^2/m^2 - 1)/2 + MTTR/m) with s^2 = MTTF^2 + Var(repair) (renewal theorem, second order; the last
    term counts the failure whose repair H cuts off), Var[N] = n H s^2/m^3.
    """
    parts, mttf, hours = 400, 20.0, 5000.0
    spread = {"fixed": 0.0, "exponential": 25.0, "lognormal": 25.0 * (math.e - 1)}[repair.kind]
    mean = mttf + 5.0
    expected = parts * hours / mean + parts * ((mttf**2 + spread) / mean**2 - 1) / 2 + parts * 5.0 / mean
    error = math.sqrt(parts * hours * (mttf**2 + spread) / mean**3)
    assert abs(len(drawn(parts, mttf, repair, hours).part) - expected) < 4 * error


def test_the_share_of_time_that_a_part_works() -> None:
    """Availability = MTTF / (MTTF + MTTR) = 0.8, whatever the distribution of the repair (400 parts, 200 cycles)."""
    for repair in (Repair(5 * HOUR), Repair(5 * HOUR, "exponential"), Repair(5 * HOUR, "lognormal", 0.5)):
        outages = drawn(400, 20.0, repair, 5000.0)
        down = float(np.sum(np.minimum(outages.end_s, 5000 * HOUR) - outages.begin_s))
        assert 1 - down / (400 * 5000 * HOUR) == pytest.approx(0.8, abs=0.003)


def test_the_time_to_failure_is_exponential() -> None:
    """Kolmogorov-Smirnov against 1 - exp(-t/MTTF): the first failure, and from a repair to the next failure."""
    outages = drawn(3000, 10.0, Repair(4 * HOUR, "exponential"), 400.0)
    first, later = [], []
    for own in spans(outages).values():
        first.append(own[0][0] / HOUR)
        later += [
            (after[0] - before[1]) / HOUR for before, after in itertools.pairwise(own[:8])
        ]  # 8 of about 28: none is cut off
    assert len(first) == 3000
    for sample in (first, later):
        assert stats.kstest(sample, stats.expon(scale=10.0).cdf).pvalue > 0.01


def test_every_part_fails_as_often_as_any_other() -> None:
    """Chi-square of the counts of 64 parts over a time of many failures each."""
    counts = np.bincount(drawn(64, 10.0, Repair(1.0), 2000.0).part, minlength=64)
    assert stats.chisquare(counts).pvalue > 0.01


@given(seed=st.integers(0, 2**32), mttf=st.floats(0.5, 50), mttr=st.floats(0.01, 20), parts=st.integers(1, 30))
def test_no_part_is_down_twice_at_once(seed: int, mttf: float, mttr: float, parts: int) -> None:
    """Outages of one part follow each other, all begin within the horizon, and they are in order."""
    outages = drawn(parts, mttf, Repair(mttr * HOUR, "exponential"), 100.0, seed)
    assert np.all(np.diff(outages.begin_s) >= 0)
    assert np.all((outages.begin_s >= 0) & (outages.begin_s < 100 * HOUR))
    for own in spans(outages).values():
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(own))


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 100), st.floats(0.1, 30)), min_size=1, max_size=12), st.data()
)
def test_what_a_component_of_several_parts_keeps(raw: list[tuple[int, float, float]], data: st.DataObject) -> None:
    """With k of two parts down at a time a component keeps 1 - k/2; as many incidents as failures, as long in all."""
    free_from: dict[int, float] = {}
    kept = []
    for part, begin, length in sorted(raw, key=lambda one: one[1]):
        if begin >= free_from.get(part, 0.0):
            kept.append((part, begin, begin + length))
            free_from[part] = begin + length
    part, begin, end = (np.array(column) for column in zip(*kept, strict=True))
    found = list(shares_lost(Outages(part, begin, end), 2))
    assert len(found) == len(kept)
    assert sum(e - b for _, b, e, _ in found) == pytest.approx(float(np.sum(end - begin)))
    moment = data.draw(st.floats(0, 130))
    for component in range(3):
        down = sum(1 for p, b, e in kept if p // 2 == component and b <= moment < e)
        covering = [left for c, b, e, left in found if c == component and b <= moment < e]
        assert min(covering, default=1.0) == 1 - down / 2


def incidents(text: str, seed: int = 0, hours: float = 720.0, cluster: str = "h100x4") -> tuple[Incident, ...]:
    """What a text draws over a job."""
    return parse_pattern(text).incidents(load_cluster(cluster), seed, hours * HOUR)


def test_a_seed_gives_the_same_failures() -> None:
    """Nothing but the seed, the table and the cluster counts."""
    text = "mttf:scale=50"
    assert incidents(text, 3) == incidents(text, 3)
    assert incidents(text, 3) != incidents(text, 4)
    assert parse_pattern(text).draws
    assert incidents("mttf:scale=50,seed=3", 9) == incidents(text, 3)


def test_only_leaves_the_failures_of_a_cause_as_they_are() -> None:
    """Each cause has random numbers of its own, so that what one cause costs is a part of the whole."""
    whole = incidents("mttf:scale=100", 5)
    for cause in ("nic", "switch-or-cable"):
        assert incidents(f"mttf:scale=100,only={cause}", 5) == tuple(one for one in whole if one.cause == cause)
    assert incidents("mttf:scale=100,only=switch-or-cable+nic", 5) == whole
    assert {one.cause for one in whole} == {"nic", "switch-or-cable"}


def test_llama3_over_its_own_54_days() -> None:
    """16,384 GPUs, 54 days: 42 network and NIC failures expected; the mean of 60 draws within 4 standard errors."""
    counts = [len(incidents("mttf", seed, 54 * 24, "h100x2048")) for seed in range(60)]
    assert abs(np.mean(counts) - 42) < 4 * math.sqrt(42 / 60)


def test_a_class_of_each_kind() -> None:
    """alibaba-hpn: links are cables, ToRs are the switches of rails or the leaves; all down and repaired after 4 h."""
    for cluster, switch in (("hpn-h800", "rail"), ("a100-leaf-spine", "leaf")):
        found = incidents("mttf:table=alibaba-hpn,scale=1000", 1, 720, cluster)
        kinds = Counter(
            (one.cause, one.component.startswith(switch), one.component.endswith(".cable")) for one in found
        )
        assert set(kinds) == {("link", False, True), ("tor", True, False)}
        assert all(one.state == 0 and one.end_s - one.begin_s == pytest.approx(4 * HOUR) for one in found)


def test_half_of_a_dual_tor_link_stays() -> None:
    """One of two links or ToRs leaves half of the rate; twice the failures of the table with single links."""
    found = incidents("mttf:table=alibaba-hpn-dual-tor,scale=100", 1, 2000, "hpn-h800")
    single = incidents("mttf:table=alibaba-hpn,scale=100", 1, 2000, "hpn-h800")
    assert {one.state for one in found} == {0.5}
    assert 1.4 < len(found) / len(single) < 2.8


def test_own_table_with_shares_of_states(tmp_path: Path) -> None:
    """A file's path; of many failures 80 % are down, the others at half of the rate; `mttr_h` replaces the repair."""
    file = tmp_path / "own.yml"
    file.write_text(
        "name: own\nsource: none\ncomponents:\n"
        "  port: {component: port, mttf_h: 100, mttr_h: 1, state: {down: 0.8, 0.5: 0.2}}\n"
    )
    found = parse_pattern(f"mttf:table={file},mttr_h=2").incidents(H100, 0, 8000 * HOUR)
    halves = sum(one.state == 0.5 for one in found)
    assert abs(halves / len(found) - 0.2) < 4 * math.sqrt(0.16 / len(found))
    assert all(one.end_s - one.begin_s == pytest.approx(2 * HOUR) for one in found)


@pytest.mark.parametrize(
    ("text", "hours", "message"),
    [
        ("mttf", math.inf, "over the length of a job: give --hours, hours: in a sweep, or days=30"),
        ("mttf:table=llama4", 1, "no such reliability table"),
        ("mttf:scale=0", 1, "scale=0: a number above 0 is wanted"),
        ("mttf:mttr_h=-1", 1, "mttr_h=-1: a number above 0 is wanted"),
        ("mttf:days=0", 1, "days=0: a number above 0 is wanted"),
        ("mttf:only=fan", 1, "llama3 has no cause 'fan' .allowed: nic, switch-or-cable."),
        ("mttf:scale=1e9", 720, "at most 1,000,000 are drawn"),
        ("mttf:table=alibaba-hpn", 1, "h100x4 has no ToR switches"),
    ],
)
def test_what_cannot_be_drawn(text: str, hours: float, message: str) -> None:
    """One line that names the option."""
    with pytest.raises(InputError, match=message) as caught:
        incidents(text, hours=hours)
    assert "\n" not in str(caught.value)


def test_days_are_the_length_where_the_job_has_none() -> None:
    """`days=30` of a job without an end; a job that is shorter keeps its own."""
    assert incidents("mttf:scale=50,days=30", 1, math.inf) == incidents("mttf:scale=50", 1, 720)
    assert all(one.begin_s < 10 * HOUR for one in incidents("mttf:scale=1000,days=30", 1, 10))
