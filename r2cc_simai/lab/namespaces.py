"""Network namespaces without a name: they live as long as somebody holds a file descriptor on them.

A named namespace outlives the process that made it; one without a name is gone with its last process and descriptor,
whatever ends them, and with it every device in it.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from functools import cache

from r2cc_simai.errors import MissingComponentError

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_OWN = "/proc/thread-self/ns/net"


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def require_namespaces() -> None:
    """Makes sure that this process may make network namespaces.

    Raises:
        MissingComponentError: it may not; one line that says what is needed.
    """
    reason = why_not()
    if reason:
        raise MissingComponentError(reason)


def why_not() -> str:
    """Why this process cannot run a lab; empty where it can."""
    if os.geteuid() != 0:
        return "the lab makes network namespaces and needs root; run it with sudo"
    try:
        import pyroute2  # noqa: F401
    except ImportError:
        return 'the lab needs pyroute2; run pip install "r2cc-simai[lab]"'
    try:
        os.close(new_namespace())
    except OSError as error:
        return f"the lab needs network namespaces, which this machine does not allow ({error.strerror})"
    return ""


def new_namespace() -> int:
    """A new network namespace; returns the descriptor that keeps it.

    Raises:
        OSError: the machine does not allow it.
    """
    home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _checked(_libc().unshare(_CLONE_NEWNET), "unshare")
        try:
            return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            move_to(home)
    finally:
        os.close(home)


def move_to(namespace: int) -> None:
    """Moves the calling thread into a namespace for good; sockets that it has keep their own."""
    _checked(_libc().setns(namespace, _CLONE_NEWNET), "setns")


@contextlib.contextmanager
def inside(namespace: int) -> Iterator[None]:
    """The calling thread is in a namespace, and then where it was."""
    home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        move_to(namespace)
        try:
            yield
        finally:
            move_to(home)
    finally:
        os.close(home)


def die_with_parent(parent: int) -> None:
    """Makes the kernel kill the calling process when the thread that forked it ends; `parent` is that process's id."""
    _checked(_libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)


def set_sysctl(name: str, value: int | str) -> None:
    """Sets a network setting (`ipv4.tcp_no_metrics_save`) of the namespace in which the calling thread is.

    Raises:
        OSError: the machine has no such setting, or does not let it be changed.
    """
    with open(f"/proc/sys/net/{name.replace('.', '/')}", "w") as file:
        file.write(str(value))
