"""Processes of this machine. Each gets a few cases at a time and sends every outcome as it comes, so that a case whose
process dies (out of memory, a crash) is known by name and the others run again."""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Annotated

from pydantic import Field

from r2cc_simai.config import Strict
from r2cc_simai.errors import PartitionedError, SimaiError
from r2cc_simai.runners.case_run import Outcome, Setup, Task, attempt
from r2cc_simai.runners.executors.base import Deaths, Executor, Patience
from r2cc_simai.runners.executors.queue import CaseQueue

STARTS_S = 120.0  # limit for a process to start, and to end
QUICK_S = 0.2  # work that a worker holds beyond the running case, so that it need not wait for more
MOST_HELD = 16
MOST_HELD_BYTES = 2**16  # well below what a pipe takes, so that handing out never blocks on a worker that is busy
READY = "ready"


class ProcessOptions(Strict):
    """`--executor-option` of processes: the sweep ends when no case finishes for `wait_min`."""

    wait_min: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 720.0


@dataclass(eq=False)
class _Worker:
    """A process, the cases that it holds in their order (the first is running), and whether it has started."""

    number: int
    process: BaseProcess
    connection: Connection
    held: dict[str, Task] = field(default_factory=dict)
    held_bytes: int = 0
    ready: bool = False
    last_s: float = QUICK_S

    @property
    def wants(self) -> bool:
        """Whether it may hold one more case."""
        return self.ready and len(self.held) < 1 + min(MOST_HELD, int(QUICK_S / max(self.last_s, 1e-6)))

    def took(self, outcome: Outcome) -> None:
        """It has finished a case."""
        del self.held[outcome.key]
        if not self.held:
            self.held_bytes = 0
        self.last_s = outcome.wall_s


class Processes(Executor):
    """Fresh processes, not forks: this one has threads (the progress bar)."""

    def __init__(self, count: int, setup: Setup, options: ProcessOptions | None = None) -> None:
        self._count, self._setup = count, setup
        self._wait_min = (options or ProcessOptions()).wait_min
        self._workers: dict[int, _Worker] = {}
        self._started = 0

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Outcome]]:
        queue, deaths, patience = CaseQueue(tasks), Deaths(), Patience(self._wait_min)
        left = len(tasks)
        for worker in self._workers.values():  # those of the call before
            self._hand_out(worker, queue)
        while left:
            while len(self._workers) < min(self._count, left):
                self._start()
            outcomes = [one for worker in self._with_news(patience) for one in self._news(worker, queue, deaths)]
            if not any(worker.ready for worker in self._workers.values()):
                patience.news()  # the wait for cases begins when there is a worker
            for worker in self._workers.values():
                self._hand_out(worker, queue)
            if outcomes:
                patience.news()
                left -= len(outcomes)
                yield outcomes

    def close(self) -> None:
        for worker in self._workers.values():
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers.values():
            _end(worker.process)
        self._workers = {}

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._setup), daemon=True)
        process.start()
        theirs.close()
        self._workers[self._started] = _Worker(self._started, process, ours)
        self._started += 1

    def _hand_out(self, worker: _Worker, queue: CaseQueue) -> None:
        while worker.wants and (task := queue.take(worker.number)) is not None:
            message = bytes(ForkingPickler.dumps(task))
            if worker.held and worker.held_bytes + len(message) > MOST_HELD_BYTES:
                queue.give_back([task])
                return
            worker.held[task.key] = task
            worker.held_bytes += len(message)
            try:
                worker.connection.send_bytes(message)
            except OSError:  # it has died; its sentinel says so
                return

    def _with_news(self, patience: Patience) -> list[_Worker]:
        """Workers that sent something or died; waits until there is one."""
        signs: dict[object, _Worker] = {}
        for worker in self._workers.values():
            signs |= {worker.connection: worker, worker.process.sentinel: worker}
        started = any(worker.ready for worker in self._workers.values())
        ready = wait([*signs], timeout=patience.left_s() if started else STARTS_S)  # type: ignore[list-item]
        if not ready and not started:
            raise PartitionedError(f"no worker process started within {STARTS_S:g} s")
        if not ready:
            running = [next(iter(worker.held)) for worker in self._workers.values() if worker.held]
            patience.check(f"{len(running)} running cases, among them {', '.join(running[:1])}")
        return list(dict.fromkeys(signs[one] for one in ready))

    def _news(self, worker: _Worker, queue: CaseQueue, deaths: Deaths) -> list[Outcome]:
        outcomes: list[Outcome] = []
        try:
            while worker.connection.poll():
                said = worker.connection.recv()
                if isinstance(said, BaseException):
                    raise said
                if said == READY:
                    worker.ready = True
                    continue
                worker.took(said)
                outcomes.append(said)
            died = not worker.process.is_alive() and not worker.connection.poll()
        except (EOFError, OSError):
            died = True
        return outcomes + (self._bury(worker, queue, deaths) if died else [])

    def _bury(self, worker: _Worker, queue: CaseQueue, deaths: Deaths) -> list[Outcome]:
        """A worker has died: its running case is the suspect, what else it held runs again."""
        del self._workers[worker.number]
        worker.connection.close()
        how = _end(worker.process)
        if not worker.ready:
            raise PartitionedError(f"a worker process died as it started: {how}")
        held = [*worker.held.values()]
        blamed = deaths.of(held[0], how) if held else None
        queue.give_back(held if blamed is None else held[1:])
        return [] if blamed is None else [blamed]


def _end(process: BaseProcess) -> str:
    """Waits for the end of a process, and makes it end where it does not; says how it ended."""
    process.join(STARTS_S / 10)
    if process.is_alive():
        process.kill()
        process.join(STARTS_S)
    code = process.exitcode
    process.close()
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _serve(connection: Connection, setup: Setup) -> None:
    """A worker: cases come, outcomes go, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the sweep ends its workers itself
    try:
        connection.send(READY)
        while True:
            task = connection.recv()
            try:
                connection.send(attempt(task, setup))
            except SimaiError as error:
                connection.send(error)
    except (EOFError, OSError):
        return
