"""A prepared collective on one rank: its streams, one iteration after another, and the check of what came out."""

import selectors
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from r2cc_simai.collectives.operations import operation
from r2cc_simai.lab.incoming import Incoming
from r2cc_simai.lab.operations import Operations
from r2cc_simai.lab.outgoing import Outgoing
from r2cc_simai.lab.payload import Outcome, Payload
from r2cc_simai.lab.reduce import DTYPES, Reduction
from r2cc_simai.lab.streams import Context
from r2cc_simai.lab.units import NicPair, in_elements, units_of_rank
from r2cc_simai.lab.wiring import Listeners, Wiring
from r2cc_simai.lab.work import Cause, Collective, Endpoint, Result

WAITS_NAMED = 3  # how many of the things that a stalled rank waits for are printed


class Execution:
    """One plan, ready to run.

    Raises:
        InputError: the plan does not fit the data.
        TimeoutError: a stream got no connection.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        collective: Collective,
        down: set[int],
        connect: Callable[[], Wiring],
        suspect: Callable[[NicPair], None],
        payload: Payload,
    ) -> None:
        self._endpoint = endpoint
        self._payload = payload
        payload.prepare(collective, endpoint.rank, len(endpoint.servers))
        self._collective = collective
        self._reduction = Reduction(collective.dtype, collective.op)
        item = self._reduction.item_bytes
        elements = in_elements(collective.schedule, item)
        most = max(1, collective.unit_bytes // item)
        units = units_of_rank(elements, collective.binding, endpoint.servers, endpoint.rank, most)
        self._operations = Operations(units)
        self._context = Context(
            operations=self._operations,
            buffer=np.empty(elements.bytes, dtype=DTYPES[collective.dtype]),
            reduction=self._reduction,
            down=down,
            ack_timeout_s=endpoint.ack_timeout_s,
            kernel_counts=endpoint.kernel_counts,
            fail=self.fail,
            suspect=suspect,
        )
        links = connect().make([*units.sends, *units.receives], frozenset(down))
        self._sends = [Outgoing(s, its, self._context) for s, its in zip(units.sends, links, strict=False)]
        received = links[len(units.sends) :]
        self._receives = [Incoming(s, its, self._context) for s, its in zip(units.receives, received, strict=True)]
        self.connections = sum(link is not None for its in links for link in its)
        self._operations.wake = self._by_operation()
        self._start_s = self._end_s = self._cpu_s = 0.0
        self._error: str | None = None
        self._ended = False

    def _by_operation(self) -> list[Callable[[], None]]:
        wake: list[Callable[[], None]] = [lambda: None] * len(self._operations.units.lo)
        for stream in (*self._sends, *self._receives):
            for unit, op in enumerate(stream.units.ops):
                wake[op] = partial(stream.wake, unit)
        return wake

    @property
    def running(self) -> bool:
        """Whether an iteration is under way."""
        return self._context.running

    def load(self, iteration: int) -> None:
        """The rank's own data of an iteration."""
        self._payload.load(iteration, self._context.buffer)
        self._context.iteration = iteration
        self._error = None
        self._operations.load()
        for stream in (*self._sends, *self._receives):
            stream.load()

    def start(self) -> None:
        """Everything that waits for nothing begins."""
        self._context.running = True
        self._start_s = self._operations.progress_s = time.monotonic()
        self._cpu_s = time.process_time()
        for send in self._sends:
            send.start()

    def just_ended(self) -> bool:
        """Whether the iteration has ended since this was asked last; ends it when nothing is left to do."""
        if self._context.running and self._operations.left == 0:
            self._end()
        ended, self._ended = self._ended, False
        return ended

    def _end(self) -> None:
        request = self._collective.request
        if operation(request.op).reduces:
            self._reduction.finish(self._context.buffer, len(request.group))
        self._context.running = False
        self._ended = True
        self._end_s = time.monotonic()
        self._cpu_s = time.process_time() - self._cpu_s

    def fail(self, reason: str) -> None:
        """The iteration cannot be completed; the connections end, so that the other ranks do not wait for this one."""
        if self._context.running:
            self._error = f"rank {self._endpoint.rank}: {reason}"
            self._end()
            self.close()

    def tick(self, now: float, late: float) -> None:
        """Signs of life, and what is overdue; the tick comes `late` seconds after it was due."""
        for receive in self._receives:
            receive.say_alive()
        for send in self._sends:
            if self._context.running:
                send.check(now, late)
        if self._context.running and now - self._operations.progress_s > self._endpoint.stall_timeout_s:
            self.fail(f"no progress for {self._endpoint.stall_timeout_s:g} s; waits for {self._who_waits()}")

    def _who_waits(self) -> str:
        waits = [stream.waits_for() for stream in (*self._receives, *self._sends) if not stream.done]
        more = len(waits) - WAITS_NAMED
        return "; ".join(waits[:WAITS_NAMED] + ([f"{more} more"] if more > 0 else []))

    def lost(self, nic: int, cause: Cause) -> None:
        """A NIC is down: sends over it move, and whoever sends to it is told."""
        for send in self._sends:
            send.lost(nic, cause)
        for receive in self._receives:
            receive.lost(nic)

    def results(self) -> Iterator[Result | None]:
        """Hands the result to the payload; None until it is done, so that the caller can see to other things."""
        rank = self._endpoint.rank
        found = Outcome()
        if self._error is None:
            for outcome in self._payload.finish(self._context.buffer):
                if outcome is None:
                    yield None
                else:
                    found = outcome
        error = self._error or (None if found.error is None else f"rank {rank}: {found.error}")
        recoveries = [one for send in self._sends for one in send.recoveries]
        iteration = self._context.iteration
        times = self._start_s, self._end_s, self._cpu_s
        yield Result(rank, iteration, *times, found.wrong_elements, recoveries, error, found.told)

    def close(self) -> None:
        """Ends all connections."""
        for stream in (*self._sends, *self._receives):
            stream.close()


def prepare(
    endpoint: Endpoint,
    collective: Collective,
    down: set[int],
    listeners: Listeners,
    selector: selectors.BaseSelector,
    generation: int,
    suspect: Callable[[NicPair], None],
    payload: Payload,
) -> Execution:
    """Connections and units of a plan, the `generation`-th of this process."""
    connect = partial(Wiring, endpoint, listeners, selector, generation)
    return Execution(endpoint, collective, down, connect, suspect, payload)
