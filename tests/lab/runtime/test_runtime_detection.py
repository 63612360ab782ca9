"""What is broken: the kernel's link events, and probes that tell the two ends of a silent connection apart."""

import contextlib
import os
import selectors
import subprocess
import time
from dataclasses import replace
from itertools import count

import pytest

from r2cc_simai.errors import MissingComponentError
from r2cc_simai.lab.detection import LinkMonitor, Prober
from r2cc_simai.lab.namespaces import inside, new_namespace, require_namespaces
from r2cc_simai.lab.work import Endpoint

NETS = count()
LIMIT_S = 5.0
NOWHERE = "127.0.0.99"  # nobody listens there: what is sent to it gets no answer


def endpoint_of(rank: int, servers: int, base: int) -> Endpoint:
    """One rank and one NIC a server, NIC k on server k, all on one rail."""
    net = 1 + (os.getpid() + base) % 250
    return Endpoint(
        rank=rank,
        servers=tuple(range(servers)),
        nic_servers={n: n for n in range(servers)},
        rails=dict.fromkeys(range(servers), 0),
        addresses={n: f"127.{net}.200.{1 + n}" for n in range(servers)},
        devices={},
        backups={},
        local="",
        base_port=23000,
        ack_timeout_s=0.15,
    )


@pytest.fixture
def verdict_on():
    """Return a function: whom rank 0 blames for silence between NICs 0 and 1 when some NICs do not answer."""

    def call(servers, silent, down=frozenset()):
        base = next(NETS)
        selector = selectors.DefaultSelector()
        verdicts = []
        ends = [endpoint_of(rank, servers, base) for rank in range(servers)]
        reach = {n: NOWHERE if n in silent or 0 in silent else a for n, a in ends[0].addresses.items()}
        ends[0] = replace(ends[0], addresses=reach | {0: ends[0].addresses[0]})
        probers = [Prober(end, selector, lambda pair, nics: verdicts.append((pair, nics))) for end in ends]
        with contextlib.ExitStack() as stack:
            stack.callback(selector.close)
            for prober in probers:
                stack.callback(prober.close)
            probers[0].ask((0, 1), set(down))
            probers[0].ask((0, 1), set(down))  # asked already
            limit = time.monotonic() + LIMIT_S
            while probers[0].busy:
                assert time.monotonic() < limit, "no verdict"
                for key, mask in selector.select(0.01):
                    key.data(mask)
                probers[0].tick(time.monotonic())
        assert [pair for pair, _ in verdicts] == [(0, 1)]
        return verdicts[0][1]

    return call


@pytest.mark.parametrize(
    ("servers", "silent", "blamed"),
    [
        (3, set(), ()),  # the other end answers: only that connection is broken
        (3, {1}, (1,)),  # a third server answers
        (4, {1, 2}, (1,)),
        (3, {0}, (0,)),  # nobody answers
        (3, {1, 2}, (0,)),
        (2, {1}, (0, 1)),  # there is nobody else to ask
        (2, set(), ()),
    ],
)
def test_who_is_to_blame(servers, silent, blamed, verdict_on):
    assert verdict_on(servers, silent) == blamed


def test_a_nic_that_is_known_to_be_down_is_not_asked(verdict_on):
    """Server 2's NIC is down: its silence says nothing about NIC 0."""
    assert verdict_on(3, {1, 2}, down={2}) == (0, 1)


def test_link_events_of_the_own_server():
    """A veth pair in a namespace: the NIC goes down with its own device, and without carrier; others do not matter."""
    try:
        require_namespaces()
    except MissingComponentError as reason:
        pytest.skip(str(reason))

    def ip(*words):
        subprocess.run(["ip", "link", *words], check=True)

    namespace = new_namespace()
    try:
        with inside(namespace):
            ip("add", "nic0", "type", "veth", "peer", "name", "port0")
            ip("add", "nic1", "type", "veth", "peer", "name", "port1")
            for device in ("nic0", "port0", "nic1", "port1"):
                ip("set", device, "up")
            seen = []
            end = replace(endpoint_of(0, 2, 0), devices={7: "nic0"})
            monitor = LinkMonitor(end, lambda nic, up: seen.append((nic, up)))

            def told(word, device):
                ip("set", device, word)
                limit = time.monotonic() + LIMIT_S
                while not seen and time.monotonic() < limit:
                    monitor.on_event(selectors.EVENT_READ)
                    time.sleep(0.005)
                news = seen.copy()
                seen.clear()
                return news

            assert told("down", "nic0") == [(7, False)]
            assert told("up", "nic0") == [(7, True)]
            assert told("down", "port0") == [(7, False)]
            assert told("up", "port0") == [(7, True)]
            ip("set", "nic1", "down")
            assert told("down", "nic0") == [(7, False)]
            monitor.close()
    finally:
        os.close(namespace)
