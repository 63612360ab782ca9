"""What a run was: where, with what, when and how it ended; a JSON file beside its raw log."""

import datetime
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from r2cc_simai import __version__
from r2cc_simai.real.environment import influences
from r2cc_simai.real.launcher import Command
from r2cc_simai.real.process import Ended
from r2cc_simai.results.files import replace_file

_NCCL = re.compile(r"NCCL version (\d[\w.+-]*)")
_NCCL_TESTS = re.compile(r"# nccl-tests version (\S+)")


@dataclass(frozen=True)
class RunRecord:
    """One repetition. `environment` holds the variables that may change what is measured, no others."""

    repetition: int
    repetitions: int
    started: str
    host: str
    kernel: str
    hosts: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str]
    versions: Mapping[str, str]
    log: str
    limit_s: float
    exit_codes: tuple[int, ...] = ()
    stopped: str = ""
    wall_s: float = 0.0
    failure: Mapping[str, Any] = field(default_factory=dict)

    @property
    def provenance(self) -> str:
        """What a row of the results table says of its run: repetition, host, kernel and versions."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"repetition {self.repetition} of {self.repetitions}, {self.host}, {self.kernel}, {versions}"

    def write(self, path: Path) -> None:
        """Stores it as JSON."""
        replace_file(path, json.dumps(asdict(self), indent=2).encode() + b"\n")


def new_record(
    commands: Sequence[Command],
    hosts: Sequence[str],
    log: Path,
    limit_s: float,
    numbers: tuple[int, int],
    variables: Mapping[str, str],
    versions: Mapping[str, str],
) -> RunRecord:
    """The record of a run that is about to start; `numbers` are its repetition, from 1, and how many there are.

    `variables` are those that the ranks get, whichever way the launcher hands them on.
    """
    system = platform.uname()
    return RunRecord(
        repetition=numbers[0],
        repetitions=numbers[1],
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        host=system.node,
        kernel=f"{system.system} {system.release}",
        hosts=tuple(hosts),
        commands=tuple(command.argv for command in commands),
        environment={**influences(os.environ), **variables},
        versions={
            "r2cc-simai": __version__,
            "Python": platform.python_version(),
            **{k: v for k, v in versions.items() if v},
        },
        log=log.name,
        limit_s=limit_s,
    )


def ended_values(ended: Ended) -> dict[str, Any]:
    """How a run ended, as fields of its record."""
    return {"exit_codes": ended.codes, "stopped": ended.stopped, "wall_s": round(ended.wall_s, 3)}


def versions_in(text: str) -> dict[str, str]:
    """The versions that NCCL and nccl-tests print."""
    found = {"NCCL": _NCCL.search(text), "nccl-tests": _NCCL_TESTS.search(text)}
    return {name: match[1] for name, match in found.items() if match is not None}
