"""Broken connections in mid-collective: exact results, and as many recoveries as connections broke.

Rings over servers with a GPU each: NIC k of every server carries channel k, so a dead NIC breaks two connections, the
one that comes in and the one that goes out. All others stall, since a ring does, but must not take that for a break.
"""

import os
import random
import signal
import time

import pytest

from r2cc_simai.lab.incoming import Incoming
from r2cc_simai.lab.operations import Operations
from r2cc_simai.lab.transport import Kind, Link
from r2cc_simai.lab.work import Learn, Load, Prepared, Result, Start

RAILS = {"kind": "switch-per-rail"}
SIZE = 6_000_000
PER_NIC = SIZE // 3 * 4 // 3  # bytes that a NIC receives, and sends as many: 2(n-1)/n of its third, n = 3
TIMEOUT_S = 0.4


def errors_of(results):
    return [(r.error, r.wrong_elements) for r in results]


def recoveries_of(results):
    return [one for r in results for one in r.recoveries]


RIGHT = [(None, 0)] * 3


@pytest.fixture
def ring(loopback, cluster_of):
    """Return the ranks of three servers with three NICs on rails, behind a switch."""
    cluster = cluster_of(servers=3, nics=3, gpus=1, fabric=RAILS)
    return loopback(cluster, switch=True, ack_timeout_s=TIMEOUT_S)


@pytest.mark.parametrize("seed", range(6))
def test_a_nic_falls_silent(seed, ring, planned):
    """At a drawn byte count of a drawn NIC: both connections move to its first backup, and the NIC is blamed."""
    draw = random.Random(seed)
    nic, at = draw.randrange(9), draw.randrange(1, PER_NIC)
    unit = draw.choice([8_192, 50_000, 131_072])
    ring.prepare(planned(ring.cluster, "ideal", size=SIZE, unit_bytes=unit))
    assert errors_of(ring.iterate(0)) == RIGHT
    ring.switch.cut_at[nic] = (ring.switch.passed[nic] + at, "silent")
    results = ring.iterate(1)
    assert errors_of(results) == RIGHT
    moved = recoveries_of(results)
    server = nic // 3
    assert sorted((m.src, m.dst) for m in moved) == sorted([((server - 1) % 3, server), (server, (server + 1) % 3)])
    backup = ring.cluster.nics[nic].backups[0]
    for m in moved:
        assert nic in m.old_nics
        assert m.cause in ("ack-timeout", "notice")
        assert {n % 3 for n in m.new_nics} == {backup % 3}
        assert 0 <= m.resent_bytes <= SIZE // 3
        assert m.detected_s < m.resumed_s
    assert {notice.nic for notice in ring.notices} == {nic}


def test_the_time_to_find_a_silent_nic(ring, planned):
    """Silence is noticed after the timeout, and no later than a tick and the probes' three beats after it."""
    ring.prepare(planned(ring.cluster, "ideal", size=SIZE))
    ring.iterate(0)
    ring.switch.cut_at[4] = (ring.switch.passed[4] + PER_NIC // 2, "silent")
    results = ring.iterate(1)
    first = min(m.detected_s for m in recoveries_of(results)) - min(r.start_s for r in results)
    assert TIMEOUT_S <= first <= 2 * TIMEOUT_S


def test_streams_stay_where_they_moved_until_there_is_a_new_plan(ring, planned):
    collective = planned(ring.cluster, "ideal", size=SIZE)
    ring.prepare(collective)
    ring.switch.cut_at[4] = (PER_NIC // 2, "silent")
    assert len(recoveries_of(ring.iterate(0))) == 2
    again = ring.iterate(1)
    assert (errors_of(again), recoveries_of(again)) == (RIGHT, [])
    ring.switch.dead.clear()
    ring.tell(Learn(4, True))
    before = ring.switch.passed[4]
    ring.prepare(collective)
    fresh = ring.iterate(2)
    assert (errors_of(fresh), recoveries_of(fresh)) == (RIGHT, [])
    assert ring.switch.passed[4] - before > 2 * PER_NIC


def test_connections_are_reset(ring, planned):
    """An error of the connections alone: they move, and no NIC is blamed."""
    ring.prepare(planned(ring.cluster, "ideal", size=SIZE))
    ring.switch.cut_at[4] = (PER_NIC // 2, "reset")
    results = ring.iterate(0)
    assert errors_of(results) == RIGHT
    assert [(m.cause, 4 in m.old_nics) for m in recoveries_of(results)] == [("reset", True)] * 2
    assert ring.notices == []


def test_the_runner_says_that_a_nic_is_down(ring, planned):
    """The out-of-band notice: both ends move at once, although everything still passes."""
    ring.prepare(planned(ring.cluster, "ideal", size=6 * SIZE))
    ring.switch.cut_at[4] = (PER_NIC // 2, lambda: ring.tell(Learn(4, False)))
    results = ring.iterate(0)
    assert errors_of(results) == RIGHT
    assert [(m.cause, 4 in m.old_nics) for m in recoveries_of(results)] == [("notice", True)] * 2


def test_only_the_server_of_the_nic_knows(ring, planned):
    """Rank 1 learns that its NIC 4 is down: it moves what it sends, and tells rank 0, which sends to it, over a backup.

    The buffer is so large that nothing has ended by the time at which they know.
    """
    ring.prepare(planned(ring.cluster, "ideal", size=6 * SIZE))
    ring.switch.cut_at[4] = (PER_NIC // 2, lambda: ring.controls[1].send(Learn(4, False)))
    results = ring.iterate(0)
    assert errors_of(results) == RIGHT
    assert [(m.cause, m.src, 4 in m.old_nics) for m in recoveries_of(results)] == [
        ("notice", 0, True),
        ("notice", 1, True),
    ]
    assert all(m.detected_s - results[0].start_s < TIMEOUT_S for m in recoveries_of(results))


def test_one_nic_and_then_its_backup(ring, planned):
    """NIC 4 and then the NIC to which its two connections have moved, once its own traffic is over: they move again."""
    ring.prepare(planned(ring.cluster, "ideal", size=SIZE))
    backup = ring.cluster.nics[4].backups[0]
    ring.switch.cut_at[4] = (PER_NIC // 4, "silent")
    ring.switch.cut_at[backup] = (2 * PER_NIC + PER_NIC // 2, "silent")
    results = ring.iterate(0)
    assert errors_of(results) == RIGHT
    moved = recoveries_of(results)
    last = ({3, 4, 5} - {4, backup}).pop() % 3
    for hop in ((0, 1), (1, 2)):
        own = [m for m in moved if (m.src, m.dst) == hop]
        # A stream whose way to the backup breaks before it has resumed there goes on to the last NIC in one recovery.
        assert len(own) in (1, 2)
        assert (own[0].channel, own[0].old_nics[0] % 3, own[-1].new_nics[0] % 3) == (1, 1, last)
    assert {notice.nic for notice in ring.notices} == {4, backup}


def test_the_last_nic_of_a_server(ring, planned):
    """Out of scope for every strategy, and so an error that names hop and NICs, not a hang."""
    ring.prepare(planned(ring.cluster, "ideal", size=SIZE))
    for nic in (3, 4, 5):
        ring.switch.cut_at[nic] = (PER_NIC // 2, "silent")
    results = ring.iterate(0)
    assert all(r.error for r in results)
    assert any("no connection is left after" in r.error for r in results), [r.error for r in results]


@pytest.mark.parametrize("strategy", ["r2cc-allreduce", "optcc:k=4", "balance"])
def test_another_nic_breaks_under_a_plan_for_a_broken_one(strategy, loopback, cluster_of, planned):
    """NIC 1 is known to be down; NIC 5 of server 1 falls silent in the middle. Whatever ran over it has moved."""
    cluster = cluster_of(servers=4, nics=3, gpus=2, fabric=RAILS)
    ranks = loopback(cluster, switch=True, ack_timeout_s=TIMEOUT_S)
    collective = planned(cluster, strategy, size=SIZE, lost={1: 0.0})
    ranks.prepare(collective, frozenset({1}))
    assert errors_of(ranks.iterate(0)) == [(None, 0)] * 8
    ranks.switch.cut_at[5] = (ranks.switch.passed[5] + 400_000, "silent")
    results = ranks.iterate(1)
    assert errors_of(results) == [(None, 0)] * 8
    moved = recoveries_of(results)
    assert moved
    assert all(5 in m.old_nics and 5 not in m.new_nics for m in moved)
    assert not any({1, 5} & set(m.new_nics) for m in moved)


def test_resuming_one_unit_early_is_caught(loopback, cluster_of, planned, monkeypatch):
    """The negative control: a receiver that wants a unit again which it has already added has it in its sum twice.

    In a ReduceScatter over two servers whatever comes is added to a result. In a longer ring, or an AllReduce, a wrong
    partial sum may have been passed on before it was wrong, and be overwritten afterwards. And no word of what has come
    reaches the sender over NIC 4: it does not keep what it knows has come.
    """
    first_missing, complete, post, seen = Incoming.first_missing, Operations.complete, Link.post, set()

    def no_word(self, kind, iteration, value):
        if kind != Kind.ACK or not self.uses(4):
            post(self, kind, iteration, value)

    def once(self, op):
        if op not in seen:
            seen.add(op)
            complete(self, op)

    def one_early(self):
        first = first_missing(self)
        if not first:
            return 0
        self._come[first - 1] = 0
        self._missing += 1
        return first - 1

    monkeypatch.setattr(Operations, "complete", once)
    monkeypatch.setattr(Incoming, "first_missing", one_early)
    monkeypatch.setattr(Link, "post", no_word)
    cluster = cluster_of(servers=2, nics=3, gpus=1, fabric=RAILS)
    ranks = loopback(cluster, switch=True, ack_timeout_s=TIMEOUT_S)  # forked, so the ranks have the wrong methods
    ranks.prepare(planned(cluster, "ideal", what="reduce_scatter", size=SIZE, unit_bytes=16_384))
    both_ways = 2 * SIZE // 3 // 2
    ranks.switch.cut_at[4] = (both_ways // 4, "silent")  # less than one way alone carries: neither stream has ended
    results = ranks.iterate(0)
    assert len(recoveries_of(results)) == 2
    assert sum(r.wrong_elements for r in results) > 0
    assert "in place of" in next(r.error for r in results if r.error)


def test_a_rank_that_gets_no_cpu_time_is_not_a_broken_nic(loopback, cluster_of, planned):
    """Rank 1 stands still for three timeouts in the middle: its kernel still acknowledges, and nothing moves."""
    ranks = loopback(cluster_of(servers=3, nics=3, fabric=RAILS), ack_timeout_s=0.2)
    ranks.prepare(planned(ranks.cluster, "ideal", size=90_000_000))
    ranks.tell(Load(0))
    ranks.gather_loaded()
    ranks.tell(Start(time.monotonic()))
    time.sleep(0.05)
    os.kill(ranks.processes[1].pid, signal.SIGSTOP)
    time.sleep(0.6)
    os.kill(ranks.processes[1].pid, signal.SIGCONT)
    results = ranks.gather(Result)
    assert max(r.seconds for r in results) > 0.6
    assert (errors_of(results), recoveries_of(results), ranks.notices) == (RIGHT, [], [])


def test_a_rank_that_hangs(loopback, cluster_of, planned):
    """Rank 1 of one server stops: rank 0 says what it waits for once nothing has moved for the limit."""
    ranks = loopback(cluster_of(servers=1, gpus=2), stall_timeout_s=0.5)
    ranks.prepare(planned(ranks.cluster, "ideal", size=SIZE))
    ranks.tell(Load(0))
    ranks.gather_loaded()
    os.kill(ranks.processes[1].pid, signal.SIGSTOP)
    ranks.controls[0].send(Start(0.0))
    assert ranks.controls[0].poll(10)
    result = ranks.controls[0].recv()
    ranks.processes[1].kill()
    assert isinstance(result, Result)
    assert result.error.startswith("rank 0: no progress for 0.5 s; waits for channel 0, rank 1 to rank 0: unit 1 of ")


def test_a_rank_that_dies(loopback, cluster_of, planned):
    """A crash is out of scope: the others end with an error that names the hop, and are ready for a next plan."""
    ranks = loopback(cluster_of(servers=3, nics=2, fabric=RAILS), stall_timeout_s=2.0, ack_timeout_s=TIMEOUT_S)
    ranks.prepare(planned(ranks.cluster, "ideal", size=SIZE))
    ranks.tell(Load(0))
    ranks.gather_loaded()
    ranks.processes[2].kill()
    ranks.processes[2].join()
    for rank in (0, 1):
        ranks.controls[rank].send(Start(0.0))
    for rank in (0, 1):
        assert ranks.controls[rank].poll(10)
        assert "no connection is left" in ranks.controls[rank].recv().error


def test_connecting_to_a_rank_that_is_gone(loopback, cluster_of, planned):
    ranks = loopback(cluster_of(servers=2, nics=2, fabric=RAILS), connect_timeout_s=0.5)
    ranks.processes[1].kill()
    ranks.processes[1].join()
    from r2cc_simai.lab.work import Prepare

    ranks.controls[0].send(Prepare(planned(ranks.cluster, "ideal", size=SIZE)))
    assert ranks.controls[0].poll(10)
    answer = ranks.controls[0].recv()
    assert isinstance(answer, Prepared)
    assert answer.error == (
        "rank 0: channel 0, rank 0 to rank 1: not connected within 0.5 s over "
        "NIC 0 to NIC 2 (ECONNREFUSED), NIC 1 to NIC 3 (ECONNREFUSED)"
    )


def test_the_ranks_end_with_the_runner(loopback, cluster_of):
    ranks = loopback(cluster_of(servers=2))
    for control in ranks.controls:
        control.close()
    for process in ranks.processes:
        process.join(5)
        assert process.exitcode == 0
    ranks.controls.clear()
