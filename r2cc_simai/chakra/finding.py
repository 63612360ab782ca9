"""What is wrong, or worth knowing, about a trace: file, node and reason."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from r2cc_simai.errors import InputError

Severity = Literal["error", "warning", "note"]
Progress = Callable[[int, int], None]
"""Told how many files of how many are done."""

ERROR: Severity = "error"
WARNING: Severity = "warning"
NOTE: Severity = "note"
SEVERITIES: tuple[Severity, ...] = (ERROR, WARNING, NOTE)
"""The worst first."""


@dataclass(frozen=True)
class Finding:
    """One thing found in a trace, or many of one kind: `more` says how many others are not listed."""

    severity: Severity
    kind: str
    """Short name of the check, e.g. "cycle"."""
    file: str
    """Name of the file; of a finding about two files, the first."""
    reason: str
    node: int | None = None
    """Id of the node; None where it is unknown, or no node is to blame."""
    position: int | None = None
    """Its position among the nodes of the file, from 0."""
    offset: int | None = None
    """Byte of the file at which its message begins, or at which reading stopped."""
    more: int = 0

    @property
    def place(self) -> str:
        """File and node."""
        if self.node is not None:
            return f"{self.file}: node {self.node}"
        if self.position is not None:
            return f"{self.file}: node at position {self.position}"
        return self.file

    @property
    def line(self) -> str:
        """The finding as one line."""
        return f"{self.place}: {self.reason}"


def raise_first(findings: Iterable[Finding]) -> None:
    """Nothing, if none of the findings is an error.

    Raises:
        InputError: one is; the line of the first.
    """
    for finding in findings:
        if finding.severity == ERROR:
            raise InputError(finding.line)


def one_per_kind(findings: Iterable[Finding]) -> list[tuple[Finding, int, int]]:
    """The first finding of each kind, how many there are of it, and in how many files."""
    first: dict[str, Finding] = {}
    count: Counter[str] = Counter()
    files: dict[str, set[str]] = {}
    for one in findings:
        first.setdefault(one.kind, one)
        count[one.kind] += 1 + one.more
        files.setdefault(one.kind, set()).add(one.file)
    return [(one, count[kind], len(files[kind])) for kind, one in first.items()]
