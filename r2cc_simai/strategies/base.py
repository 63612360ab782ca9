"""What a strategy is: a plan for what is known, and an answer when something breaks."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Binding
from r2cc_simai.collectives.schedule import Schedule


@dataclass(frozen=True)
class Request:
    """A collective that is asked for: `op` (`all_reduce`) on `bytes` of buffer on each rank of `group`."""

    op: str
    group: tuple[int, ...]
    bytes: int


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
class Strategy(ABC):
    """A strategy and its options. Options are the dataclass fields of a subclass, written `name:key=value,...`."""

    name: ClassVar[str]
    # A strategy that is never told of failures and never hit by them: the baseline of every overhead.
    sees_failures: ClassVar[bool] = True
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

    def job_react(self, reason: str) -> Continue | Restart:  # noqa: ARG002
        """The answer when a collective was aborted."""
        return Continue()

    @property
    def spec(self) -> str:
        """The strategy as a user writes it, with the options that differ from the defaults."""
        defaults: dict[str, Any] = {f.name: f.default for f in fields(self)}
        own = [f"{k}={getattr(self, k)}" for k, default in defaults.items() if getattr(self, k) != default]
        return self.name + (":" + ",".join(own) if own else "")
