"""The hosts file: which machines take part, and how many processes each one gets.

A host a line, `NAME slots=N` (as Open MPI writes it) or `NAME:N` (as MPICH does); `#` starts a comment.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from r2cc_simai.errors import InputError

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SLOTS = re.compile(r"slots\s*=\s*(\d+)")
_IGNORED = re.compile(r"max[-_]slots\s*=\s*\d+")


@dataclass(frozen=True)
class Host:
    """A machine and the number of processes that run on it."""

    name: str
    slots: int

    def __str__(self) -> str:
        return f"{self.name}:{self.slots}"


def read_hosts(path: Path) -> tuple[Host, ...]:
    """The hosts of a file in its order, which is that of the ranks.

    Raises:
        InputError: no such file, a line that is no host, a host without slots or named twice, or no host at all.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'no text file'}") from None
    hosts: dict[str, Host] = {}
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        host = _host(text, f"{path}:{number}")
        if host.name in hosts:
            raise InputError(f"{path}:{number}: {host.name}: named twice; write it once, with all its slots")
        hosts[host.name] = host
    if not hosts:
        raise InputError(f"{path}: no host in it; write a line 'NAME slots=N' for each")
    return tuple(hosts.values())


def total_slots(hosts: tuple[Host, ...]) -> int:
    """Processes on all hosts together."""
    return sum(host.slots for host in hosts)


def _host(text: str, where: str) -> Host:
    rest = _IGNORED.sub("", text)
    name, _, options = rest.partition(" ")
    name, colon, count = name.partition(":")
    slots = re.fullmatch(r"\d+", count) if colon and not options.strip() else _SLOTS.fullmatch(options.strip())
    if not _NAME.fullmatch(name) or (slots is None and (colon or options.strip())):
        raise InputError(f"{where}: expected 'NAME slots=N' or 'NAME:N', found {text!r}")
    if slots is None:
        raise InputError(f"{where}: {name}: slots missing; write '{name} slots=N', N processes on this host")
    found = int(slots[0] if colon else slots[1])
    if not 1 <= found <= 1024:
        raise InputError(f"{where}: {name}: {found} slots; write a number from 1 to 1024")
    return Host(name, found)
