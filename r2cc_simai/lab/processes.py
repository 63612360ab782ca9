"""The rank processes of a lab: forked into their servers' namespaces, told what to do, waited for with a limit.

The ranks are children of the thread that makes them and die with it, whatever ends it (PR_SET_PDEATHSIG).
"""

import contextlib
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Protocol, TypeVar

from r2cc_simai.errors import PartitionedError
from r2cc_simai.lab.namespaces import die_with_parent
from r2cc_simai.lab.work import Command, Endpoint, Learn, Notice, Stop
from r2cc_simai.lab.world import World

R = TypeVar("R")
Worker = Callable[[Endpoint, Connection], None]

REAL_TIME_PRIORITY = 5  # of the runner and its ranks, so that other work on the machine does not disturb them
MESSAGE_LIMIT_S = 10  # for one message to a rank or from it to pass
STOP_LIMIT_S = 2.0  # from Stop until a rank that still lives is killed


@contextlib.contextmanager
def prioritised() -> Iterator[None]:
    """The calling process, and those that it makes meanwhile, come before all others, as far as the machine allows."""
    before, own = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME_PRIORITY))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, own)


class Agenda(Protocol):
    """Things to do while the ranks are waited for."""

    def poll(self, now_s: float) -> float:
        """Does what is due and returns when it wants to be asked again (infinity: never)."""


def serve_rank(endpoint: Endpoint, control: Connection) -> None:
    """What a rank's process does: the lab's runtime."""
    from r2cc_simai.lab.rank import RankWorker

    RankWorker(endpoint, control).serve()


def endpoints_of(world: World) -> list[Endpoint]:
    """Every rank's view of a world. A rank that makes no progress gives up before the runner does."""
    cluster = world.cluster
    servers = tuple(server.index for server in cluster.servers for _ in server.ranks)
    local = f"r2cc-simai-lab-{os.getpid()}-{time.monotonic_ns()}"
    return [
        Endpoint(
            rank=rank,
            servers=servers,
            nic_servers={nic.index: nic.server for nic in cluster.nics},
            rails={nic.index: nic.rail for nic in cluster.nics},
            addresses=world.addresses,
            devices=world.devices(server),
            backups={nic.index: nic.backups for nic in cluster.nics},
            local=local,
            rails_connected=cluster.rails_connected,
            ack_timeout_s=world.spec.ack_timeout_ms * 1e-3,
            stall_timeout_s=world.spec.limits.collective_s,
            connect_timeout_s=world.spec.limits.start_s / 2,
        )
        for rank, server in enumerate(servers)
    ]


class Ranks:
    """The processes of all ranks of a world."""

    def __init__(self, world: World, endpoints: Sequence[Endpoint], worker: Worker = serve_rank) -> None:
        self._world = world
        self._endpoints = endpoints
        self._worker = worker
        self._controls: list[Connection] = []
        self.pids: list[int] = []
        self.notices: list[Notice] = []

    def __enter__(self) -> "Ranks":
        try:
            for endpoint in self._endpoints:
                self._fork(endpoint)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes: those that do not stop by themselves in time are killed."""
        for control in self._controls:
            with contextlib.suppress(OSError):
                control.send(Stop())
        limit = time.monotonic() + STOP_LIMIT_S
        for pid in self.pids:
            while os.waitpid(pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > limit:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    break
                time.sleep(0.002)
        for control in self._controls:
            control.close()
        self.pids, self._controls = [], []

    def send(self, command: Command) -> None:
        """Sends a command to all ranks.

        Raises:
            PartitionedError: a rank has ended, or takes no commands.
        """
        for rank, control in enumerate(self._controls):
            try:
                control.send(command)
            except OSError as error:
                what = "takes no commands" if isinstance(error, BlockingIOError) else "has ended"
                raise PartitionedError(f"lab: rank {rank} (server{self._endpoints[rank].server}) {what}") from None

    def gather(self, kind: type[R], what: str, limit_s: float, agenda: Agenda | None = None) -> list[R]:
        """The answer of this kind from every rank, by rank. Notices that come meanwhile go to all ranks at once.

        Raises:
            PartitionedError: a rank ended, or did not answer within `limit_s`; the message says what was waited for.
        """
        answers: dict[int, R] = {}
        limit = time.monotonic() + limit_s
        while len(answers) < len(self._controls):
            now = time.monotonic()
            if now > limit:
                missing = ", ".join(str(rank) for rank in range(len(self._controls)) if rank not in answers)
                raise PartitionedError(f"lab: waited {limit_s:.3g} s for {what}; nothing from rank {missing}")
            wake = min(limit, agenda.poll(now)) if agenda is not None else limit
            for ready in wait(self._controls, max(0.0, wake - time.monotonic())):
                rank = self._controls.index(ready)  # type: ignore[arg-type]
                answer = self._receive(rank, what)
                if isinstance(answer, kind):
                    answers[rank] = answer
        return [answers[rank] for rank in sorted(answers)]

    def _receive(self, rank: int, what: str) -> object:
        try:
            message: object = self._controls[rank].recv()
        except (EOFError, OSError):
            server = self._endpoints[rank].server
            raise PartitionedError(f"lab: rank {rank} (server{server}) ended while it was waited for {what}") from None
        if isinstance(message, Notice):
            self.notices.append(message)
            self.send(Learn(message.nic, message.up))
        return message

    def _fork(self, endpoint: Endpoint) -> None:
        own, other = Pipe()
        _limit(own)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._run_rank(endpoint, other, parent)
        other.close()
        self.pids.append(pid)
        self._controls.append(own)

    def _run_rank(self, endpoint: Endpoint, control: Connection, parent: int) -> None:
        """The child's whole life."""
        code = 1
        try:
            die_with_parent(parent)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner ends its ranks
            for sibling in self._controls:
                sibling.close()
            self._world.join(endpoint.server)
            self._worker(endpoint, control)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)


def _limit(control: Connection) -> None:
    """Half of a message is waited for only so long, whether it is sent or received."""
    limit = struct.pack("@ll", MESSAGE_LIMIT_S, 0)
    with socket.socket(fileno=os.dup(control.fileno())) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
