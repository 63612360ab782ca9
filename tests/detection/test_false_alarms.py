"""False alarms of probes under load: the closed form, and the queue itself."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.detection.false_alarms import (
    Queue,
    Trials,
    alarms_per_hour,
    late_share,
    most_alarms_per_hour,
    port_queue,
    simulate_alarms,
    trials_of,
)
from r2cc_simai.errors import InputError


def test_within_one_service_time():
    """t < 1: the sum has one term, P(W > t) = 1 - (1-u) e^{ut}; at 0 the port is busy with probability u."""
    for u in (0.1, 0.5, 0.9):
        assert late_share(Queue(u, 1.0), 0.0) == pytest.approx(u)
        assert late_share(Queue(u, 1.0), 0.7) == pytest.approx(1 - (1 - u) * math.exp(0.7 * u))


@given(u=st.floats(0.01, 0.99), t=st.floats(0, 30), more=st.floats(0.01, 5))
def test_a_longer_deadline_and_less_load_never_hurt(u, t, more):
    """P(W > t) is a probability, falls with t and rises with u."""
    share = late_share(Queue(u, 1.0), t)
    assert 0 <= late_share(Queue(u, 1.0), t + more) <= share <= 1
    assert late_share(Queue(0.9 * u, 1.0), t) <= share + 1e-12


@pytest.mark.parametrize("u", [0.3, 0.6, 0.9, 0.99])
def test_sum_and_asymptote_meet(u):
    """Where one formula hands over to the other (t = 6) they differ by less than 10^-4 of the value."""
    below, above = late_share(Queue(u, 1.0), 6 - 1e-9), late_share(Queue(u, 1.0), 6 + 1e-9)
    assert below == pytest.approx(above, rel=1e-4)


def test_the_mean_wait_is_that_of_an_md1_queue():
    """The integral of P(W > t) is u / (2 (1-u)) service times (Pollaczek-Khinchine)."""
    for u in (0.3, 0.8):
        t = np.linspace(0, 200, 40_001)
        mean = np.trapezoid([late_share(Queue(u, 1.0), x) for x in t], t)
        assert mean == pytest.approx(u / (2 * (1 - u)), rel=1e-3)


def test_one_miss_is_enough():
    """m = 1: every late answer is an alarm, q per trial."""
    queue, trials = Queue(0.8, 1e-5), Trials(0.1, 1e-4, 1)
    assert alarms_per_hour(queue, trials) == pytest.approx(36_000 * late_share(queue, 1e-4))
    assert alarms_per_hour(queue, trials) == pytest.approx(most_alarms_per_hour(queue, trials))


def test_no_load_no_alarm():
    """u = 0."""
    assert alarms_per_hour(Queue(0.0, 1e-5), Trials(1e-3, 1e-6, 1)) == 0


@pytest.mark.parametrize(("deadline", "misses"), [(4.0, 1), (2.5, 2), (1.5, 3)])
def test_the_queue_agrees_with_the_closed_form(deadline, misses):
    """Probes 16 times the queue's memory apart: 4 standard errors of a Poisson count.

    u = 0.6, 10 us a piece, memory 10 us / 0.4^2 = 62.5 us, one probe every 1 ms.
    """
    queue = Queue(0.6, 1e-5)
    trials = Trials(1e-3, deadline * 1e-5, misses)
    hours = 0.02
    expected = alarms_per_hour(queue, trials)
    counted = simulate_alarms(queue, trials, hours, seed=1)
    assert expected * hours > 200
    assert counted == pytest.approx(expected, abs=4 * math.sqrt(expected / hours))
    assert simulate_alarms(queue, trials, hours, seed=1) == counted


def test_probes_in_quick_succession_are_late_together():
    """h100 at 95%: the queue remembers 4 ms and probes come every 0.5 ms, so alarms come in bursts.

    They are far above the independent rate, and no more than q / (m I).
    """
    cluster = load_cluster("h100")
    queue, trials = port_queue(cluster, 0.95), trials_of(cluster)
    assert queue.forgets_s > trials.interval_s
    counted = simulate_alarms(queue, trials, 0.01, seed=3)
    assert 2 * alarms_per_hour(queue, trials) < counted < 1.3 * most_alarms_per_hour(queue, trials)


def test_more_misses_make_fewer_false_alarms():
    """Each further miss that is asked for divides the independent rate by about q."""
    queue = port_queue(load_cluster("h100"), 0.9)
    rates = [alarms_per_hour(queue, Trials(5e-4, 5e-4, m)) for m in (1, 2, 3)]
    q = late_share(queue, 5e-4)
    assert [rates[1] / rates[0], rates[2] / rates[1]] == pytest.approx([q, q], rel=1e-3)


def test_which_mechanisms_load_can_fool():
    """Probes, and retry timeouts in principle; not a fixed delay."""
    assert trials_of(load_cluster("h100")) == Trials(5e-4, 5e-4, 2)
    assert trials_of(load_cluster("r7525")).misses == 8
    assert trials_of(load_cluster("uniform")) is None


def test_wrong_loads_are_refused():
    """One line."""
    for u in (-0.1, 1.0, math.nan):
        with pytest.raises(InputError, match="from 0 to below 1"):
            Queue(u, 1.0)
    with pytest.raises(InputError, match="NIC-hours"):
        simulate_alarms(Queue(0.5, 1.0), Trials(1.0, 1.0, 1), 0.0)
