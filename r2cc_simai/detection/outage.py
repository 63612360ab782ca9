"""An outage of a NIC as a recovery protocol meets it, and what comes out of that."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Outage:
    """A NIC that went down and came back. All times are seconds of the job.

    `down_s` is the failure, `sender_s` and `receiver_s` are when the two ends knew of it. `working_s` are the spans
    (from, until) after the failure in which the NIC works; the last one may have no end (infinity).
    """

    nic: str
    down_s: float
    sender_s: float
    receiver_s: float
    working_s: tuple[tuple[float, float], ...]

    @property
    def up_s(self) -> float:
        """When the NIC first came back after both ends knew; infinite if it never did."""
        known = max(self.sender_s, self.receiver_s)
        return min((max(begin, known) for begin, end in self.working_s if end > known), default=math.inf)

    def works(self, time_s: float) -> bool:
        """Whether the NIC works at a time."""
        return any(begin <= time_s < end for begin, end in self.working_s)


@dataclass(frozen=True)
class Recovery:
    """What recovery made of an outage.

    `recovered_s` is when the NIC carried traffic again, None if it never did. `recoveries` counts protocol runs that
    succeeded (0 or 1), `failed_attempts` the attempts that did not, `rounds` how often the protocol was started.
    """

    outage: Outage
    recovered_s: float | None
    recoveries: int
    failed_attempts: int
    rounds: int
    reason: str = ""

    @property
    def note(self) -> str:
        """One line for the user."""
        up = self.outage.up_s
        tried = f"{self.failed_attempts} failed attempt{'s' * (self.failed_attempts != 1)}"
        if self.recovered_s is None:
            return f"{self.outage.nic} is back at {up:.6g} s but stays unused: {self.reason} ({tried})"
        late = self.recovered_s - up
        return f"{self.outage.nic} is back at {up:.6g} s and in use again {late:.4g} s later ({tried})"
