"""Connections: TCP bound to a pair of NICs, or a local socket inside a server, and the frames beside the data.

A unit goes with its number before it. What else is said are frames of 16 bytes: on the way back those of the receiver
(`ACK`, `ALIVE`, `HAVE`, `NEXT`, `MOVE`, `BROKEN`), on the way there one `RESUME` when a stream comes to a connection.
"""

import contextlib
import selectors
import socket
import struct
from collections.abc import Callable
from enum import IntEnum
from functools import partial

from r2cc_simai.lab.units import NicPair

LOCAL_SEND_BUFFER = 1024 * 1024
NOT_SENT_LOW = 16 * 1024
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

UNIT_HEADER = struct.Struct("<Q")
_FRAME = struct.Struct("<IIq")
_TCP_INFO = struct.Struct("=8x16xI28xI")  # of struct tcp_info: segments under way, ms since the last acknowledgement
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Kind(IntEnum):
    """What a frame says; its value in brackets."""

    ACK = 1  # this unit has come (unit)
    ALIVE = 2  # this one is coming (unit)
    RESUME = 3  # the stream comes to this connection; what is there? (0)
    HAVE = 4  # this unit, which comes after the first that is missing (unit)
    NEXT = 5  # and all before this one, the first that is missing (unit)
    MOVE = 6  # the connection with this number runs over a NIC that I know is down (number)
    BROKEN = 7  # the connection with this number was reset, or closed (number)


Frame = tuple[int, int, int]  # kind, iteration, value
OnEvent = Callable[["Link", int], None]


class BrokenLinkError(Exception):
    """The other end has closed or reset a connection."""


class Link:
    """One connection of a stream; `index` counts its NIC pairs, best first. Events go to `on_event(link, mask)`."""

    def __init__(self, sock: socket.socket, index: int, nics: NicPair | None, selector: selectors.BaseSelector) -> None:
        self.sock = sock
        self.index = index
        self.nics = nics
        self.closed = False
        self._selector = selector
        self._mask = 0
        self._inbox = b""
        self._outbox = b""
        self._on_event: Callable[[int], None] | None = None

    def attach(self, on_event: OnEvent) -> None:
        """Says who is told of events."""
        self._on_event = partial(on_event, self)

    def uses(self, nic: int) -> bool:
        """Whether the connection runs over a NIC."""
        return self.nics is not None and nic in self.nics

    def want(self, mask: int) -> None:
        """Which events are wanted from now on: READ, WRITE, both or none (0)."""
        if mask == self._mask or self.closed:
            return
        if not self._mask:
            self._selector.register(self.sock, mask, self._on_event)
        elif mask:
            self._selector.modify(self.sock, mask, self._on_event)
        else:
            self._selector.unregister(self.sock)
        self._mask = mask

    def frames(self) -> list[Frame]:
        """The frames that have come.

        Raises:
            BrokenLinkError: the other end is gone.
        """
        try:
            data = self.sock.recv(4096)
        except BlockingIOError:
            return []
        except OSError as error:
            raise BrokenLinkError(str(error)) from None
        if not data:
            raise BrokenLinkError("closed by the other end")
        data = self._inbox + data
        whole = len(data) // _FRAME.size * _FRAME.size
        self._inbox = data[whole:]
        return list(_FRAME.iter_unpack(data[:whole]))

    def post(self, kind: Kind, iteration: int, value: int) -> None:
        """Sends a frame; what finds no room goes out with the next one or `flush`."""
        self._outbox += _FRAME.pack(kind, iteration, value)
        self.flush()

    def flush(self) -> None:
        """Sends frames that found no room. A connection that turns out to be broken is found when it is read."""
        if not self._outbox or self.closed:
            return
        try:
            sent = self.sock.send(self._outbox)
        except OSError:
            return
        self._outbox = self._outbox[sent:]

    def kernel_heard(self, within_s: float) -> bool | None:
        """Whether the other end's kernel has acknowledged something `within_s`; None: nothing waits for that."""
        if self.nics is None:
            return True
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        unacknowledged, last_ms = _TCP_INFO.unpack(info)
        return last_ms * 1e-3 < within_s if unacknowledged else None

    def close(self) -> None:
        """Ends it at once: what is under way is void, and the other end learns of it where it can."""
        if self.closed:
            return
        self.want(0)
        self.closed = True
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.sock.close()


def tcp_socket(address: str, port: int, device: str | None, send_buffer: int) -> socket.socket:
    """A TCP socket on a NIC: bound to its address, and to the device where there is one, so that no route matters.

    The congestion control is set, since the default differs between machines and decides how even the times are.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bind_to(sock, address, port, device)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, NOT_SENT_LOW)
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    return sock


def bind_to(sock: socket.socket, address: str, port: int, device: str | None) -> None:
    """Binds a socket to a NIC."""
    if device is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode() + b"\0")
    sock.bind((address, port))


def local_socket() -> socket.socket:
    """A socket for a hop inside a server."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LOCAL_SEND_BUFFER)
    return sock
