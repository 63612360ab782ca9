"""NCCL's port failover (2.29.7) and port recovery (2.30): a dead port's traffic goes to the other port of its device.

Here the other port is the first backup NIC of the cluster file. A completion with an error marks the device as failed;
NCCL then asks over the other port which data had arrived (`probe_ms`) and sends the rest there. When the port works
again a recovery protocol of both ends decides whether it is used again (`detection.port_recovery`).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from r2cc_simai.cluster.view import View
from r2cc_simai.detection.outage import Outage, Recovery
from r2cc_simai.detection.port_recovery import Timers, recover_port
from r2cc_simai.errors import InputError
from r2cc_simai.strategies.base import Abort, Break, Plan, Request, Strategy
from r2cc_simai.strategies.hot_repair import HotRepair

ErrorClass = Literal["retry-exceeded", "flush", "access"]
"""How the failure shows in a completion. An access error is fatal (rocm-systems pull request 6145)."""


@dataclass(frozen=True)
class NcclFailover(Strategy):
    """Defaults of the timers: NCCL's environment variables `NCCL_IB_RESILIENCY_*`; see `port_recovery.Timers`.

    `attempts` is each end's budget, `skew_s` how much later than the sender the receiver begins, `lost_attempts` how
    many attempts fail after the repair because the address changed. `backoff_s` above 0 starts the protocol anew.
    """

    name: ClassVar[str] = "nccl-failover"
    replans: ClassVar[bool] = False  # the schedule stays, so a captured CUDA graph stays valid
    error: ErrorClass = "retry-exceeded"
    probe_ms: float = 10.0
    start_ms: float = 200.0
    batch_ms: float = 500.0
    alive_ms: float = 4000.0
    ack_ms: float = 5000.0
    attempts: int = 5
    skew_s: float = 0.0
    lost_attempts: int = 0
    backoff_s: float = 0.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InputError(f"strategy {self.name}: attempts={self.attempts}: at least 1 is needed")
        if self.alive_ms <= 0 or self.ack_ms <= 0:
            raise InputError(f"strategy {self.name}: alive_ms and ack_ms must be above 0")

    def plan(self, request: Request, view: View) -> Plan:
        """The rings of the healthy cluster, those of dead ports on their backups."""
        return HotRepair().plan(request, view)

    @property
    def survives(self) -> bool:
        """All errors but the fatal one are survived."""
        return self.error != "access"

    def react(self, event: Break, running: Plan, view: View) -> Abort | None:  # noqa: ARG002
        """A retry count that is exceeded and flushed requests are survived; an access error ends the job at once."""
        if self.error != "access":
            return None
        nic = view.cluster.nics[event.nic].full_name
        return Abort(f"remote access error on {nic}: a fatal error, which port failover does not handle")

    def recover(self, outage: Outage) -> Recovery:
        """Runs the recovery protocol; the receiver begins `skew_s` later than it knows."""
        late = Outage(outage.nic, outage.down_s, outage.sender_s, outage.receiver_s + self.skew_s, outage.working_s)
        timers = Timers(
            start_s=self.start_ms * 1e-3,
            batch_s=self.batch_ms * 1e-3,
            alive_timeout_s=self.alive_ms * 1e-3,
            ack_timeout_s=self.ack_ms * 1e-3,
            attempts=self.attempts,
            lost_attempts=self.lost_attempts,
            pause_s=self.backoff_s,
        )
        return recover_port(late, timers)

    @property
    def failover_s(self) -> float:
        """The probe of what had arrived."""
        return self.probe_ms * 1e-3
