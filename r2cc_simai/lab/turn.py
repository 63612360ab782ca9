"""One lab at a time on a machine: two would share its cores, and neither measure what it should."""

import contextlib
import errno
import socket
import time
from collections.abc import Iterator

from r2cc_simai.errors import PartitionedError

_NAME = "\0r2cc-simai-lab"  # an abstract address: it names nothing on disk, and is free again when its holder ends
_POLL_S = 0.2
_HELD: set[str] = set()  # by this process


@contextlib.contextmanager
def turn(limit_s: float, name: str = _NAME) -> Iterator[None]:
    """No lab of another process runs meanwhile; one process may have several.

    Raises:
        PartitionedError: another one has not ended within `limit_s`.
    """
    if name in _HELD:
        yield
        return
    limit = time.monotonic() + limit_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as held:
        while not _bound(held, name):
            if time.monotonic() > limit:
                raise PartitionedError(f"lab: waited {limit_s:g} s for another lab on this machine to end")
            time.sleep(_POLL_S)
        _HELD.add(name)
        try:
            yield
        finally:
            _HELD.discard(name)


def _bound(held: socket.socket, name: str) -> bool:
    try:
        held.bind(name)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True
