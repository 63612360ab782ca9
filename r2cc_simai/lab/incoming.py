"""The receiving end of a stream."""

import numpy as np

from r2cc_simai.lab.streams import Context, Stream, over
from r2cc_simai.lab.transport import READ, BrokenLinkError, Kind, Link
from r2cc_simai.lab.units import StreamUnits
from r2cc_simai.lab.wiring import Links

UNITS_PER_EVENT = 2  # a fast connection must not keep the others waiting


class Incoming(Stream):
    """The receiver's end. `next` is the first unit that is not reduced yet; the offset says how much of it has come."""

    def __init__(self, units: StreamUnits, links: Links, context: Context) -> None:
        super().__init__(units, links, context)
        ranks, buffer = context.operations.units, context.buffer
        most = max((ranks.hi[op] - ranks.lo[op] for op in self._ops), default=0)
        # What is to be added comes into memory beside: a part of a unit can then be dropped. A copy can be overwritten.
        staging = np.empty(most, dtype=buffer.dtype)
        self._targets = [buffer[ranks.lo[op] : ranks.hi[op]] for op in self._ops]
        self._adds = [ranks.reduce[op] for op in self._ops]
        arrays = (
            staging[: len(target)] if adds else target for target, adds in zip(self._targets, self._adds, strict=True)
        )
        self._views = [array.view(np.uint8).data for array in arrays]
        self._staging = staging
        self._said = (-1, 0)  # unit and offset at the last sign of life
        for link in self.links:
            if link is not None and link is not self.link:
                link.want(READ)

    def advance(self) -> None:
        """Reads the connection only while its next unit may be written: what is not read waits at the sender."""
        if self.link is not None and not self.link.closed:
            self.link.want(READ if self._may_read() else 0)

    def _may_read(self) -> bool:
        if self.next == len(self._ops) or not self._context.running:
            return False
        return self._offset > 0 or self._context.operations.ready(self._ops[self.next])

    def on_event(self, link: Link, mask: int) -> None:  # noqa: ARG002
        """Units on the current connection; on any other the sender's wish to go on there."""
        if link.closed:
            return
        try:
            if link is self.link:
                self._receive(link)
            else:
                for kind, iteration, _ in link.frames():
                    if kind == Kind.RESUME and iteration == self._context.iteration:
                        self._resume(link)
        except BrokenLinkError:
            link.close()
            if link is self.link and self._context.running and not self.done:
                self.lost()

    def _receive(self, link: Link) -> None:
        for _ in range(UNITS_PER_EVENT):
            if not self._may_read():
                break
            view = self._views[self.next]
            try:
                got = link.sock.recv_into(view[self._offset :] if self._offset else view)
            except BlockingIOError:
                return
            except OSError as error:
                raise BrokenLinkError(str(error)) from None
            if not got:
                raise BrokenLinkError("closed by the other end")
            self._offset += got
            if self._offset < len(view):
                return
            self._take(link)
        self.advance()

    def _take(self, link: Link) -> None:
        """A whole unit has come."""
        unit = self.next
        if self._adds[unit]:
            target = self._targets[unit]
            self._context.reduction.into(target, self._staging[: len(target)])
        self.next += 1
        self._offset = 0
        link.post(Kind.ACK, self._context.iteration, self.next)
        self._context.operations.complete(self._ops[unit])

    def wanted_next(self) -> int:
        """The unit with which the sender has to go on."""
        return self.next

    def _resume(self, link: Link) -> None:
        """The sender goes on over this connection: what has come of a unit is dropped."""
        if self.link is not None:
            self.link.close()
        self.link = link
        self._offset = 0
        link.post(Kind.NEXT, self._context.iteration, self.wanted_next())
        link.want(0)
        self.advance()

    def lost(self, nic: int | None = None) -> None:
        """The current connection, or its NIC, is broken: the sender is told over another, and chooses."""
        old = self.link
        if old is None or self.done or not self._context.running or (nic is not None and not old.uses(nic)):
            return
        other = self._other_link(old.nics)
        if other is not None:
            other.post(Kind.MOVE, self._context.iteration, old.index)

    def say_alive(self) -> None:
        """A sign of life while the next unit trickles in, or waits for other operations of this rank."""
        link = self.link
        if link is None or link.closed or link.nics is None or self.done:
            return
        blocked = not self._may_read()
        if blocked or (self.next, self._offset) != self._said:
            link.post(Kind.ALIVE, self._context.iteration, self.next)
        self._said = (self.next, self._offset)
        link.flush()

    def waits_for(self) -> str:
        """What is missing, in words."""
        where = over(self.link.nics if self.link else None)
        what = "unit" if self._may_read() else "what it depends on, for unit"
        return f"{self.units}: {what} {self.next + 1} of {len(self._ops)} over {where}"
