"""A schedule, binding or event that makes no sense is refused with a line that names what is wrong."""

import numpy as np
import pytest

from r2cc_simai.collectives.binding import binding_of
from r2cc_simai.collectives.schedule import Pass, Schedule
from r2cc_simai.engine import _core
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Event

BOTH = pytest.mark.parametrize("backend", list(Backend))


def ints(*values):
    return np.array(values, dtype=np.int64)


GOOD = {"channel": 0, "route": 0, "lo": ints(0), "hi": ints(100), "start": ints(0), "reduce_hops": 0, "copy_hops": 1}
ROW = (0, 0, 1, 0, 1, 1.0)  # channel, source, destination, their NICs, share


def schedule(routes=((0, 1),), size=100, **wrong):
    """Two good passes of one hop; `wrong` spoils the second, so that a message about pass 1 names the right one."""
    passes = (Pass(**GOOD), Pass(**{**GOOD, **wrong}))
    return Schedule(2, size, tuple(ints(*r) for r in routes), passes)


def test_the_good_schedule_is_good(cluster_of):
    """What the others spoil runs."""
    assert run_schedule(cluster_of(), schedule(), binding_of([ROW])).elapsed_s == pytest.approx(200 / 1e10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"route": 1}, "no such route"),
        ({"route": -1}, "no such route"),
        ({"routes": ((0, 1), (0, 2)), "route": 1}, "rank that does not exist"),
        ({"routes": ((0, 1), (0, -1)), "route": 1}, "rank that does not exist"),
        ({"routes": ((0, 1), (1, 1)), "route": 1}, "follows itself"),
        ({"routes": ((0, 1), (0, 1, 0)), "route": 1, "cyclic": True}, "follows itself"),
        ({"routes": ((0, 1), ()), "route": 1, "lo": ints(), "hi": ints(), "start": ints()}, "route needs a rank"),
        ({"routes": ((0, 1), (0,)), "route": 1}, "needs two ranks"),
        ({"reduce_hops": -1}, "hops must be >= 0"),
        ({"copy_hops": 2}, "past the end of the route"),
        ({"start": ints(1)}, "past the end of the route"),
        ({"start": ints(2), "copy_hops": 0}, "starts outside the route"),
        ({"start": ints(-1)}, "starts outside the route"),
        ({"hi": ints(101)}, "outside the buffer"),
        ({"lo": ints(-1)}, "outside the buffer"),
        ({"lo": ints(60), "hi": ints(50)}, "outside the buffer"),
        ({"chunks": 0}, "chunks must be >= 1"),
        ({"weight": 0.0}, "weight must be > 0"),
        ({"weight": float("nan")}, "weight must be > 0"),
        ({"weight": float("inf")}, "weight must be > 0 and finite"),
        ({"after": (1,)}, "does not come before it"),
        ({"after": (-1,)}, "does not come before it"),
    ],
)
def test_a_wrong_pass_is_named(wrong, message):
    """ValueError `pass 1: ...`, since pass 0 is good."""
    with pytest.raises(ValueError, match=f"pass 1: .*{message}"):
        _ = schedule(**wrong).core


def test_sections_of_unequal_length_are_refused():
    """As many lo as hi and start."""
    with pytest.raises(ValueError, match="unequal length"):
        _ = schedule(hi=ints(50, 100)).core


def test_a_negative_channel_is_refused():
    """Channels are numbered from 0."""
    with pytest.raises(ValueError, match="channel must be >= 0"):
        _ = schedule(channel=-1).core


def test_a_negative_buffer_is_refused():
    """Sizes are bytes >= 0."""
    with pytest.raises(ValueError, match="bytes must be >= 0"):
        _ = Schedule(2, -1, (ints(0, 1),), ()).core


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "channel 0, hop 0 -> 1: crosses servers but no NIC is bound to it"),
        ([(1, 0, 1, 0, 1, 1.0)], "channel 0, hop 0 -> 1: crosses servers but no NIC is bound to it"),
        ([(0, 0, 1, 0, 2, 1.0)], "NIC that does not exist"),
        ([(0, 0, 1, -1, 1, 1.0)], "NIC that does not exist"),
        ([(0, 0, 1, 1, 0, 1.0)], "NIC of another server"),
        ([(0, 0, 1, 0, 1, 0.5)], "shares must add up to 1"),
        ([(0, 0, 1, 0, 1, 0.7), (0, 0, 1, 0, 1, 0.7)], "shares must add up to 1"),
        ([(0, 0, 1, 0, 1, 0.0)], "share must be > 0"),
        ([(0, 0, 1, 0, 1, 1.5), (0, 0, 1, 0, 1, -0.5)], "share must be > 0"),
    ],
)
@BOTH
def test_a_wrong_binding_is_named(rows, message, backend, cluster_of):
    """InputError with channel and hop."""
    with pytest.raises(InputError, match=message):
        run_schedule(cluster_of(), schedule(), binding_of(rows), backend=backend)


@BOTH
def test_a_hop_between_isolated_rails_is_refused(backend, cluster_of):
    """NIC 0 of server 0 cannot reach NIC 1 of server 1 where each rail has a switch of its own (nccl issue 2097)."""
    cluster = cluster_of(nics=2, fabric={"kind": "switch-per-rail"})
    with pytest.raises(InputError, match=r"server0\.nic0 and server1\.nic1 are on different rails"):
        run_schedule(cluster, schedule(), binding_of([(0, 0, 1, 0, 3, 1.0)]), backend=backend)


@BOTH
def test_more_ranks_than_gpus_are_refused(backend, cluster_of):
    """A schedule for 3 ranks on 2 GPUs."""
    three = Schedule(3, 100, (ints(0, 1),), (Pass(**GOOD),))
    with pytest.raises(InputError, match="more ranks than the cluster has GPUs"):
        run_schedule(cluster_of(), three, binding_of([ROW]), backend=backend)


@BOTH
@pytest.mark.parametrize("nic", [2, -1])
def test_an_event_on_a_nic_that_does_not_exist_is_refused(nic, backend, cluster_of):
    """The cluster has NICs 0 and 1."""
    with pytest.raises(InputError, match=f"NIC {nic}, which does not exist"):
        run_schedule(cluster_of(), schedule(), binding_of([ROW]), (Event(nic, 0.0),), backend)


@pytest.mark.parametrize("fraction", [-0.1, float("nan")])
def test_an_event_to_a_negative_fraction_is_refused(fraction):
    """0 is down, 1 is healthy."""
    with pytest.raises(ValueError, match="fraction must be >= 0"):
        _core.NicEvent(nic=0, fraction=fraction)


def test_a_binding_keeps_its_rows():
    """What goes in comes out: rows of (channel, src, dst, src NIC, dst NIC, share)."""
    rows = [(0, 0, 1, 0, 2, 0.25), (0, 0, 1, 1, 3, 0.75)]
    core = binding_of(rows).core
    assert len(core) == 2
    assert core.rows() == rows
