"""The emulated cluster: NICs that have their rate and address, real cuts, and nothing outside or left behind."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from r2cc_simai.errors import MissingComponentError
from r2cc_simai.lab import namespaces
from r2cc_simai.lab.namespaces import inside, new_namespace, require_namespaces, why_not
from r2cc_simai.lab.spec import LabSpec
from r2cc_simai.lab.world import World

SPEC = LabSpec(
    servers=2,
    ranks_per_server=1,
    nics=[{"count": 2, "rate_mbps": 80}],
    bytes=4096,
    strategies=["balance"],
)
RATE = 10e6  # bytes per second

pytestmark = pytest.mark.skipif(bool(why_not()), reason=f"no lab here: {why_not()}")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World(SPEC, SPEC.cluster("two")) as made:
        yield made


@pytest.fixture
def healthy(world: World) -> Iterator[World]:
    yield world
    world.restore(range(len(world.cluster.nics)))


class Pair:
    """A connection from server 0 to server 1 over their NICs number `k`."""

    def __init__(self, world: World, k: int) -> None:
        source, target = (server.nics[k] for server in world.cluster.servers)
        with inside(world._servers[1]):
            listener = socket.create_server((world.addresses[target], 0))
        with inside(world._servers[0]):
            self.sender = socket.socket()
        with listener:
            self.sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, world.devices(0)[source].encode())
            self.sender.settimeout(5.0)
            self.sender.connect(listener.getsockname())
            self.receiver, _ = listener.accept()
        self.receiver.settimeout(5.0)

    def send(self, size: int) -> float:
        """Sends bytes and returns the seconds until the last one is there."""
        self.sender.setblocking(False)
        left, came = memoryview(bytes(size)), 0
        began = time.monotonic()
        while came < size:
            try:
                left = left[self.sender.send(left[:65536]) :]
            except BlockingIOError:
                came += len(self.receiver.recv(1 << 20))
                continue
            if not left:
                came += len(self.receiver.recv(1 << 20))
        return time.monotonic() - began

    def arrives(self, within_s: float) -> bool:
        """Whether a byte gets through in time."""
        self.receiver.settimeout(within_s)
        try:
            self.sender.send(b"x")
            return len(self.receiver.recv(1)) == 1
        except (TimeoutError, OSError):
            return False

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()


@pytest.fixture
def pair(healthy: World) -> Iterator[Pair]:
    made = Pair(healthy, 1)
    yield made
    made.close()


def fastest(pair: Pair, size: int) -> float:
    """Seconds of the fastest of some transfers, each with a full bucket: other work on the machine only delays."""
    times = []
    for _ in range(5):
        time.sleep(2 * SPEC.burst_bytes / RATE)
        times.append(pair.send(size))
    return min(times)


def test_nic_carries_its_rate(pair: Pair) -> None:
    """D bytes take (D (1 + 66/8948) - burst) / rate, the burst passing at once."""
    size = 4_000_000
    expected = (size * (1 + 66 / 8948) - SPEC.burst_bytes) / RATE
    assert fastest(pair, size) == pytest.approx(expected, rel=0.1)


def test_wire_counters_count_every_packet_with_its_headers(healthy: World, pair: Pair) -> None:
    """D payload bytes are D (1 + 66/8948) on the wire of the sender's and of the receiver's NIC, and nothing elsewhere.

    The interface's own counter takes a packet that is split later for one, so it lies between the two.
    """
    size = 3_000_000
    before, own_before = healthy.wire_bytes(), healthy.interface_bytes(1)
    pair.send(size)
    counted = healthy.wire_bytes() - before
    sent = healthy.interface_bytes(1)[1] - own_before[1]
    expected = size * (1 + 66 / 8948)
    assert counted[1, 1] == pytest.approx(expected, rel=0.003)
    assert counted[3, 0] == pytest.approx(expected, rel=0.003)
    assert size < sent <= counted[1, 1]
    assert counted[[0, 2]].sum() == 0


def test_rate_cut_slows_and_is_undone(healthy: World, pair: Pair) -> None:
    """A changed limit starts with a full bucket: D bytes take (D (1 + 66/8948) - burst) / (fraction rate)."""
    size = 2_000_000
    healthy.set_rate(1, 0.5)
    whole_s = (size * (1 + 66 / 8948) - SPEC.burst_bytes) / RATE
    assert fastest(pair, size) == pytest.approx(2 * whole_s, rel=0.1)
    healthy.restore([1])
    assert fastest(pair, size) == pytest.approx(whole_s, rel=0.1)


def test_silent_cut_stops_all_and_leaves_both_links_up(healthy: World, pair: Pair) -> None:
    assert pair.arrives(1.0)
    healthy.set_silent(1, True)
    assert not pair.arrives(0.3)
    assert healthy._sends(1)


def test_reset_ends_the_connections_of_one_nic_with_an_error(healthy: World, pair: Pair) -> None:
    """Both ends see an error, the link stays up, and a new connection works."""
    other = Pair(healthy, 0)
    assert healthy.end_connections(3) == 1  # server1.nic1
    with pytest.raises(OSError, match="reset"):
        pair.sender.recv(1)
    assert healthy._sends(3)
    assert other.arrives(1.0)
    other.close()
    assert healthy.end_connections(3) == 0


@pytest.mark.parametrize("cut", ["set_link", "set_port"])
def test_link_cut_takes_the_link_down(cut: str, healthy: World, pair: Pair) -> None:
    assert pair.arrives(1.0)
    getattr(healthy, cut)(1, False)
    time.sleep(0.05)
    assert not healthy._sends(1)
    assert not pair.arrives(0.3)


def test_a_cut_nic_carries_again_after_its_repair(healthy: World) -> None:
    for cut in (healthy.set_link, healthy.set_port, lambda nic, up: healthy.set_silent(nic, not up)):
        cut(1, False)
        healthy.restore([1])
        pair = Pair(healthy, 1)
        assert pair.arrives(2.0)
        pair.close()


def test_rails_are_apart_and_one_switch_joins_them() -> None:
    """A NIC reaches one of another rail exactly where the fabric is one switch."""
    for fabric, reaches in (("switch-per-rail", False), ("one-switch", True)):
        spec = SPEC.model_copy(update={"fabric": fabric})
        with World(spec, spec.cluster("two")) as world:
            with inside(world._servers[1]):
                listener = socket.create_server((world.addresses[2], 0))  # nic0 of server1
            with inside(world._servers[0]):
                sender = socket.socket()
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"nic1")
                sender.settimeout(1.0)
            with sender, listener:
                try:
                    sender.connect(listener.getsockname())
                    reached = True
                except OSError:
                    reached = False
            assert reached is reaches


def test_nothing_is_made_outside(world: World) -> None:
    """All devices of a lab lie in its own namespaces: those of this process are what they were."""
    own = {name for _, name in socket.if_nameindex()}
    assert not own & {"nic0", "nic1", "p0", "p1", "rail0", "rail1"}
    assert len(world.cluster.nics) == 4


def test_namespaces_are_gone_when_the_last_descriptor_is() -> None:
    with World(SPEC, SPEC.cluster("two")) as world:
        inodes = {os.fstat(fd).st_ino for fd in [*world._servers, world._switches]}
        assert len(inodes) == 3
        assert held(inodes)
    assert not held(inodes)


def held(inodes: set[int]) -> list[str]:
    """Descriptors and processes of this machine that keep one of these namespaces."""
    targets = {f"net:[{inode}]" for inode in inodes}
    found = []
    for path in (*Path("/proc").glob("[0-9]*/ns/net"), *Path("/proc").glob("[0-9]*/fd/*")):
        try:
            if os.readlink(path) in targets:
                found.append(str(path))
        except OSError:  # it ended meanwhile
            continue
    return found


def test_thread_is_where_it_was_after_a_visit_that_failed() -> None:
    home, other = own_namespace(), new_namespace()

    def visit() -> None:
        with inside(other):
            assert own_namespace() == os.fstat(other).st_ino != home
            raise RuntimeError

    with pytest.raises(RuntimeError):
        visit()
    os.close(other)
    assert own_namespace() == home


def own_namespace() -> int:
    return os.stat("/proc/thread-self/ns/net").st_ino


def test_without_root_it_is_one_line_and_exit_code_4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces.os, "geteuid", lambda: 1000)
    with pytest.raises(MissingComponentError, match="needs root") as error:
        require_namespaces()
    assert error.value.exit_code == 4
    assert "\n" not in str(error.value)


def test_where_namespaces_are_forbidden_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden() -> int:
        raise PermissionError(1, "unshare: Operation not permitted")

    monkeypatch.setattr(namespaces, "new_namespace", forbidden)
    assert why_not().startswith("the lab needs network namespaces, which this machine does not allow")
