"""One lab at a time: the next one waits for its turn, and says so when it does not come."""

import os
import socket
import threading
import time

import pytest

from r2cc_simai.errors import PartitionedError
from r2cc_simai.lab.turn import turn


def name() -> str:
    return f"\0test-turn-{os.getpid()}-{time.monotonic_ns()}"


def test_a_turn_comes_when_the_lab_before_has_ended() -> None:
    own = name()
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    holder.bind(own)
    began = time.monotonic()
    ender = threading.Timer(0.3, holder.close)
    ender.start()
    with turn(5.0, own):
        assert time.monotonic() - began >= 0.29
    ender.join()


def test_a_process_may_have_several_labs_and_gives_up_its_turn_with_the_last() -> None:
    own = name()
    with turn(0.0, own), turn(0.0, own):
        pass
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as next_one:
        next_one.bind(own)


def test_a_turn_that_does_not_come_is_one_line() -> None:
    own = name()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as holder:
        holder.bind(own)
        with pytest.raises(PartitionedError, match="waited 0 s for another lab on this machine"), turn(0.0, own):
            pass
