"""What fails when: events on NICs, in order of time."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Component(StrEnum):
    """What fails between two NICs, from the side of the NIC that an event names."""

    NIC = "nic"
    PORT = "port"
    """The NIC's port, transceiver or switch port."""
    CABLE = "cable"
    """The cable between the NIC and its switch."""
    PATH = "path"
    """A path inside the fabric: both links stay up."""
    REMOTE_NIC = "remote-nic"


@dataclass(frozen=True)
class Event:
    """NIC `nic` goes to `fraction` of its rate (0: down, 1: repaired), because `component` did.

    It happens at `time_s`, or where `at_bytes` is given when the NIC's counter of bytes on the wire (headers
    included, the larger of its two directions) reaches that value.
    """

    nic: int
    fraction: float
    time_s: float = 0.0
    at_bytes: float | None = None
    component: Component = Component.NIC


@dataclass(frozen=True)
class Timeline:
    """Events sorted by time; those by byte count come last. `pattern` is what the user wrote."""

    events: tuple[Event, ...] = ()
    pattern: str = "none"

    def fractions(self, n_nics: int, time_s: float, delay_s: float = 0.0) -> NDArray[np.float64]:
        """Rate fraction of each NIC at a time. A change to down or slower counts `delay_s` after it happened.

        With the delay of detection this is what the ends of the connections know; what was there when the
        job started (`time_s` <= 0) is known at once.
        """
        state = np.ones(n_nics)
        for event in self.events:
            if event.at_bytes is not None:
                continue
            late = delay_s if event.fraction < 1 and event.time_s > 0 else 0.0
            if event.time_s + late <= time_s:
                state[event.nic] = event.fraction
        return state


def sorted_timeline(events: list[Event], pattern: str) -> Timeline:
    """A timeline of `events` in order of time; equal times keep the order given."""
    timed = sorted((e for e in events if e.at_bytes is None), key=lambda e: e.time_s)
    counted = sorted((e for e in events if e.at_bytes is not None), key=lambda e: e.at_bytes or 0.0)
    return Timeline(tuple(timed + counted), pattern)
