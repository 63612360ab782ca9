"""Which NIC is broken: link events of the own server's NICs, and probes that tell the two ends of a silent connection
apart.

A connection from NIC a to NIC b was silent. The rank at a probes b, and on the same rail NICs of other servers:

    b answers                       the path works: nothing is to blame but that connection
    b is silent, another answers    b
    nobody answers                  a
    there is no other to ask        a or b: the rank cannot tell
"""

import contextlib
import selectors
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from r2cc_simai.lab.transport import bind_to
from r2cc_simai.lab.units import NicPair
from r2cc_simai.lab.work import Endpoint

PROBES = 3  # sent one after another
TIMEOUTS = 2  # of the acknowledgements, until silence is an answer

_NETLINK_LINK_GROUP = 1
_NEW_LINK = 16
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, port
_LINK = struct.Struct("=BxHiII")  # family, device type, index, flags, mask of changes
_UP, _CARRIER = 0x1, 0x10000
_PROBE = struct.Struct("<4sIi")  # what it is, number, NIC that is asked


class LinkMonitor:
    """Tells when a NIC of the own server goes down or comes up, as the kernel reports it (rtnetlink)."""

    def __init__(self, endpoint: Endpoint, changed: Callable[[int, bool], None]) -> None:
        self._changed = changed
        self._nics: dict[int, int] = {}
        self._up: dict[int, bool] = {}
        for nic, device in endpoint.devices.items():
            with contextlib.suppress(OSError):
                self._nics[socket.if_nametoindex(device)] = nic
                self._up[nic] = True
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.sock.bind((0, _NETLINK_LINK_GROUP))
        self.sock.setblocking(False)

    def on_event(self, mask: int) -> None:  # noqa: ARG002
        """Reads what the kernel says."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._read(self.sock.recv(65536))

    def _read(self, data: bytes) -> None:
        at = 0
        while at + _HEADER.size + _LINK.size <= len(data):
            length, kind, *_ = _HEADER.unpack_from(data, at)
            if length < _HEADER.size:
                return
            if kind == _NEW_LINK:
                _, _, index, flags, _ = _LINK.unpack_from(data, at + _HEADER.size)
                self._tell(index, bool(flags & _UP) and bool(flags & _CARRIER))
            at += length + 3 & ~3

    def _tell(self, index: int, up: bool) -> None:
        nic = self._nics.get(index)
        if nic is not None and self._up[nic] != up:
            self._up[nic] = up
            self._changed(nic, up)

    def close(self) -> None:
        """Listens no more."""
        self.sock.close()


@dataclass
class _Question:
    """Probes that are under way for a silent pair of NICs."""

    pair: NicPair
    asked: list[int]
    ends_s: float
    next_s: float
    left: int = PROBES
    answered: set[int] = field(default_factory=set)


class Prober:
    """Answers the probes of others and asks its own; `verdict(pair, nics)` gets the NICs to blame (none, one, both)."""

    def __init__(
        self, endpoint: Endpoint, selector: selectors.BaseSelector, verdict: Callable[[NicPair, tuple[int, ...]], None]
    ) -> None:
        self._endpoint = endpoint
        self._verdict = verdict
        self._first_rank = {server: rank for rank, server in reversed(list(enumerate(endpoint.servers)))}
        self._questions: dict[int, _Question] = {}
        self._count = 0
        self._socks: dict[int, socket.socket] = {}
        self._selector = selector
        for nic, server in endpoint.nic_servers.items():
            if server == endpoint.server:
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                bind_to(sock, endpoint.addresses[nic], endpoint.base_port + endpoint.rank, endpoint.devices.get(nic))
                sock.setblocking(False)
                self._socks[nic] = sock
                selector.register(sock, selectors.EVENT_READ, self._reader(nic))

    @property
    def busy(self) -> bool:
        """Whether answers are awaited."""
        return bool(self._questions)

    def ask(self, pair: NicPair, down: set[int]) -> None:
        """Starts to probe for a silent pair, unless that is under way."""
        if any(question.pair == pair for question in self._questions.values()):
            return
        endpoint, now = self._endpoint, time.monotonic()
        servers = {endpoint.server, endpoint.nic_servers[pair[1]]}
        others = [
            nic
            for nic, server in endpoint.nic_servers.items()
            if server not in servers and endpoint.rails[nic] == endpoint.rails[pair[0]] and nic not in down
        ]
        self._count += 1
        self._questions[self._count] = _Question(pair, [pair[1], *others], now + TIMEOUTS * endpoint.ack_timeout_s, now)
        self.tick(now)

    def tick(self, now: float) -> None:
        """Sends what is due, and judges what is over."""
        for number, question in list(self._questions.items()):
            own, peer = question.pair
            if peer in question.answered or now >= question.ends_s:
                del self._questions[number]
                self._verdict(question.pair, self._to_blame(question, own, peer))
            elif question.left and now >= question.next_s:
                question.left -= 1
                question.next_s = now + self._endpoint.ack_timeout_s / (PROBES + 1)
                for nic in question.asked:
                    self._send(own, b"ask?", number, nic)

    @staticmethod
    def _to_blame(question: _Question, own: int, peer: int) -> tuple[int, ...]:
        if peer in question.answered:
            return ()
        if question.answered:
            return (peer,)
        return (own,) if len(question.asked) > 1 else (own, peer)

    def _send(self, own: int, what: bytes, number: int, nic: int) -> None:
        endpoint = self._endpoint
        rank = self._first_rank[endpoint.nic_servers[nic]]
        with contextlib.suppress(OSError):  # a NIC that is down cannot send: that is an answer, too
            self._socks[own].sendto(
                _PROBE.pack(what, number, nic), (endpoint.addresses[nic], endpoint.base_port + rank)
            )

    def _reader(self, own: int) -> Callable[[int], None]:
        sock = self._socks[own]

        def read(mask: int) -> None:  # noqa: ARG001
            with contextlib.suppress(OSError):
                while True:
                    data, sender = sock.recvfrom(64)
                    if len(data) != _PROBE.size:
                        continue
                    what, number, nic = _PROBE.unpack(data)
                    if what == b"ask?":
                        sock.sendto(_PROBE.pack(b"yes!", number, nic), sender)
                    elif number in self._questions:
                        self._questions[number].answered.add(nic)

        return read

    def close(self) -> None:
        """Answers no more."""
        for sock in self._socks.values():
            self._selector.unregister(sock)
            sock.close()
