"""The sending end of a stream."""

import time

import numpy as np

from r2cc_simai.lab.streams import Context, Stream, over
from r2cc_simai.lab.transport import READ, WRITE, BrokenLinkError, Frame, Kind, Link
from r2cc_simai.lab.units import NicPair, StreamUnits
from r2cc_simai.lab.wiring import Links
from r2cc_simai.lab.work import Cause, Recovery

# How many timeouts a receiver may be silent while its kernel acknowledges, and while nothing waits for its kernel.
PATIENCE_WITH_KERNEL = 20
PATIENCE_WITH_NOTHING_SENT = 10


class Outgoing(Stream):
    """The sender's end. `next` and the offset say what goes out next, units before `acked` have ended."""

    def __init__(self, units: StreamUnits, links: Links, context: Context) -> None:
        super().__init__(units, links, context)
        raw = context.buffer.view(np.uint8).data
        item = context.buffer.itemsize
        ranks = context.operations.units
        self._views = [raw[ranks.lo[op] * item : ranks.hi[op] * item] for op in self._ops]
        self.acked = 0
        self.recoveries: list[Recovery] = []
        self._full = False
        self._heard_s = 0.0
        self._moving: tuple[NicPair, Cause, float] | None = None  # from which NICs, why, since when
        for link in self.links:
            if link is not None:
                link.want(READ)

    @property
    def done(self) -> bool:
        """Whether all is acknowledged."""
        return self.acked == len(self._ops)

    def load(self) -> None:
        """The first unit is next."""
        super().load()
        self.acked = 0
        self.recoveries = []
        self._full = False
        self._moving = None

    def start(self) -> None:
        """Sends; where the connection is known to be broken, over another."""
        self._heard_s = time.monotonic()
        if self.link is None or self.link.closed:
            self.move("reset")
        elif self.link.nics and self._context.down.intersection(self.link.nics):
            self.move("notice")
        else:
            self.advance()

    def advance(self) -> None:
        """Sends units that are ready until there is no more room."""
        link = self.link
        if link is None or self._full or self._moving or not self._context.running:
            return
        ready, ops, views = self._context.operations.ready, self._ops, self._views
        while self.next < len(ops) and (self._offset or ready(ops[self.next])):
            if self.acked == self.next and not self._offset:
                self._heard_s = time.monotonic()
            view = views[self.next]
            try:
                self._offset += link.sock.send(view[self._offset :] if self._offset else view)
            except BlockingIOError:
                self._wait_for_room(link)
                return
            except OSError:
                self.move("reset")
                return
            if self._offset < len(view):
                self._wait_for_room(link)
                return
            self.next += 1
            self._offset = 0

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
            self.advance()

    def _on_broken(self, link: Link) -> None:
        link.close()
        if link is self.link and self._context.running and not self.done:
            self.move("reset")

    def _on_frame(self, link: Link, frame: Frame) -> None:
        kind, iteration, value = frame
        if iteration != self._context.iteration or not self._context.running:
            return
        if kind == Kind.MOVE:
            if value == self.current and not self.done:
                self.move("notice")
        elif link is self.link:
            self._heard_s = time.monotonic()
            if kind == Kind.NEXT and self._moving:
                self._resume(link, value)
            elif kind == Kind.ACK:
                self._acknowledge(value)

    def _acknowledge(self, unit: int) -> None:
        while self.acked < unit:
            self.acked += 1
            self._context.operations.complete(self._ops[self.acked - 1])

    def move(self, cause: Cause) -> None:
        """Takes the next connection and asks the receiver there which unit is next."""
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
        self._full = False
        self._heard_s = now
        self.link = link
        link.post(Kind.RESUME, self._context.iteration, 0)

    def _resume(self, link: Link, unit: int) -> None:
        """Goes on with the unit that the receiver wants."""
        assert self._moving is not None
        old, cause, detected = self._moving
        resent = sum(len(self._views[k]) for k in range(unit, self.next)) + self._offset
        self.next, self._offset = unit, 0
        self._acknowledge(unit)
        self._moving = None
        hop = self.units.channel, self.units.src, self.units.dst
        new = link.nics or (-1, -1)
        self.recoveries.append(Recovery(*hop, old, new, cause, detected, time.monotonic(), resent))
        self.advance()

    def check(self, now: float) -> None:
        """Gives the connection up when the receiver was not heard for too long while units are under way."""
        link, timeout = self.link, self._context.ack_timeout_s
        under_way = self.next > self.acked or self._offset or self._moving
        if link is None or link.nics is None or not under_way or now - self._heard_s < timeout:
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
        if self.next > self.acked:
            return f"{self.units}: the acknowledgement of unit {self.acked + 1} of {len(self._ops)} over {where}"
        why = "room to send" if self._full else "what it depends on, for"
        return f"{self.units}: {why} unit {self.next + 1} of {len(self._ops)} over {where}"
