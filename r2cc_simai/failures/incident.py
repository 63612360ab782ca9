"""An incident: one component that is down or slower for a time."""

import math
from dataclasses import dataclass

from r2cc_simai.failures.component import kind_of


@dataclass(frozen=True)
class Incident:
    """A component is at `state` of its rate from `begin_s` until `end_s`, in seconds; infinity means for good.

    `component` is a name as `--fail` takes it: `server0.nic3`, `server0.nic3.cable`, `server2`, `rail1`, `leaf0`,
    `server[0-3].nic1`. A `state` of 0 is down, between 0 and 1 it is the fraction of the rate that is left. `cause` is
    what statistics count the incident under (`optics batch`); where it is empty, the kind of the component.
    """

    component: str
    begin_s: float
    end_s: float = math.inf
    state: float = 0.0
    cause: str = ""

    @property
    def counts_as(self) -> str:
        """The cause, or the kind of the component: nic, port, cable, path, server, rail or leaf."""
        return self.cause or kind_of(self.component)
