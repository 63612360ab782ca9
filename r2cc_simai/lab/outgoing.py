"""The sending end of a stream."""

import heapq
import time

import numpy as np

from r2cc_simai.lab.streams import Context, Stream, over
from r2cc_simai.lab.transport import READ, UNIT_HEADER, WRITE, BrokenLinkError, Frame, Kind, Link
from r2cc_simai.lab.units import NicPair, StreamUnits
from r2cc_simai.lab.wiring import Links
from r2cc_simai.lab.work import Cause, Recovery

# How many timeouts a receiver may be silent while its kernel acknowledges, and while nothing waits for its kernel.
PATIENCE_WITH_KERNEL = 20
PATIENCE_WITH_NOTHING_SENT = 10

# How many units a stream has under way from its first on that is not acknowledged. What is sent long before anybody
# waits for it queues at the receiver's NIC before what others wait for. Counted in units and not in bytes, as streams
# share a NIC in proportion to what they have under way, and larger sections, in larger units, are to have more of it.
LOOK_AHEAD = 3


class Outgoing(Stream):
    """Sends what is ready, the earliest unit first, and keeps it until it is acknowledged."""

    def __init__(self, units: StreamUnits, links: Links, context: Context) -> None:
        super().__init__(units, links, context)
        raw = context.buffer.view(np.uint8).data
        item = context.buffer.itemsize
        ranks = context.operations.units
        self._views = [raw[ranks.lo[op] * item : ranks.hi[op] * item] for op in self._ops]
        self._headers = [UNIT_HEADER.pack(k) for k in range(len(self._ops))]
        self.recoveries: list[Recovery] = []
        self._ready: list[int] = []  # units that may be sent, a heap
        self._unit = -1  # the unit that is being sent, -1: none
        self._offset = 0  # bytes of it, header included, that have gone
        self._under_way: dict[int, None] = {}  # units of which something has gone and that are not acknowledged
        self._acknowledged = bytearray(len(self._ops))
        self._left = len(self._ops)
        self._first = 0  # the first unit that is not acknowledged
        self._received: set[int] = set()  # units that the receiver has, as it says before it says what comes next
        self._full = False
        self._heard_s = 0.0
        self._moving: tuple[NicPair, Cause, float] | None = None  # from which NICs, why, since when
        for link in self.links:
            if link is not None:
                link.want(READ)

    @property
    def done(self) -> bool:
        """Whether all is acknowledged."""
        return self._left == 0

    def load(self) -> None:
        """Nothing has been sent."""
        self.recoveries = []
        self._ready = []
        self._unit, self._offset = -1, 0
        self._under_way = {}
        self._acknowledged = bytearray(len(self._ops))
        self._left = len(self._ops)
        self._first = 0
        self._received = set()
        self._full = False
        self._moving = None

    def start(self) -> None:
        """Sends what waits for nothing; where the connection is known to be broken, over another."""
        self._heard_s = time.monotonic()
        ready = self._context.operations.ready
        self._ready = [k for k, op in enumerate(self._ops) if ready(op)]
        if self.link is None or self.link.closed:
            self.move("reset")
        elif self.link.nics and self._context.down.intersection(self.link.nics):
            self.move("notice")
        else:
            self._send()

    def wake(self, unit: int) -> None:
        """A unit may be sent."""
        heapq.heappush(self._ready, unit)
        self._send()

    def _send(self) -> None:
        """Sends units that are ready until there is no more room."""
        link = self.link
        if link is None or self._full or self._moving or not self._context.running:
            return
        while self._unit >= 0 or (self._ready and self._ready[0] < self._first + LOOK_AHEAD):
            if self._unit < 0:
                self._begin(heapq.heappop(self._ready))
            try:
                self._offset += self._write(link)
            except BlockingIOError:
                self._wait_for_room(link)
                return
            except OSError:
                self.move("reset")
                return
            if self._offset < UNIT_HEADER.size + len(self._views[self._unit]):
                self._wait_for_room(link)
                return
            self._unit = -1

    def _begin(self, unit: int) -> None:
        if not self._under_way:
            self._heard_s = time.monotonic()
        self._under_way[unit] = None
        self._unit, self._offset = unit, 0

    def _write(self, link: Link) -> int:
        view, done = self._views[self._unit], self._offset - UNIT_HEADER.size
        if done >= 0:
            return link.sock.send(view[done:])
        return link.sock.sendmsg((self._headers[self._unit][self._offset :], view))

    def _wait_for_room(self, link: Link) -> None:
        self._full = True
        link.want(READ | WRITE)

    def on_event(self, link: Link, mask: int) -> None:
        """Frames of the receiver, or room to send."""
        if link.closed:
            return
        if mask & READ:
            try:
                for frame in link.frames():
                    self._on_frame(link, frame)
            except BrokenLinkError:
                self._on_broken(link)
                return
        if mask & WRITE and link is self.link and not link.closed:
            self._full = False
            link.want(READ)
            self._send()

    def _on_broken(self, link: Link) -> None:
        link.close()
        if link is self.link and self._context.running and not self.done:
            self.move("reset")

    def _on_frame(self, link: Link, frame: Frame) -> None:
        kind, iteration, value = frame
        if iteration != self._context.iteration or not self._context.running:
            return
        if kind in (Kind.MOVE, Kind.BROKEN):
            if value == self.current and not self.done:
                self.move("notice" if kind == Kind.MOVE else "reset")
        elif link is self.link:
            self._heard_s = time.monotonic()
            if kind == Kind.ACK:
                self._acknowledge(value)
                self._send()
            elif kind == Kind.HAVE:
                self._received.add(value)
            elif kind == Kind.NEXT and self._moving:
                self._resume(link, value)

    def _acknowledge(self, unit: int) -> None:
        if not self._acknowledged[unit]:
            self._acknowledged[unit] = 1
            self._left -= 1
            self._under_way.pop(unit, None)
            while self._first < len(self._ops) and self._acknowledged[self._first]:
                self._first += 1
            self._context.operations.complete(self._ops[unit])

    def move(self, cause: Cause) -> None:
        """Takes the next connection and asks the receiver there what it has."""
        old = self.link
        nics = old.nics if old else None
        if old is not None:
            old.close()
        link = self._other_link(nics)
        if link is None:
            self._context.fail(f"{self.units}: no connection is left after {cause} on {over(nics)}")
            return
        now = time.monotonic()
        self._moving = self._moving or (nics or (-1, -1), cause, now)
        self._received = set()
        self._full = False
        self._heard_s = now
        self.link = link
        link.post(Kind.RESUME, self._context.iteration, 0)

    def _resume(self, link: Link, first_missing: int) -> None:
        """Sends again what the receiver does not have."""
        assert self._moving is not None
        old, cause, detected = self._moving
        has = [k for k in self._under_way if k < first_missing or k in self._received]
        again = [k for k in self._under_way if k not in has]
        sent = {k: UNIT_HEADER.size + len(self._views[k]) for k in again}
        if self._unit in sent:
            sent[self._unit] = self._offset
        self._unit, self._offset = -1, 0
        self._under_way = dict.fromkeys(has)
        for unit in again:
            heapq.heappush(self._ready, unit)
        for unit in has:
            self._acknowledge(unit)
        self._moving = None
        hop = self.units.channel, self.units.src, self.units.dst
        new = link.nics or (-1, -1)
        self.recoveries.append(Recovery(*hop, old, new, cause, detected, time.monotonic(), sum(sent.values())))
        self._send()

    def check(self, now: float, late: float) -> None:
        """Gives the connection up when the receiver was not heard for too long while units are under way.

        The time by which the tick is `late` does not count: a machine that lets this rank wait lets others wait, too.
        """
        self._heard_s += late
        link, timeout = self.link, self._context.ack_timeout_s
        waits = self._under_way or self._moving
        if link is None or link.nics is None or not waits or now - self._heard_s < timeout:
            return
        if now - self._heard_s >= timeout * self._patience(link, timeout):
            self._context.suspect(link.nics)
            self.move("ack-timeout")

    def _patience(self, link: Link, timeout: float) -> int:
        """How many timeouts to wait for a receiver that says nothing."""
        if not self._context.kernel_counts:
            return 1
        heard = link.kernel_heard(timeout)
        if heard is None:
            return PATIENCE_WITH_NOTHING_SENT
        return PATIENCE_WITH_KERNEL if heard else 1

    def lost(self, nic: int, cause: Cause) -> None:
        """A NIC is down: what runs over it moves."""
        if self._context.running and self.link is not None and self.link.uses(nic) and not self.done:
            self.move(cause)

    def waits_for(self) -> str:
        """What is missing, in words."""
        where = over(self.link.nics if self.link else None)
        if self._moving:
            return f"{self.units}: an answer to the request to resume over {where}"
        unit = self._first
        what = "the acknowledgement of" if unit in self._under_way else "what it depends on, for"
        if self._full and unit not in self._under_way:
            what = "room to send"
        return f"{self.units}: {what} unit {unit + 1} of {len(self._ops)} over {where}"
