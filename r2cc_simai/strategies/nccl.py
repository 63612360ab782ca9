"""NCCL as it is: a dead NIC ends the job, which restarts from its last checkpoint."""

from dataclasses import dataclass
from typing import ClassVar

from r2cc_simai.cluster.view import View
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Abort, Aborted, Break, Plan, Request, Restart, Strategy


@dataclass(frozen=True)
class Nccl(Strategy):
    """Crash and restart. The costs are the middles of the ranges that the R2CC paper (arXiv 2512.25059) reports for
    production clusters: 3-30 min until the failure is detected, 9-14 min to isolate it, 15-47 min to load the
    checkpoint. `lost_min` is the work since the checkpoint, half of a 30 min interval. With `spare=1` the failed
    server is replaced; with `spare=0` the job restarts on the NICs that are left, over which NCCL spreads its channels.
    """

    name: ClassVar[str] = "nccl"
    detect_min: float = 16.5
    isolate_min: float = 11.5
    reload_min: float = 31.0
    lost_min: float = 15.0
    spare: int = 1

    def plan(self, request: Request, view: View) -> Plan:
        """Rings over the NICs that NCCL finds when the communicator is made."""
        return Balance().plan(request, view)

    @property
    def survives(self) -> bool:
        """A communicator that has lost a connection is lost."""
        return False

    def react(self, event: Break, running: Plan, view: View) -> Abort:  # noqa: ARG002
        """The communicator is lost."""
        nic = view.cluster.nics[event.nic].full_name
        return Abort(f"{nic} went down; NCCL has no other path for its connections")

    def job_react(self, event: Aborted) -> Restart:  # noqa: ARG002
        """Detect, isolate, load the checkpoint, repeat what was lost."""
        minutes = self.detect_min + self.isolate_min + self.reload_min + self.lost_min
        return Restart(cost_s=60.0 * minutes, repaired=self.spare > 0)
