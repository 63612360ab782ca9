"""What both ends of a stream have in common; `lab.outgoing` and `lab.incoming` are the two.

Of the units that are ready the earliest goes first; what a later pass has ready fills the gaps. The sender keeps what
is not acknowledged: a send has ended, and its bytes may be written to, with the acknowledgement.

When a connection breaks the sender takes the next one that was made beforehand and asks there what the receiver has;
the receiver drops the part of a unit that has come, and names the first unit that is missing and those after it that
it has. (The sender's own acknowledgements would not do: what has come while its acknowledgement was lost would count
twice.)

Life is known from what the receiver says: acknowledgements, or `ALIVE` while a unit trickles in. A receiver whose
process gets no CPU time says nothing; its kernel then still acknowledges what has come, which a dead path does not, and
the sender waits longer.
"""

from collections.abc import Callable
from dataclasses import dataclass

from r2cc_simai.lab.operations import Operations
from r2cc_simai.lab.reduce import Elements, Reduction
from r2cc_simai.lab.transport import Link
from r2cc_simai.lab.units import NicPair, StreamUnits
from r2cc_simai.lab.wiring import Links


@dataclass
class Context:
    """What the streams of a rank share. `suspect(nics)`: a connection between NICs has fallen silent."""

    operations: Operations
    buffer: Elements
    reduction: Reduction
    down: set[int]
    ack_timeout_s: float
    kernel_counts: bool
    fail: Callable[[str], None]
    suspect: Callable[[NicPair], None]
    iteration: int = -1
    running: bool = False


class Stream:
    """What both ends have in common: units in order, and the connections, one of which is current."""

    def __init__(self, units: StreamUnits, links: Links, context: Context) -> None:
        self.units = units
        self.links = links
        self.link: Link | None = next(link for link in links if link is not None)
        self._context = context
        self._ops = units.ops
        for link in links:
            if link is not None:
                link.attach(self.on_event)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        raise NotImplementedError

    @property
    def current(self) -> int:
        """The number of the current connection."""
        return self.link.index if self.link else -1

    def load(self) -> None:
        """A new iteration; the connection stays the one that was current."""
        raise NotImplementedError

    def on_event(self, link: Link, mask: int) -> None:
        """Something has come, or there is room to send."""
        raise NotImplementedError

    def wake(self, unit: int) -> None:
        """The rank's operation for a unit may run."""
        raise NotImplementedError

    def waits_for(self) -> str:
        """What is missing, in words."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends all connections."""
        for link in self.links:
            if link is not None:
                link.close()

    def _other_link(self, avoid: NicPair | None) -> Link | None:
        """The best connection left; one that has a NIC in common with the broken pair only where there is no other."""
        left = [k for k in self.links if k is not None and not k.closed and k is not self.link]
        left = [k for k in left if k.nics is None or not self._context.down.intersection(k.nics)]
        apart = [k for k in left if not avoid or not k.nics or not set(avoid).intersection(k.nics)]
        return next(iter(apart or left), None)


def over(nics: NicPair | None) -> str:
    """Where a connection runs, in words."""
    return "a connection inside the server" if nics is None else f"NIC {nics[0]} to NIC {nics[1]}"
