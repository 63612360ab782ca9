"""What a detection is asked, and what it says. Times are seconds after the failure."""

import math
from dataclasses import dataclass
from enum import StrEnum

from r2cc_simai.failures.timeline import Component


class Part(StrEnum):
    """What an end blames, seen from the local end."""

    LOCAL_NIC = "local NIC"
    REMOTE_NIC = "remote NIC"
    CABLE = "cable or port"


@dataclass(frozen=True)
class Traffic:
    """When each end next sends data over the path, seconds after the failure; None: it never does."""

    local_s: float | None = 0.0
    remote_s: float | None = None


SENDING = Traffic()
"""Data goes from the local end to the remote one, all the time; what comes back is acknowledgements."""


@dataclass(frozen=True)
class Failure:
    """What failed between a local and a remote NIC; `auxiliary`: a third NIC is there to probe from."""

    component: Component
    traffic: Traffic = SENDING
    auxiliary: bool = True


@dataclass(frozen=True)
class End:
    """What one end knows: when (infinite: never), from where, and which part it blames (None: it cannot tell)."""

    known_s: float
    source: str
    blames: Part | None


@dataclass(frozen=True)
class Detection:
    """When both ends of a path know that it is broken."""

    local: End
    remote: End

    def resumes_s(self, migrate_s: float) -> float:
        """When traffic flows again over other NICs: the later of both ends, and the migration."""
        return max(self.local.known_s, self.remote.known_s) + migrate_s

    @property
    def found(self) -> bool:
        """Whether both ends will ever know."""
        return math.isfinite(self.resumes_s(0.0))
