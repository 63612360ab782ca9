"""The receiving end of a stream."""

import numpy as np

from r2cc_simai.lab.reduce import Elements
from r2cc_simai.lab.streams import Context, Stream, over
from r2cc_simai.lab.transport import READ, UNIT_HEADER, BrokenLinkError, Kind, Link
from r2cc_simai.lab.units import StreamUnits
from r2cc_simai.lab.wiring import Links

UNITS_PER_EVENT = 2  # a fast connection must not keep the others waiting


class Incoming(Stream):
    """Takes units as they come and acknowledges each. One that may not be written yet is kept beside until it may.

    What is to be added comes into memory beside, too: a part of a unit can then be dropped. A copy can be overwritten.
    """

    def __init__(self, units: StreamUnits, links: Links, context: Context) -> None:
        super().__init__(units, links, context)
        ranks, buffer = context.operations.units, context.buffer
        self._targets = [buffer[ranks.lo[op] : ranks.hi[op]] for op in self._ops]
        self._adds = [ranks.reduce[op] for op in self._ops]
        self._most = max((len(target) for target in self._targets), default=0)
        self._spare = np.empty(self._most, dtype=buffer.dtype)
        self._header = bytearray(UNIT_HEADER.size)
        self._header_view = memoryview(self._header)
        self._come = bytearray(len(self._ops))
        self._missing = len(self._ops)
        self._kept: dict[int, Elements] = {}  # units that have come and may not be written yet
        self._forget_part()
        self._said = (-1, 0)  # units that were missing and the offset at the last sign of life
        for link in self.links:
            if link is not None:
                link.want(READ)

    def _forget_part(self) -> None:
        self._unit = -1  # the unit that comes, -1: its header comes
        self._array = self._spare
        self._view = memoryview(b"")
        self._offset = 0  # bytes that have come, of the unit or of its header

    @property
    def done(self) -> bool:
        """Whether all units have come."""
        return self._missing == 0

    def load(self) -> None:
        """Nothing has come."""
        self._come = bytearray(len(self._ops))
        self._missing = len(self._ops)
        self._kept = {}
        self._forget_part()

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
            if link is self.link:
                self.lost()

    def _receive(self, link: Link) -> None:
        for _ in range(UNITS_PER_EVENT):
            try:
                got = self._read(link)
            except BlockingIOError:
                return
            except OSError as error:
                raise BrokenLinkError(str(error)) from None
            if not got:
                raise BrokenLinkError("closed by the other end")
            self._offset += got
            if self._unit >= 0 and self._offset >= len(self._view):
                beyond = self._offset - len(self._view)
                self._take(link)
                self._offset = beyond
            if self._unit < 0 and self._offset == UNIT_HEADER.size:
                self._begin()
            elif self._unit >= 0:
                return

    def _read(self, link: Link) -> int:
        """Reads what is left of the unit, and the header of the next."""
        if self._unit < 0:
            return link.sock.recv_into(self._header_view[self._offset :])
        rest = self._view[self._offset :] if self._offset else self._view
        return link.sock.recvmsg_into((rest, self._header_view))[0]

    def _begin(self) -> None:
        """A header has come: where does its unit go?"""
        (unit,) = UNIT_HEADER.unpack(self._header)
        target = self._targets[unit]
        direct = not self._adds[unit] and self._context.operations.ready(self._ops[unit])
        self._unit, self._offset = unit, 0
        self._array = target if direct else self._spare[: len(target)]
        self._view = self._array.view(np.uint8).data

    def _take(self, link: Link) -> None:
        """A whole unit has come."""
        unit, array = self._unit, self._array
        self._come[unit] = 1
        self._missing -= 1
        self._unit = -1
        link.post(Kind.ACK, self._context.iteration, unit)
        if self._context.operations.ready(self._ops[unit]):
            self._write(unit, array)
        else:
            self._kept[unit] = array
            self._spare = np.empty(self._most, dtype=array.dtype)

    def _write(self, unit: int, array: Elements) -> None:
        target = self._targets[unit]
        if self._adds[unit]:
            self._context.reduction.into(target, array)
        elif array is not target:
            target[:] = array
        self._context.operations.complete(self._ops[unit])

    def wake(self, unit: int) -> None:
        """A unit may be written; perhaps it has come already."""
        array = self._kept.pop(unit, None)
        if array is not None:
            self._write(unit, array)

    def first_missing(self) -> int:
        """The first unit that has not come."""
        return self._come.index(0) if self._missing else len(self._ops)

    def _resume(self, link: Link) -> None:
        """The sender goes on over this connection: what has come of a unit is dropped."""
        if self.link is not None:
            self.link.close()
        self.link = link
        self._forget_part()
        iteration, first = self._context.iteration, self.first_missing()
        for unit in range(first, len(self._ops)):
            if self._come[unit]:
                link.post(Kind.HAVE, iteration, unit)
        link.post(Kind.NEXT, iteration, first)

    def lost(self, nic: int | None = None) -> None:
        """The current connection, or its NIC, is broken: the sender is told over another, and chooses."""
        old = self.link
        if old is None or self.done or not self._context.running or (nic is not None and not old.uses(nic)):
            return
        other = self._other_link(old.nics)
        if other is not None:
            other.post(Kind.BROKEN if nic is None else Kind.MOVE, self._context.iteration, old.index)

    def say_alive(self) -> None:
        """A sign of life while a unit trickles in."""
        link = self.link
        if link is None or link.closed or link.nics is None or self.done:
            return
        if self._unit >= 0 and (self._missing, self._offset) != self._said:
            link.post(Kind.ALIVE, self._context.iteration, self._unit)
        self._said = (self._missing, self._offset)
        link.flush()

    def waits_for(self) -> str:
        """What is missing, in words."""
        where = over(self.link.nics if self.link else None)
        return f"{self.units}: unit {self.first_missing() + 1} of {len(self._ops)} over {where}"
