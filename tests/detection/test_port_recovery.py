"""NCCL's port recovery: when a port is used again, and why it sometimes never is.

Batches leave the sender 0.2, 5.2, 10.2, 15.2 and 20.2 s after it knew; two in a row must arrive. The receiver's
attempts fail 0.2, 4.2, 8.2, 12.2 and 16.2 s after it knew, later by what it hears.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.detection.outage import Outage
from r2cc_simai.detection.port_recovery import Timers, recover_port


def outage(up_s, *, sender_s=0.0, receiver_s=0.0, again=()):
    """A port that failed at 0 and is back at `up_s`; `again` lists further spans in which it works."""
    spans = ((up_s, again[0] if again else math.inf), *zip(again[1::2], [*again[2::2], math.inf], strict=False))
    return Outage("server0.nic0", 0.0, sender_s, receiver_s, spans)


@pytest.mark.parametrize(("up_s", "recovered_s"), [(0.1, 5.2), (0.3, 10.2), (5.1, 10.2), (6.0, 15.2), (10.1, 15.2)])
def test_two_batches_in_a_row_recover_a_port(up_s, recovered_s):
    """The first batch after the repair and the next one, 5 s later; one recovery is counted."""
    found = recover_port(outage(up_s), Timers())
    assert found.recovered_s == pytest.approx(recovered_s)
    assert found.recoveries == 1
    assert found.rounds == 1


@pytest.mark.parametrize("up_s", [10.3, 12.0, 16.0])
def test_a_receiver_that_has_given_up_is_not_told_by_the_sender(up_s):
    """nccl#2157: the sender has attempts left when the port is back, the receiver's run out: never used again."""
    found = recover_port(outage(up_s), Timers())
    assert found.recovered_s is None
    assert (found.recoveries, found.failed_attempts) == (0, 5)
    assert "of the receiver were used up" in found.reason


def test_a_skew_of_the_ends_uses_up_the_sender_first():
    """nccl#2157: the port is back after 1 s, but the receiver begins 19 s late and hears one batch only."""
    found = recover_port(outage(1.0, receiver_s=19.0), Timers())
    assert found.recoveries == 0
    assert "5 recovery attempts of the sender were used up 25.2 s after the failure" in found.reason
    assert recover_port(outage(1.0, receiver_s=10.5), Timers()).recovered_s == pytest.approx(20.2)


def test_the_attempt_budget_is_a_parameter():
    """12 attempts cover the skew and the late repair."""
    assert recover_port(outage(12.0), Timers(attempts=12)).recoveries == 1
    assert recover_port(outage(1.0, receiver_s=19.0), Timers(attempts=12)).recoveries == 1


def test_an_outage_of_hours_stays_degraded():
    """nccl#2323: after 4 hours both ends have long given up; the answer comes at once and says so."""
    found = recover_port(outage(4 * 3600.0), Timers())
    assert (found.recoveries, found.recovered_s, found.rounds) == (0, None, 1)
    assert "of both ends were used up 25.2 s after the failure" in found.reason
    assert "stays unused" in found.note


def test_a_pause_between_rounds_brings_it_back():
    """nccl#2323 asks for a back-off: 60 s, 120 s, ... up to an hour; the port is used within two hours."""
    found = recover_port(outage(4 * 3600.0), Timers(pause_s=60.0))
    assert found.recoveries == 1
    assert found.rounds > 5
    assert 0 < found.recovered_s - 4 * 3600 < 2 * 3600


def test_an_address_that_changes_with_the_flap_is_a_failed_attempt():
    """nccl PR#2183: the first batch after the repair gets lost, recovery comes one attempt later; all lost: never."""
    plain, changed = (recover_port(outage(0.3), Timers(lost_attempts=n)) for n in (0, 1))
    assert changed.recovered_s - plain.recovered_s == pytest.approx(5.0)
    assert changed.failed_attempts == plain.failed_attempts + 1
    assert recover_port(outage(0.3), Timers(lost_attempts=5)).recoveries == 0


def test_a_port_that_flaps_must_work_for_two_batches():
    """Up at 4 s, down from 6 to 9 s: the batches at 5.2 and 10.2 s arrive.

    Down until 11 s the one at 10.2 s does not, and the receiver gives up at 19.2 s, before the one at 20.2 s.
    """
    found = recover_port(outage(4.0, again=(6.0, 9.0)), Timers())
    assert found.recovered_s == pytest.approx(10.2)
    assert recover_port(outage(4.0, again=(6.0, 11.0)), Timers()).recoveries == 0
    assert recover_port(outage(4.0, again=(6.0, 11.0)), Timers(attempts=6)).recovered_s == pytest.approx(20.2)


@given(
    up=st.floats(0.0, 1e5),
    skew=st.floats(0.0, 100.0),
    attempts=st.integers(1, 20),
    lost=st.integers(0, 5),
    pause=st.sampled_from([0.0, 1.0, 30.0]),
)
def test_recovery_always_ends_and_never_before_the_repair(up, skew, attempts, lost, pause):
    """It terminates, counts one recovery at most, and gives a reason where there is none."""
    found = recover_port(outage(up, receiver_s=skew), Timers(attempts=attempts, lost_attempts=lost, pause_s=pause))
    assert found.recoveries == (found.recovered_s is not None)
    assert found.recovered_s is None or found.recovered_s >= up
    assert bool(found.reason) == (found.recoveries == 0)


def test_a_single_attempt_never_recovers():
    """The receiver's first attempt fails at once."""
    assert recover_port(outage(0.0), Timers(attempts=1)).recoveries == 0
