"""When each end of a broken path knows, by mechanism, and which part it blames."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.spec import FailoverSpec
from r2cc_simai.detection.detect import detect, resume_delay_s
from r2cc_simai.detection.localise import Probes, answers, blamed, verdict
from r2cc_simai.detection.model import Failure, Part, Traffic
from r2cc_simai.failures.timeline import Component

RETRY = {"mechanism": "retry-timeout", "timeout_ms": 10, "retries": 7}
LINK = {"mechanism": "link-event", "event_ms": 3, "timeout_ms": 10, "retries": 7}
PROBES = {"mechanism": "probes", "interval_ms": 4, "misses": 3, "timeout_ms": 1}


def failover(detection=None, **keys):
    """A failover section with a notice of 0.5 ms and a migration of 0.25 ms."""
    times = {"notify_ms": 0.5, "migrate_ms": 0.25}
    return FailoverSpec.model_validate({"detection": detection, **times, **keys})


def known_ms(section, component=Component.NIC, traffic=None, **kind):
    """Milliseconds until the local and the remote end know."""
    found = detect(section, Failure(component, traffic or Traffic(), **kind))
    return pytest.approx([found.local.known_s * 1e3, found.remote.known_s * 1e3])


def test_a_fixed_delay():
    """5 ms, and the notice to the other end; nobody is blamed."""
    section = failover(detection_ms=5)
    assert known_ms(section) == [5, 5.5]
    assert detect(section, Failure(Component.NIC)).local.blames is None


def test_retry_timeouts_are_seen_by_the_sender_alone():
    """(7 + 1) 10 ms at the sender; the receiver is told. Both know by themselves where both send."""
    assert known_ms(failover(RETRY)) == [80, 80.5]
    assert known_ms(failover(RETRY), traffic=Traffic(None, 0.0)) == [80.5, 80]
    assert known_ms(failover(RETRY), traffic=Traffic(0.0, 0.0)) == [80, 80]


def test_retry_timeouts_begin_when_traffic_flows():
    """A sender that is idle for 2 s finds the failure 2 s later; without any traffic nobody ever does."""
    assert known_ms(failover(RETRY), traffic=Traffic(2.0, None)) == [2080, 2080.5]
    silent = detect(failover(RETRY), Failure(Component.CABLE, Traffic(None, None)))
    assert not silent.found
    assert math.isinf(silent.local.known_s)
    assert (silent.local.source, silent.local.blames) == ("nothing sent", None)


@pytest.mark.parametrize("component", [Component.NIC, Component.PORT, Component.CABLE])
def test_the_driver_reports_its_own_link(component):
    """3 ms at the server of the link; its peer knows by notice alone, whoever sends."""
    assert known_ms(failover(LINK), component, Traffic(None, None)) == [3, 3.5]


def test_the_link_of_the_other_end():
    """The same, seen from the other end."""
    assert known_ms(failover(LINK), Component.REMOTE_NIC) == [3.5, 3]


def test_a_path_inside_the_fabric_takes_down_no_link():
    """Retry timeouts find it: 80 ms, and nobody knows which part it is."""
    assert known_ms(failover(LINK), Component.PATH) == [80, 80.5]
    assert detect(failover(LINK), Failure(Component.PATH)).local.blames is None


def test_probes_at_the_worst_phase():
    """3 misses of 4 ms, 1 ms for the last reply, 1 ms to localise, and the other end's verdict: 14.5 ms at both."""
    assert known_ms(failover(PROBES)) == [14.5, 14.5]
    assert known_ms(failover(PROBES), traffic=Traffic(None, None)) == [14.5, 14.5]  # they need no traffic


@given(seed=st.integers(0, 1000))
def test_probes_at_a_drawn_phase(seed):
    """Between the first possible verdict, (m-1) I + 2 T + notice, and the worst one; the ends differ by a notice."""
    section = failover({**PROBES, "phase": "drawn", "seed": seed})
    found = detect(section, Failure(Component.NIC))
    times = [found.local.known_s * 1e3, found.remote.known_s * 1e3]
    assert 10.5 - 1e-9 <= max(times) <= 14.5 + 1e-9
    assert abs(times[0] - times[1]) <= 0.5 + 1e-9
    assert detect(section, Failure(Component.NIC)) == found  # the seed decides


def test_a_notice_spares_the_slower_end_its_probes():
    """An end that is told suspects at once: it is at most two notices behind the first one's result."""
    section = failover({**PROBES, "interval_ms": 1000, "phase": "drawn"})
    for seed in range(50):
        found = detect(section, Failure(Component.NIC), random.Random(seed))
        assert abs(found.local.known_s - found.remote.known_s) <= 0.5e-3 + 1e-12
        assert "own timer" in (found.local.source, found.remote.source)


@pytest.mark.parametrize("detection", [RETRY, LINK, PROBES])
@pytest.mark.parametrize("component", list(Component))
def test_traffic_moves_when_both_ends_know(detection, component):
    """The later of both ends, and the migration."""
    section = failover(detection)
    cluster = load_cluster("h100")
    cluster = type(cluster)("x", cluster.spec.model_copy(update={"failover": section}))
    found = detect(section, Failure(component))
    later = max(found.local.known_s, found.remote.known_s)
    assert resume_delay_s(cluster, component) == pytest.approx(later + 0.25e-3)
    assert found.resumes_s(0.25e-3) == pytest.approx(later + 0.25e-3)


@pytest.mark.parametrize("name", ["r7525", "a100", "h100", "hpn-h800", "uniform"])
def test_a_cluster_resumes_as_its_detection_says(name):
    """`Cluster.resume_delay_s` is that of a NIC under traffic, to the bit."""
    cluster = load_cluster(name)
    assert resume_delay_s(cluster, Component.NIC) == cluster.resume_delay_s


@pytest.mark.parametrize(("name", "delay_s"), [("r7525", 0.971), ("h100", 2.6e-3), ("a100", 2.6e-3)])
def test_presets(name, delay_s):
    """r7525: 8 tries of 121.25 ms are the 0.97 s of logs 01 and 08; R2CC's probes take milliseconds."""
    assert load_cluster(name).resume_delay_s == pytest.approx(delay_s, rel=1e-12)


@pytest.mark.parametrize(
    ("component", "part"),
    [
        (Component.NIC, Part.LOCAL_NIC),
        (Component.PORT, Part.CABLE),
        (Component.CABLE, Part.CABLE),
        (Component.PATH, Part.CABLE),
        (Component.REMOTE_NIC, Part.REMOTE_NIC),
    ],
)
def test_three_probes_name_the_part(component, part):
    """Both ends agree, since they exchange what they found (R2CC paper, three-point localisation)."""
    found = detect(failover(PROBES), Failure(component))
    assert (found.local.blames, found.remote.blames) == (part, part)


def test_without_a_third_nic_nobody_can_tell():
    """Two NICs that cannot reach each other know no more than that."""
    for component in Component:
        assert blamed(component, auxiliary=False) is None
    assert detect(failover(PROBES), Failure(Component.NIC, auxiliary=False)).found


@pytest.mark.parametrize(
    ("probes", "part"),
    [
        (Probes(False, False, True), Part.LOCAL_NIC),
        (Probes(False, True, False), Part.REMOTE_NIC),
        (Probes(False, True, True), Part.CABLE),
        (Probes(False, False, False), None),  # the third NIC is mute itself
        (Probes(True, False, True), None),  # it was a false alarm
    ],
)
def test_the_verdict_table(probes, part):
    """Local - remote, local - auxiliary, auxiliary - remote."""
    assert verdict(probes) is part


def test_a_driver_tells_a_dead_nic_from_a_dead_cable():
    """The probes are the same; the NIC that is still there has no link."""
    assert answers(Component.NIC) == answers(Component.CABLE)
    assert verdict(answers(Component.CABLE), local_link_down=True) is Part.CABLE
