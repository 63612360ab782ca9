"""When a job knows of its failures: by the component that failed, and by the phases of probe timers."""

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.detection.clock import Clock
from r2cc_simai.engine.run import Backend
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.timeline import Component, Event
from r2cc_simai.runners.collective import Job, run_job
from r2cc_simai.strategies.registry import parse_strategy

GIB = 2**30
MIB = 2**20
LINK = {"mechanism": "link-event", "event_ms": 3, "timeout_ms": 50, "retries": 1}
BOTH = pytest.mark.parametrize("backend", list(Backend))


@pytest.fixture
def linked(cluster_of):
    """Return 3 servers with 3 NICs of 1e10 B/s whose drivers report links in 3 ms, and retries within 100 ms."""
    return cluster_of(servers=3, nics=3, failover={"detection": LINK, "notify_ms": 1, "migrate_ms": 1})


def view_of(clock, time_s, nic=0):
    return clock.view(time_s).fraction[nic]


def job(cluster, *fails, strategy="balance", size=768 * MIB, iterations=4, **more):
    timeline = parse_failures(fails, cluster)
    return run_job(cluster, parse_strategy(strategy), timeline, Job(size, iterations=iterations, **more))


@pytest.mark.parametrize(("component", "known_s"), [(Component.CABLE, 5e-3), (Component.PATH, 0.102)])
def test_a_view_knows_what_detection_has_found(component, known_s, linked):
    """A link that went down is known after 3 + 1 + 1 ms, a path in the fabric after 2 x 50 + 1 + 1 ms."""
    clock = Clock(linked, (Event(0, 0.0, 1.0, component=component),))
    assert view_of(clock, 1.0 + known_s - 1e-6) == 1
    assert view_of(clock, 1.0 + known_s + 1e-6) == 0
    assert clock.delay_s(0.0) == pytest.approx(known_s)
    assert clock.delay_s(1.0 + known_s + 1e-6) is None


@BOTH
def test_a_broken_path_costs_more_than_a_broken_cable(backend, linked):
    """The same cut, late in the iteration, with 5 and 102 ms of detection: 97 ms apart."""
    healthy = job(linked).steady.time_s
    cable, path = (
        job(linked, f"server0.nic0.{part}@{0.98 * healthy:.6f}", iterations=1, backend=backend).cut.time_s
        for part in ("cable", "path")
    )
    assert path - cable == pytest.approx(0.097, rel=0.01)


@BOTH
def test_failures_of_two_kinds_in_one_collective(backend, linked):
    """Both take the longer of the two delays; what was found before keeps its own."""
    healthy = job(linked).steady.time_s
    fails = ("server0.nic0.cable@0.001", f"server1.nic1.path@{3.5 * healthy:.6f}")
    result = job(linked, *fails, iterations=6, backend=backend)
    assert result.iterations[0].time_s == pytest.approx(2 * healthy, rel=0.05)  # found in 5 ms, not in 102
    assert [i.cut for i in result.iterations].count(True) >= 2
    both = job(linked, "server0.nic0.cable@0.001", "server1.nic1.path@0.002", iterations=1, backend=backend)
    alone = job(linked, "server1.nic1.path@0.002", iterations=1, backend=backend)
    assert both.cut.time_s >= alone.cut.time_s


def test_a_dead_backup_that_was_found_long_ago_is_not_used_again(linked):
    """nic0's link is found in 5 ms; 20 ms later nic2's path breaks (102 ms): its traffic goes to nic1, not to nic0."""
    result = job(linked, "server0.nic0.cable@0.001", "server0.nic2.path@0.2", strategy="hot-repair", iterations=6)
    last = result.iterations[-1]
    assert last.bytes.tx[0] == last.bytes.tx[2] == 0
    assert last.bytes.tx[1] > 0


def test_drawn_phases_differ_from_failure_to_failure_and_repeat_with_the_seed():
    """Delays between (m-1) I + 2 T and m I + 2 T, plus notice and migration; equal seeds, equal delays."""
    spec = load_cluster("h100").spec
    probes = spec.failover.detection.model_copy(update={"phase": "drawn", "interval_ms": 100.0})

    def delays(seed):
        failover = spec.failover.model_copy(update={"detection": probes.model_copy(update={"seed": seed})})
        cluster = Cluster("drawn", spec.model_copy(update={"failover": failover}))
        return [Clock(cluster, (Event(nic, 0.0, 1.0),)).delay_s(0.0) for nic in range(8)]

    one = np.array(delays(1))
    assert one == pytest.approx(delays(1), abs=0)
    assert len(set(one)) == 8
    assert ((one >= 0.1015) & (one <= 0.2017)).all()
    assert delays(2) != delays(1)


@pytest.mark.parametrize("name", ["r7525", "h100"])
@pytest.mark.parametrize("strategy", ["hot-repair", "balance"])
def test_presets_keep_their_times(name, strategy):
    """A cluster with the fixed delay that its detection amounts to gives the same times, to the bit."""
    cluster = load_cluster(name)
    fixed = cluster.spec.failover.model_copy(update={"detection": None, "detection_ms": cluster.spec.failover.delay_ms})
    plain = Cluster(cluster.name, cluster.spec.model_copy(update={"failover": fixed}))
    nic = cluster.nics[1].full_name
    times = [
        [i.time_s for i in job(c, f"{nic}@0.001..0.5", strategy=strategy, size=GIB).iterations]
        for c in (cluster, plain)
    ]
    assert times[0] == times[1]
