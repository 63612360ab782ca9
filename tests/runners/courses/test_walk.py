"""A job that walks through failures, against arithmetic by hand.

H = the horizon, s = the overhead of a state, h = what a change costs once. In a state with overhead s a second does
1/(1+s) seconds of the healthy job's work; what is lost is s/(1+s).
"""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.runners.courses.cache import CostCache
from r2cc_simai.runners.courses.costs import HitCost
from r2cc_simai.runners.courses.course import Course
from r2cc_simai.runners.courses.outcome import Outcome
from r2cc_simai.runners.courses.rows import run_course
from r2cc_simai.runners.courses.stops import CRASH_S
from r2cc_simai.strategies.ideal import Ideal
from r2cc_simai.strategies.nccl_failover import NcclFailover
from tests.runners.courses.conftest import FakeJob

HOUR = 3600.0
COURSE = Course(hours=24, checkpoint_min=30)
END = math.inf
RESTARTS = HitCost(restart_s=HOUR, replaced=False)
ON_SPARES = HitCost(restart_s=HOUR, replaced=True)


def run(job: FakeJob, *incidents: Incident, course: Course = COURSE) -> Outcome:
    """What becomes of a job in a day."""
    return run_course(job, incidents, course, CostCache())


def nic(number: int, begin_h: float, end_h: float = END, state: float = 0.0) -> Incident:
    """A NIC of the first server that is down, or slower, between two hours of the day."""
    return Incident(f"server0.nic{number}", begin_h * HOUR, end_h * HOUR, state)


def test_nothing_fails() -> None:
    """The whole day is work, and nothing is lost."""
    outcome = run(FakeJob())
    assert outcome.effective_time == 1.0
    assert outcome.lost_s == {}


def test_one_failure_costs_the_hit_and_the_overhead_until_the_repair() -> None:
    """h + (R - h) s/(1+s) for a failure that is repaired after R = 4 h."""
    outcome = run(FakeJob(slow=0.1, extra_s=10.0), nic(0, 2, 6))
    assert outcome.lost_s == {0: pytest.approx(10 + (4 * HOUR - 10) * 0.1 / 1.1)}
    assert outcome.effective_time == pytest.approx(1 - outcome.lost_total_s / (24 * HOUR), rel=1e-12)


def test_a_failure_that_is_never_repaired_lasts_until_the_end() -> None:
    """h + (24 h - 20 h - h) s/(1+s)."""
    assert run(FakeJob(), nic(0, 20)).lost_total_s == pytest.approx(10 + (4 * HOUR - 10) * 0.1 / 1.1)


def test_what_has_failed_before_the_job_begins_is_known_and_hits_nothing() -> None:
    """R s/(1+s), and no h."""
    assert run(FakeJob(), nic(0, -1, 6)).lost_total_s == pytest.approx(6 * HOUR * 0.1 / 1.1)
    assert run(FakeJob(), nic(0, 0, 6)).lost_total_s == pytest.approx(6 * HOUR * 0.1 / 1.1)


def test_a_nic_that_is_slower_costs_its_own_state() -> None:
    """At 3/4 of its rate: a quarter of the overhead in this job, 0.025/1.025."""
    assert run(FakeJob(extra_s=0), nic(0, 0, 6, 0.75)).lost_total_s == pytest.approx(6 * HOUR * 0.025 / 1.025)


def test_a_failure_that_costs_less_than_its_states_gives_some_of_it_back() -> None:
    """h = -1 s: what the old plan did better for a while."""
    assert run(FakeJob(extra_s=-1.0), nic(0, 2, 6)).lost_total_s == pytest.approx(-1 + (4 * HOUR + 1) * 0.1 / 1.1)


def test_overlapping_failures_share_what_their_state_costs() -> None:
    """Alone 1 h each at s = 0.1, together 1 h at s = 0.2 that they share: both lose the same beside their h."""
    first, second = (run(FakeJob(), nic(0, 2, 4), nic(1, 3, 5)).lost_s[k] for k in (0, 1))
    alone, together = (HOUR - 10) * 0.1 / 1.1, (HOUR - 10) * 0.2 / 1.2
    assert first == pytest.approx(10 + alone + together / 2)
    assert second == pytest.approx(10 + together / 2 + HOUR * 0.1 / 1.1)


def test_an_incident_behind_another_one_costs_nothing() -> None:
    """A NIC at half of its rate that is also down for an hour: the hour is the other incident's."""
    lost = run(FakeJob(extra_s=0), nic(0, 0, 10, 0.5), nic(0, 4, 5)).lost_s
    assert lost[0] == pytest.approx(9 * HOUR * 0.05 / 1.05)
    assert lost[1] == pytest.approx(HOUR * 0.1 / 1.1)


def test_what_fails_together_is_one_change() -> None:
    """A whole rail (two NICs): one h, half of it each."""
    lost = run(FakeJob(), nic(0, 2, 3), Incident("server1.nic0", 2 * HOUR, 3 * HOUR)).lost_s
    assert lost == {k: pytest.approx((10 + (HOUR - 10) * 0.2 / 1.2) / 2) for k in (0, 1)}


@pytest.mark.parametrize(("minute", "since_min"), [(130, 10), (150, 0), (149, 29)])
def test_a_restart_stands_still_and_goes_back_to_the_last_checkpoint(minute: int, since_min: int) -> None:
    """An hour, and the time since the last of the checkpoints at 0, 30, 60, .. min; then no overhead on spare parts."""
    outcome = run(FakeJob(hit=ON_SPARES), nic(0, minute / 60))
    assert outcome.lost_s == {0: pytest.approx(HOUR + 60 * since_min)}


def test_a_restart_counts_as_a_checkpoint() -> None:
    """Stopped at 120 min for 60 min, again at 185: five minutes are lost, since the job started at 180 min."""
    outcome = run(FakeJob(hit=ON_SPARES), nic(0, 2), nic(1, 185 / 60))
    assert outcome.lost_s == {0: pytest.approx(HOUR), 1: pytest.approx(HOUR + 300)}


def test_a_restart_without_spare_parts_goes_on_with_what_is_left() -> None:
    """Stopped from 2 h to 3 h, slow until the repair at 6 h."""
    assert run(FakeJob(hit=RESTARTS), nic(0, 2, 6)).lost_total_s == pytest.approx(HOUR + 3 * HOUR * 0.1 / 1.1)


def test_a_job_that_stands_still_is_not_hit_again() -> None:
    """What fails ten minutes into the restart is among the parts that are replaced; without spares it counts after."""
    assert run(FakeJob(hit=ON_SPARES), nic(0, 2), nic(1, 2.2)).lost_s == {0: pytest.approx(HOUR)}
    lost = run(FakeJob(hit=RESTARTS), nic(0, 2, 2.1), nic(1, 2.2, 4)).lost_s
    assert lost == {0: pytest.approx(HOUR), 1: pytest.approx(HOUR * 0.1 / 1.1)}


def test_replaced_parts_do_not_come_back_with_the_old_ones_repair() -> None:
    """The NIC that stands in fails at 10 h; the repair of the replaced one at 11 h does not end that outage."""
    first = nic(0, 2, 11)
    assert run(FakeJob(hit=ON_SPARES), first, nic(0, 10, 12)).lost_s == {
        0: pytest.approx(HOUR),
        1: pytest.approx(HOUR),
    }


def test_dropped_ranks_stay_away_after_the_repair() -> None:
    """h + (22 h - h) s/(1+s): a repair after 4 h changes nothing, and the incident goes on to blame."""
    outcome = run(FakeJob(drops=True), nic(0, 2, 6))
    assert outcome.lost_s == {0: pytest.approx(10 + (22 * HOUR - 10) * 0.1 / 1.1)}


def test_a_job_that_cannot_go_on_waits_for_the_repair_and_goes_back_to_its_checkpoint() -> None:
    """A server without NICs from 130 min on for 5 h: those, and the ten minutes since the checkpoint."""
    outcome = run(FakeJob(), Incident("server1", 130 * 60.0, 130 * 60.0 + 5 * HOUR))
    assert outcome.lost_s == {0: pytest.approx(5 * HOUR + 600)}


def test_a_job_that_cannot_go_on_stands_at_least_for_its_restart() -> None:
    """A server is away for one minute; detection, isolation and loading take 59 min all the same."""
    assert CRASH_S == 59 * 60
    assert run(FakeJob(), Incident("server1", 2 * HOUR, 2 * HOUR + 60)).lost_s == {0: pytest.approx(CRASH_S)}


def test_a_job_that_starts_anew_has_all_its_ranks_again() -> None:
    """Ranks were dropped at 2 h; at 4 h a server goes away for 2 h; then all have NICs: nothing is lost after 6 h."""
    lost = run(FakeJob(drops=True, extra_s=0), nic(0, 2, 3), Incident("server1", 4 * HOUR, 6 * HOUR)).lost_s
    assert lost[0] + lost[1] == pytest.approx(2 * HOUR * 0.1 / 1.1 + 2 * HOUR)


@pytest.mark.parametrize(("down_s", "until_h"), [(1.0, 0.0), (60.0, 22.0)])
def test_a_port_that_the_strategy_does_not_recover_stays_unused(down_s: float, until_h: float) -> None:
    """nccl-failover takes a port back within its budget of attempts (seconds), and after that never."""
    job = FakeJob(extra_s=0, strategy=NcclFailover())
    lost = run(job, Incident("server0.nic0", 2 * HOUR, 2 * HOUR + down_s)).lost_total_s
    assert lost == pytest.approx(until_h * HOUR * 0.1 / 1.1, abs=3.0)
    assert lost > down_s * 0.1 / 1.1


def test_the_baseline_sees_no_failure() -> None:
    """Ideal loses nothing, whatever fails."""
    assert run(FakeJob(strategy=Ideal()), nic(0, 2, 6), Incident("server0", HOUR)).lost_total_s == 0


@pytest.mark.parametrize("course", [(0.0, 30.0), (24.0, 0.0), (math.nan, 30.0), (math.inf, 30.0)])
def test_a_course_needs_a_length_and_checkpoints(course: tuple[float, float]) -> None:
    """One line names the key."""
    with pytest.raises(InputError, match=r"(hours|checkpoint_min): .*; write a number above 0"):
        Course(*course)


INCIDENTS = st.lists(
    st.tuples(
        st.sampled_from(["server0.nic0", "server0.nic1", "server1.nic0", "rail2", "server0", "server0.nic3.cable"]),
        st.floats(-HOUR, 24 * HOUR),
        st.one_of(st.floats(0.1, 12 * HOUR), st.just(math.inf)),
        st.sampled_from([0.0, 0.0, 0.5]),
    ),
    max_size=6,
)
JOBS = st.sampled_from(
    [
        {},
        {"drops": True},
        {"hit": ON_SPARES},
        {"hit": RESTARTS},
        {"strategy": NcclFailover()},
        {"slow": 0.0, "extra_s": 0.0},
        {"extra_s": -1.0},
    ]
)


@given(INCIDENTS, JOBS)
def test_work_and_losses_make_up_the_whole_time(drawn: list[tuple[str, float, float, float]], kind: dict) -> None:  # type: ignore[type-arg]
    """done + sum of all losses = H; every loss has an incident of the course to blame."""
    incidents = [Incident(name, begin, begin + length, state) for name, begin, length, state in drawn]
    outcome = run(FakeJob(**kind), *incidents)
    assert outcome.done_s + outcome.lost_total_s == pytest.approx(24 * HOUR, rel=1e-9)
    assert set(outcome.lost_s) <= set(range(len(incidents)))
    assert -2.0 * len(incidents) <= outcome.lost_total_s <= 24 * HOUR * (1 + 1e-12)


@given(st.lists(st.floats(0.1, 23.0), min_size=2, max_size=6, unique=True).map(sorted))
def test_cutting_an_outage_into_pieces_changes_nothing_where_hits_are_free(times_h: list[float]) -> None:
    """An outage as pieces that follow each other at once: the state is the same all the time."""
    whole = run(FakeJob(extra_s=0), nic(0, times_h[0], times_h[-1])).lost_total_s
    pieces = [nic(0, a, b) for a, b in pairwise(times_h)]
    assert run(FakeJob(extra_s=0), *pieces).lost_total_s == pytest.approx(whole)
