"""A rank's process: one thread, one selector, which serves the runner, the streams and the NICs' events."""

import selectors
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from r2cc_simai.errors import SimaiError
from r2cc_simai.lab.detection import LinkMonitor, Prober
from r2cc_simai.lab.execution import Execution, prepare
from r2cc_simai.lab.payload import CheckedData, Payload
from r2cc_simai.lab.units import NicPair
from r2cc_simai.lab.wiring import Listeners
from r2cc_simai.lab.work import (
    Cause,
    Endpoint,
    Learn,
    Load,
    Loaded,
    Notice,
    Prepare,
    Prepared,
    Ready,
    Report,
    Result,
    Start,
    Stop,
)

TICKS_PER_TIMEOUT = 4
SHORTEST_TICK_S = 0.005
# Other ranks may still be at work when one has ended: checking its result must not take their CPU time.
QUIET_S = 0.02


class RankWorker:
    """Runs what the runner wants (`lab.work`), until `Stop` or until the runner is gone.

    The collectives work on the data of `payload`; by default those whose result is known, and checked.
    """

    def __init__(self, endpoint: Endpoint, control: Connection, payload: Payload | None = None) -> None:
        self._payload = payload or CheckedData()
        self._endpoint = endpoint
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._listeners = Listeners(endpoint)
        self._down: set[int] = set()
        self._execution: Execution | None = None
        self._generation = 0
        self._start_at: float | None = None
        self._check: Iterator[Result | None] | None = None
        self._check_at = 0.0
        self._result: Result | None = None
        self._stopped = False
        self._tick_s = max(SHORTEST_TICK_S, endpoint.ack_timeout_s / TICKS_PER_TIMEOUT)
        self._next_tick = 0.0
        self._prober = Prober(endpoint, self._selector, self._on_verdict)
        self._monitor = LinkMonitor(endpoint, self._on_link) if endpoint.devices else None
        self._selector.register(control, selectors.EVENT_READ, self._on_control)
        if self._monitor is not None:
            self._selector.register(self._monitor.sock, selectors.EVENT_READ, self._monitor.on_event)

    def serve(self) -> None:
        """Serves until it is told to stop, or the runner has gone."""
        try:
            self._report(Ready(self._endpoint.rank))
            while not self._stopped:
                for key, mask in self._selector.select(self._patience()):
                    key.data(mask)
                self._after_events()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return  # the runner has gone
        finally:
            self._close()

    def _patience(self) -> float | None:
        """Seconds until something is due even if nothing happens; None: nothing is."""
        now = time.monotonic()
        due = []
        if self._start_at is not None:
            due.append(self._start_at)
        if self._check is not None:
            due.append(self._check_at)
        if self._prober.busy or (self._execution is not None and self._execution.running):
            due.append(self._next_tick)
        return max(0.0, min(due) - now) if due else None

    def _after_events(self) -> None:
        now = time.monotonic()
        execution = self._execution
        if self._start_at is not None and now >= self._start_at:
            self._start_at = None
            self._next_tick = now + self._tick_s
            if execution is not None:
                execution.start()
        if now >= self._next_tick:
            late = now - self._next_tick
            self._next_tick = now + self._tick_s
            self._prober.tick(now)
            if execution is not None and execution.running:
                execution.tick(now, late)
        if self._check is None and execution is not None and execution.just_ended():
            self._check = execution.results()
            self._check_at = now + QUIET_S
        if self._check is not None and now >= self._check_at:
            result = next(self._check)
            if result is not None:
                self._check, self._result = None, result
        if self._result is not None and not self._prober.busy:  # the runner learns what is broken before it plans anew
            self._report(self._result)
            self._result = None

    def _on_control(self, mask: int) -> None:  # noqa: ARG002
        while not self._stopped and self._control.poll():
            self._obey(self._control.recv())

    def _obey(self, command: object) -> None:
        match command:
            case Prepare():
                self._prepare(command)
            case Load(iteration):
                self._load(iteration)
            case Start(at_s):
                self._start_at = at_s
            case Learn(nic, up):
                self._learn(nic, up, "notice")
            case Stop():
                self._stopped = True
            case _:
                raise TypeError(f"rank {self._endpoint.rank}: no command: {command!r}")

    def _prepare(self, command: Prepare) -> None:
        began = time.monotonic()
        if self._execution is not None:
            self._execution.close()
            self._execution = None
        self._generation += 1
        self._check = self._start_at = self._result = None
        self._down.clear()
        self._down.update(command.down)
        error, connections = None, 0
        try:
            self._execution = prepare(
                self._endpoint,
                command.collective,
                self._down,
                self._listeners,
                self._selector,
                self._generation,
                self._suspect,
                self._payload,
            )
            connections = self._execution.connections
        except (SimaiError, TimeoutError) as reason:
            error = f"rank {self._endpoint.rank}: {reason}"
        self._report(Prepared(self._endpoint.rank, time.monotonic() - began, connections, error))

    def _load(self, iteration: int) -> None:
        error = None
        if self._execution is None or self._execution.running:
            error = f"rank {self._endpoint.rank}: " + ("still runs" if self._execution else "nothing is prepared")
        else:
            try:
                self._execution.load(iteration)
            except SimaiError as reason:
                error = f"rank {self._endpoint.rank}: {reason}"
        self._report(Loaded(self._endpoint.rank, error))

    def _learn(self, nic: int, up: bool, cause: Cause) -> None:
        if up:
            self._down.discard(nic)
            return
        self._down.add(nic)
        if self._execution is not None:
            self._execution.lost(nic, cause)

    def _on_link(self, nic: int, up: bool) -> None:
        """The kernel says that a NIC of this server went down or came up."""
        self._report(Notice(self._endpoint.rank, nic, up, "link-event", time.monotonic()))
        self._learn(nic, up, "link-event")

    def _suspect(self, pair: NicPair) -> None:
        self._prober.ask(pair, self._down)

    def _on_verdict(self, pair: NicPair, nics: tuple[int, ...]) -> None:
        for nic in nics:
            peer = pair[1] if nic == pair[0] else pair[0]
            notice = Notice(
                self._endpoint.rank, nic, False, "ack-timeout", time.monotonic(), certain=False, peer_nic=peer
            )
            self._report(notice)
        if len(nics) == 1:
            self._learn(nics[0], False, "notice")

    def _report(self, report: Report) -> None:
        self._control.send(report)

    def _close(self) -> None:
        if self._execution is not None:
            self._execution.close()
        self._prober.close()
        self._listeners.close()
        if self._monitor is not None:
            self._monitor.close()
        self._selector.close()
