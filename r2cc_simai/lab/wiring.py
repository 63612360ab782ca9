"""Making all connections of a plan, backups included, before anything is sent."""

import contextlib
import errno
import selectors
import socket
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial

from r2cc_simai.lab.transport import Link, local_socket, tcp_socket
from r2cc_simai.lab.units import NicPair, StreamUnits
from r2cc_simai.lab.work import Endpoint

Key = tuple[int, ...]  # channel, source rank, destination rank, lane, number of the NIC pair
Links = list[Link | None]  # per NIC pair; None: it could not be made

RETRY_S = 0.02
_HELLO = struct.Struct("<6I")  # generation, channel, source, destination, lane, number of the NIC pair


def nic_pairs(endpoint: Endpoint, nics: NicPair | None) -> list[NicPair | None]:
    """The NIC pairs that a lane may use, best first: its own, then those of the backups, as the engine migrates.

    On separate rails both ends move together; else the end that has to, hence the order.
    """
    if nics is None:
        return [None]
    sources, targets = ((nic, *endpoint.backups.get(nic, ())) for nic in nics)
    if endpoint.rails_connected:
        order = sorted(
            ((i, j) for i in range(len(sources)) for j in range(len(targets))), key=lambda p: (max(p), sum(p), p)
        )
        return [(sources[i], targets[j]) for i, j in order]
    server = endpoint.nic_servers[nics[1]]
    same = {nic: [n for n, s in endpoint.nic_servers.items() if s == server] for nic in sources}
    return [(s, t) for s in sources for t in same[s] if endpoint.rails[s] == endpoint.rails[t]]


class Listeners:
    """Where a rank takes connections: a socket on each NIC of its server, and one for the ranks beside it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.sockets: list[socket.socket] = []
        port = endpoint.base_port + endpoint.rank
        for nic, server in endpoint.nic_servers.items():
            if server == endpoint.server:
                self.sockets.append(nic_socket(endpoint, nic, port))
        inside = local_socket()
        inside.bind(local_name(endpoint, endpoint.rank))
        self.sockets.append(inside)
        for sock in self.sockets:
            sock.listen(1024)
            sock.setblocking(False)

    def close(self) -> None:
        """Takes no more."""
        for sock in self.sockets:
            sock.close()


def nic_socket(endpoint: Endpoint, nic: int, port: int) -> socket.socket:
    """A TCP socket on one of the own server's NICs."""
    return tcp_socket(endpoint.addresses[nic], port, endpoint.devices.get(nic), endpoint.send_buffer_bytes)


def local_name(endpoint: Endpoint, rank: int) -> str:
    """The abstract name on which a rank takes connections of the ranks beside it."""
    return f"\0{endpoint.local}-{rank}"


class Wiring:
    """Makes the connections of all streams of a rank: it connects where it sends, and takes where it receives.

    `generation` is the number of the plan, so that nothing of an earlier one is taken for a new connection.
    """

    def __init__(
        self, endpoint: Endpoint, listeners: Listeners, selector: selectors.BaseSelector, generation: int
    ) -> None:
        self._endpoint = endpoint
        self._listeners = listeners
        self._selector = selector
        self._generation = generation
        self._own = selectors.DefaultSelector()
        self._retry: list[tuple[float, Callable[[], None]]] = []
        self._missing: dict[Key, NicPair | None] = {}
        self._made: dict[Key, Link] = {}
        self._failures: dict[Key, str] = {}

    def make(self, streams: Sequence[StreamUnits], down: frozenset[int]) -> list[Links]:
        """The connections of every stream, one for each NIC pair that is not `down`.

        What cannot be made within the endpoint's limit is left out: a stream can do without a backup.

        Raises:
            TimeoutError: a stream has no connection at all; the text says which, and between which NICs.
        """
        pairs = [nic_pairs(self._endpoint, stream.nics) for stream in streams]
        try:
            for stream, its in zip(streams, pairs, strict=True):
                for index, nics in enumerate(its):
                    if nics is None or not down.intersection(nics):
                        self._missing[_key(stream, index)] = nics
                        if stream.src == self._endpoint.rank:
                            self._connect(_key(stream, index), nics)
            self._wait()
        finally:
            self._clean_up()
        links: list[Links] = [
            [self._made.get(_key(stream, i)) for i in range(len(its))]
            for stream, its in zip(streams, pairs, strict=True)
        ]
        for stream, made in zip(streams, links, strict=True):
            if not any(made):
                for link in self._made.values():
                    link.close()
                raise TimeoutError(self._why_not(stream, len(made)))
        return links

    def _why_not(self, stream: StreamUnits, pairs: int) -> str:
        keys = [key for key in (_key(stream, i) for i in range(pairs)) if key in self._missing]
        tried = []
        for key in keys:
            nics = self._missing[key]
            where = "inside the server" if nics is None else f"NIC {nics[0]} to NIC {nics[1]}"
            tried.append(where + (f" ({self._failures[key]})" if key in self._failures else ""))
        if not tried:
            return f"{stream}: no NIC is left between them"
        return f"{stream}: not connected within {self._endpoint.connect_timeout_s:g} s over {', '.join(tried)}"

    def _wait(self) -> None:
        for sock in self._listeners.sockets:
            self._own.register(sock, selectors.EVENT_READ, self._accept)
        deadline = time.monotonic() + self._endpoint.connect_timeout_s
        while self._missing and (left := deadline - time.monotonic()) > 0:
            for key, _ in self._own.select(min(left, RETRY_S)):
                key.data(key.fileobj)
            now = time.monotonic()
            due = [again for at, again in self._retry if at <= now]
            self._retry = [(at, again) for at, again in self._retry if at > now]
            for again in due:
                again()

    def _connect(self, key: Key, nics: NicPair | None) -> None:
        endpoint, dst = self._endpoint, key[2]
        where: str | tuple[str, int]
        sock = None
        try:
            if nics is None:
                sock, where = local_socket(), local_name(endpoint, dst)
            else:
                sock = nic_socket(endpoint, nics[0], 0)
                where = endpoint.addresses[nics[1]], endpoint.base_port + dst
            sock.setblocking(False)
            code = sock.connect_ex(where)
        except OSError as error:
            code = error.errno or errno.EIO
        if sock is None or code not in (0, errno.EINPROGRESS):
            self._again(key, nics, sock, code)
        else:
            self._own.register(sock, selectors.EVENT_WRITE, partial(self._connected, key, nics))

    def _connected(self, key: Key, nics: NicPair | None, sock: socket.socket) -> None:
        self._own.unregister(sock)
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            self._again(key, nics, sock, failed)
            return
        try:
            sock.send(_HELLO.pack(self._generation, *key))
        except OSError as error:
            self._again(key, nics, sock, error.errno or errno.EIO)
            return
        self._add(key, sock)

    def _again(self, key: Key, nics: NicPair | None, sock: socket.socket | None, code: int) -> None:
        """The other end does not listen yet, or cannot be reached: try again until time is up."""
        if sock is not None:
            sock.close()
        self._failures[key] = errno.errorcode.get(code, str(code))
        self._retry.append((time.monotonic() + RETRY_S, partial(self._connect, key, nics)))

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # nobody is left to accept, or who has come has gone again
            while True:
                sock, _ = listener.accept()
                sock.setblocking(False)
                self._own.register(sock, selectors.EVENT_READ, self._hello)

    def _hello(self, sock: socket.socket) -> None:
        """Who has connected. One of an earlier plan, or that nobody waits for, is closed."""
        try:
            if 0 < len(sock.recv(_HELLO.size, socket.MSG_PEEK)) < _HELLO.size:
                return
            data = sock.recv(_HELLO.size)
        except OSError:
            data = b""
        self._own.unregister(sock)
        generation, *rest = _HELLO.unpack(data) if data else (-1,)
        key = tuple(rest)
        if generation == self._generation and key in self._missing:
            self._add(key, sock)
        else:
            sock.close()

    def _add(self, key: Key, sock: socket.socket) -> None:
        self._made[key] = Link(sock, key[-1], self._missing.pop(key), self._selector)

    def _clean_up(self) -> None:
        """Ends what has not become a connection."""
        for key in list(self._own.get_map().values()):
            if isinstance(key.fileobj, socket.socket) and key.fileobj not in self._listeners.sockets:
                key.fileobj.close()
        self._own.close()


def _key(stream: StreamUnits, index: int) -> Key:
    return stream.channel, stream.src, stream.dst, stream.lane, index
