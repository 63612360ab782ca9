"""Ranks as processes on loopback addresses, and a switch between them whose ports can be cut."""

import contextlib
import multiprocessing
import os
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from multiprocessing.connection import Connection, wait

import pytest

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.operations import default_group
from r2cc_simai.lab.rank import RankWorker
from r2cc_simai.lab.work import (
    Collective,
    Endpoint,
    Learn,
    Load,
    Loaded,
    Notice,
    Prepare,
    Prepared,
    Ready,
    Result,
    Start,
    Stop,
)
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.registry import parse_strategy

FORK = multiprocessing.get_context("fork")
LIMIT_S = 60.0
NUMBER = count()
RESET = struct.pack("ii", 1, 0)


def _serve(endpoint: Endpoint, control: Connection, others: list[Connection]) -> None:
    for other in others:
        other.close()
    RankWorker(endpoint, control).serve()


class Switch:
    """Passes on what goes to the NICs of other servers. A NIC can be cut once it has passed so many bytes.

    `silent`: swallows all that goes to or comes from the NIC. `reset`: resets what runs over it, but lets everything
    else pass, as an error of single connections does. Anything else is called.
    """

    def __init__(self, true: dict[int, str], public: dict[int, str], ports: dict[int, list[int]]) -> None:
        self.passed = dict.fromkeys(true, 0)
        self.cut_at: dict[int, tuple[int, str | Callable[[], None]]] = {}  # NIC -> bytes, how
        self.dead: set[int] = set()
        self.done = False
        self._true, self._nic = true, {address: nic for nic, address in true.items()}
        self._carried: dict[int, int] = {}  # bytes towards the receiver, by connection
        self._pairs: list[tuple[int, int, socket.socket, socket.socket]] = []
        self._selector = selectors.DefaultSelector()
        self._udp: dict[tuple[int, int], socket.socket] = {}
        for nic, address in public.items():
            for port in ports[nic]:
                tcp = socket.socket()
                tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tcp.bind((address, port))
                tcp.listen(256)
                self._selector.register(tcp, selectors.EVENT_READ, (self._accept, nic, port))
                udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                udp.bind((address, port))
                self._udp[nic, port] = udp
                self._selector.register(udp, selectors.EVENT_READ, (self._datagram, nic, port))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self.done:
            for key, _ in self._selector.select(0.05):
                call, nic, port = key.data
                call(key.fileobj, nic, port)

    def _accept(self, listener: socket.socket, dst: int, port: int) -> None:
        a, (address, _) = listener.accept()
        b = socket.socket()
        b.connect((self._true[dst], port))
        for sock in (a, b):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        src = self._nic[address]
        self._pairs.append((src, dst, a, b))
        for one, other in ((a, b), (b, a)):
            threading.Thread(target=self._pass_on, args=(src, dst, one, other), daemon=True).start()

    def _pass_on(self, src: int, dst: int, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                self._carried[id(one)] = self._carried.get(id(one), 0) + len(data)
                for nic in (src, dst):
                    self.passed[nic] += len(data)
                    limit, how = self.cut_at.get(nic, (1 << 62, ""))
                    if self.passed[nic] >= limit:
                        self._cut(nic, how)
                if not self.dead.intersection((src, dst)):
                    other.sendall(data)
        if not self.dead.intersection((src, dst)):
            for sock in (one, other):
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    sock.shutdown(socket.SHUT_RDWR)
                    sock.close()

    def _cut(self, nic: int, how: str | Callable[[], None]) -> None:
        self.cut_at.pop(nic, None)
        if how == "silent":
            self.dead.add(nic)
        elif how == "reset":
            for src, dst, a, b in list(self._pairs):
                if nic in (src, dst) and self._carried.get(id(a), 0) > 1000:
                    for sock in (a, b):
                        with contextlib.suppress(OSError):
                            sock.shutdown(socket.SHUT_RDWR)
        else:
            how()

    def _datagram(self, sock: socket.socket, dst: int, port: int) -> None:
        data, (address, sender) = sock.recvfrom(2048)
        src = self._nic[address]
        if not self.dead.intersection((src, dst)):
            self._udp[src, sender].sendto(data, (self._true[dst], port))

    def close(self) -> None:
        self.done = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()
        for _, _, a, b in self._pairs:
            a.close()
            b.close()


class Loopback:
    """The runner's part in a few lines: sends commands, passes notices on, and gives every wait a limit."""

    def __init__(self, cluster: Cluster, *, switch: bool = False, forward: bool = True, **settings: float) -> None:
        self.cluster = cluster
        self.forward = forward
        self.notices: list[Notice] = []
        self.switch: Switch | None = None
        number = next(NUMBER)
        net = 1 + (os.getpid() * 16 + number) % 250
        true = {n.index: f"127.{net}.{n.server}.{1 + n.index}" for n in cluster.nics}
        public = {n.index: f"127.{net}.{100 + n.server}.{1 + n.index}" for n in cluster.nics}
        servers = tuple(s.index for s in cluster.servers for _ in s.ranks)
        self.base_port = 21000
        endpoints = [
            Endpoint(
                rank=rank,
                servers=servers,
                nic_servers={n.index: n.server for n in cluster.nics},
                rails={n.index: n.rail for n in cluster.nics},
                addresses={n.index: (public if switch and n.server != server else true)[n.index] for n in cluster.nics},
                devices={},
                backups={n.index: n.backups for n in cluster.nics},
                local=f"r2cc-test-{os.getpid()}-{number}",
                base_port=self.base_port,
                rails_connected=cluster.rails_connected,
                kernel_counts=not switch,
                **({"ack_timeout_s": 1.0} | settings),
            )
            for rank, server in enumerate(servers)
        ]
        self.controls: list[Connection] = []
        self.processes = []
        for endpoint in endpoints:
            mine, theirs = FORK.Pipe()
            process = FORK.Process(target=_serve, args=(endpoint, theirs, [*self.controls, mine]), daemon=True)
            process.start()
            theirs.close()
            self.controls.append(mine)
            self.processes.append(process)
        if switch:
            ports = {n.index: [self.base_port + r for r in cluster.servers[n.server].ranks] for n in cluster.nics}
            self.switch = Switch(true, public, ports)
        self.gather(Ready)

    def tell(self, command: object) -> None:
        for control in self.controls:
            control.send(command)

    def gather(self, kind: type) -> list:
        """One answer of a kind from every rank."""
        answers: dict[int, object] = {}
        deadline = time.monotonic() + LIMIT_S
        while len(answers) < len(self.controls):
            ready = wait(self.controls, deadline - time.monotonic())
            assert ready, f"no {kind.__name__} from ranks {sorted(set(range(len(self.controls))) - set(answers))}"
            for control in ready:
                report = control.recv()
                if isinstance(report, Notice):
                    self.notices.append(report)
                    if self.forward:
                        self.tell(Learn(report.nic, report.up))
                else:
                    assert isinstance(report, kind), report
                    answers[report.rank] = report
        return [answers[rank] for rank in range(len(self.controls))]

    def prepare(self, collective: Collective, down: frozenset[int] = frozenset()) -> list[Prepared]:
        self.tell(Prepare(collective, down))
        return self.gather(Prepared)

    def gather_loaded(self) -> None:
        assert [one.error for one in self.gather(Loaded)] == [None] * len(self.controls)

    def iterate(self, iteration: int) -> list[Result]:
        self.tell(Load(iteration))
        self.gather_loaded()
        self.tell(Start(time.monotonic() + 0.01))
        return self.gather(Result)

    def run(self, collective: Collective, iterations: int = 1, down: frozenset[int] = frozenset()) -> list[Result]:
        """Results of all ranks and iterations."""
        assert [one.error for one in self.prepare(collective, down)] == [None] * len(self.controls)
        return [result for i in range(iterations) for result in self.iterate(i)]

    def close(self) -> None:
        for control in self.controls:
            with contextlib.suppress(OSError):
                control.send(Stop())
        for process in self.processes:
            process.join(5)
            process.kill()
            process.join()
        for control in self.controls:
            control.close()
        if self.switch is not None:
            self.switch.close()


@pytest.fixture
def loopback() -> Iterator[Callable[..., Loopback]]:
    """Return a function that starts the ranks of a cluster; all end with the test."""
    started: list[Loopback] = []

    def call(cluster: Cluster, **settings: float) -> Loopback:
        started.append(Loopback(cluster, **settings))
        return started[-1]

    yield call
    for one in started:
        one.close()


@pytest.fixture(scope="session")
def planned() -> Callable[..., Collective]:
    """Return a function: the collective that a strategy plans while NICs are known to be at a `lost` fraction."""

    def call(cluster, strategy, what="all_reduce", size=3_000_000, lost=None, **kind):
        fraction = tuple((lost or {}).get(n.index, 1.0) for n in cluster.nics)
        request = Request(what, default_group(what, cluster), size)
        return Collective.of(parse_strategy(strategy).plan(request, View(cluster, fraction)), request, **kind)

    return call
