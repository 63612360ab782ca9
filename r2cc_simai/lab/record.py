"""What the lab keeps of every iteration, as JSON beside the results table."""

import os
import platform
import socket
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from r2cc_simai.lab.cuts import Done
from r2cc_simai.lab.work import Notice, Result

Role = Literal["steady", "cut", "during", "after"]
"""`steady`: all failures were there before and known; `cut`: the first that meets a script; `during`: others until the
script has ended; `after`: on the plan made for what is known then."""


@dataclass(frozen=True)
class Iteration:
    """One collective. Times are seconds since it started, `*_bytes` (received, sent) by NIC name.

    `recoveries` counts streams that moved to another NIC, `false_alarms` NICs that were reported down and were not.
    """

    role: Role
    repetition: int
    number: int
    time_s: float
    ranks_s: tuple[float, ...]
    cpu_s: tuple[float, ...]
    wire_bytes: dict[str, tuple[int, int]]
    interface_bytes: dict[str, tuple[int, int]]
    wrong_elements: int
    recoveries: tuple[dict[str, Any], ...]
    false_alarms: int
    note: str


@dataclass(frozen=True)
class CaseRecord:
    """All that was measured of one strategy under one failure pattern, of which `failure` is the name.

    `began_s`: when each cut began, by repetition; `done`: every action of its script.
    """

    strategy: str
    failure: str
    pattern: str
    bytes: int
    iterations: tuple[Iteration, ...]
    began_s: tuple[dict[int, float], ...]
    done: tuple[tuple[Done, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """As a raw file holds it, with the machine on which it ran."""
        return {"environment": environment(), **asdict(self)}


def recoveries_of(results: list[Result], start_s: float) -> tuple[dict[str, Any], ...]:
    """The recoveries of an iteration in order of time, times relative to its start."""
    every = sorted((one for result in results for one in result.recoveries), key=lambda r: r.resumed_s)
    return tuple(
        {**asdict(one), "detected_s": one.detected_s - start_s, "resumed_s": one.resumed_s - start_s} for one in every
    )


def false_alarms(notices: list[Notice], dead: frozenset[int]) -> int:
    """NICs that ranks took for broken and that were not."""
    return len({notice.nic for notice in notices if not notice.up} - dead)


_SCHEDULING = {os.SCHED_FIFO: "real-time", os.SCHED_OTHER: "normal"}


def environment() -> dict[str, str]:
    """The machine, the versions of what measured on it, and what else it was doing."""
    system = os.uname()
    found = {"host": socket.gethostname(), "kernel": f"{system.sysname} {system.release}", "machine": system.machine}
    found |= {"cores": str(os.cpu_count()), "load": f"{os.getloadavg()[0]:.1f}"}
    found |= {"scheduling": _SCHEDULING.get(os.sched_getscheduler(0), "other"), "python": platform.python_version()}
    for package in ("r2cc-simai", "numpy", "pyroute2"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    if found["r2cc-simai"] == "not installed":
        from r2cc_simai import __version__

        found["r2cc-simai"] = __version__
    return found
