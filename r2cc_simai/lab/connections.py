"""Ending TCP connections from outside: the transport error of a path whose link is fine.

The kernel lists the connections of a namespace and ends one on request (`man 7 sock_diag`, SOCK_DESTROY); both ends see
a reset.
"""

import os
import socket
import struct
from collections.abc import Iterator

_SOCK_DIAG, _DESTROY = 20, 21  # message types
_REQUEST, _ACK, _DUMP = 1, 4, 0x300
_DONE, _ERROR = 3, 2
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ESTABLISHED = 1 << 1
_ID_BYTES = 48  # of inet_diag_sockid: ports, addresses, interface, cookie
_ID_AT = 4  # inside inet_diag_msg


def end_connections(address: str) -> int:
    """Ends all established connections of a local IPv4 address, in the namespace in which the calling thread is.

    Returns how many there were.

    Raises:
        OSError: the kernel cannot do it, or does not answer within a second.
    """
    wanted = socket.inet_aton(address)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as diag:  # NETLINK_SOCK_DIAG
        diag.settimeout(1.0)
        found = [one for one in _connections(diag) if one[4:8] == wanted]
        return sum(_end(diag, one) for one in found)


def _connections(diag: socket.socket) -> Iterator[bytes]:
    """The identity of every established TCP connection over IPv4."""
    diag.send(_message(_SOCK_DIAG, _REQUEST | _DUMP, bytes(_ID_BYTES)))
    while True:
        answer = diag.recv(1 << 16)
        while len(answer) >= _HEADER.size:
            length, kind, *_ = _HEADER.unpack_from(answer)
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise _error(answer)
            body = answer[_HEADER.size : length]
            yield body[_ID_AT : _ID_AT + _ID_BYTES]
            answer = answer[(length + 3) & ~3 :]


def _end(diag: socket.socket, identity: bytes) -> bool:
    """Ends one; False where it is gone already."""
    diag.send(_message(_DESTROY, _REQUEST | _ACK, identity))
    answer = diag.recv(1 << 16)
    number = struct.unpack_from("=i", answer, _HEADER.size)[0]
    if number not in (0, -2):  # ENOENT
        raise _error(answer)
    return bool(number == 0)


def _message(kind: int, flags: int, identity: bytes) -> bytes:
    request = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 0, _ESTABLISHED) + identity
    return _HEADER.pack(_HEADER.size + len(request), kind, flags, 1, 0) + request


def _error(answer: bytes) -> OSError:
    number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
    return OSError(number, f"connections: {os.strerror(number)}")
