"""What a strategy is: a plan for what is known, and an answer when something breaks."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Binding
from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.detection.outage import Outage, Recovery


@dataclass(frozen=True)
class Request:
    """A collective that is asked for: `op` (a name of `collectives.operations`) over the ranks of `group`.

    `bytes` is the size as nccl-tests reports it: the buffer of a rank, for all_gather, reduce_scatter and all_to_all
    the larger one, whose block k belongs to `group[k]`. In send_recv `group[k]` sends to the next of the group, in send
    the first of two to the second. `root` is the rank where a broadcast starts and a reduce ends.
    """

    op: str
    group: tuple[int, ...]
    bytes: int
    root: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """How a collective will run. `one_off_s` is what the first run of the plan costs beside; `note` says what a
    user should know of the choice, for example that the strategy stood back for another."""

    schedule: Schedule
    binding: Binding
    one_off_s: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Break:
    """Connections broke in mid-collective and both ends know: the NIC, and seconds since the collective's start."""

    nic: int
    time_s: float


@dataclass(frozen=True, eq=False)
class Rebind:
    """The running collective goes on over these lanes; hops that it does not name migrate to their backups."""

    binding: Binding


@dataclass(frozen=True)
class Abort:
    """The running collective ends; the job has to react."""

    reason: str


@dataclass(frozen=True)
class Continue:
    """The job goes on with its next collective."""


@dataclass(frozen=True)
class Restart:
    """The job stops for `cost_s` and repeats the collective; `repaired`: the failed hardware has been replaced."""

    cost_s: float
    repaired: bool


@dataclass(frozen=True)
class Shrink:
    """The job goes on without `ranks` and repeats the collective; `cost_s` is what the change costs once."""

    ranks: tuple[int, ...]
    cost_s: float = 0.0


@dataclass(frozen=True)
class Aborted:
    """A collective that a strategy aborted: why, the NIC that broke, what is known then, and who took part."""

    reason: str
    nic: int
    view: View
    group: tuple[int, ...]


@dataclass(frozen=True)
class Strategy(ABC):
    """A strategy and its options. Options are the dataclass fields of a subclass, written `name:key=value,...`."""

    name: ClassVar[str]
    # A strategy that is never told of failures and never hit by them: the baseline of every overhead.
    sees_failures: ClassVar[bool] = True
    # The collectives that it plans in a way of its own; every other one runs as under Balance. None: all of them.
    own_plans: ClassVar[frozenset[str] | None] = None
    # Whether it makes new plans after a failure; if not, a captured CUDA graph stays valid.
    replans: ClassVar[bool] = True

    @abstractmethod
    def plan(self, request: Request, view: View) -> Plan:
        """The plan for a request in a known state of the cluster. Pure: equal arguments give equal plans.

        Raises:
            PartitionedError: the known failures leave ranks without a path.
            InputError: the strategy does not apply to such a request.
        """

    def react(self, event: Break, running: Plan, view: View) -> Rebind | Abort | None:  # noqa: ARG002
        """The answer when connections of a running plan have broken. None: move each to its backup NICs."""
        return None

    def job_react(self, event: Aborted) -> Continue | Restart | Shrink:  # noqa: ARG002
        """The answer when a collective was aborted. `Continue`: the job cannot go on, and ends with the reason."""
        return Continue()

    def members(self, group: tuple[int, ...], view: View) -> tuple[int, ...]:  # noqa: ARG002
        """The ranks of a group that take part in a known state of the cluster; all of them by default."""
        return group

    def recover(self, outage: Outage) -> Recovery | None:  # noqa: ARG002
        """When a NIC that has come back carries traffic again. None: with the next plan, at once."""
        return None

    @property
    def survives(self) -> bool:
        """Whether communicators live on when a NIC fails. If not, each stays what it is until it has to pass the NIC;
        then it is aborted."""
        return True

    @property
    def failover_s(self) -> float:
        """Seconds that this strategy needs for a failover beside detection, notice and migration."""
        return 0.0

    @property
    def spec(self) -> str:
        """The strategy as a user writes it, with the options that differ from the defaults."""
        defaults: dict[str, Any] = {f.name: f.default for f in fields(self)}
        own = [f"{k}={getattr(self, k)}" for k, default in defaults.items() if getattr(self, k) != default]
        return self.name + (":" + ",".join(own) if own else "")
