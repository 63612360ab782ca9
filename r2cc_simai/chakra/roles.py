"""Whether the groups and peers that ranks name exist, and have them as members."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from r2cc_simai.chakra.finding import ERROR, Finding
from r2cc_simai.chakra.groups import ALL_RANKS, Groups
from r2cc_simai.engine._core import Trace

TraceOf = Callable[[], Trace]


@dataclass(frozen=True)
class RankRoles:
    """What one rank names."""

    rank: int
    file: str
    groups: Sequence[int]
    """Number of each group role."""
    peers: Sequence[int]
    """Rank of each peer role."""


def check_groups(groups: Groups, file: str, n_ranks: int) -> list[Finding]:
    """Groups with ranks that the job does not have."""
    findings = []
    for number, members in groups.items():
        if members[-1] >= n_ranks:
            reason = f"group {number}: it has rank {members[-1]}, which has no file; there are {n_ranks} ranks"
            findings.append(Finding(ERROR, "group-rank", file, reason))
    return findings


def check_roles(roles: RankRoles, groups: Groups, n_ranks: int, groups_file: str, trace_of: TraceOf) -> list[Finding]:
    """What is wrong with the groups and peers of a rank; `trace_of` is asked for the node only if something is."""
    findings = []
    for role, number in enumerate(roles.groups):
        if number == ALL_RANKS:
            continue
        members = groups.get(number)
        if members is None:
            reason = f"uses group {number}, which {groups_file} does not have"
        elif not _has(members, roles.rank):
            reason = f"uses group {number}, of which rank {roles.rank} is no member"
        else:
            continue
        kind = "unknown-group" if members is None else "not-a-member"
        findings.append(_at(roles, kind, reason, trace_of(), "group", role))
    for role, peer in enumerate(roles.peers):
        if peer >= n_ranks:
            reason = f"sends to or receives from rank {peer}; there are {n_ranks} ranks"
        elif peer == roles.rank:
            reason = f"sends to or receives from rank {peer}, which is its own"
        else:
            continue
        findings.append(_at(roles, "peer", reason, trace_of(), "peer", role))
    return findings


def missing_ranks(present: Iterable[int], n_ranks: int, file_of: Callable[[int], str]) -> list[Finding]:
    """Ranks of a job without a file."""
    missing = sorted(set(range(n_ranks)) - set(present))
    return [
        Finding(ERROR, "missing-rank", file_of(rank), f"there is no such file; the job has {n_ranks} ranks")
        for rank in missing
    ]


def _has(members: tuple[int, ...], rank: int) -> bool:
    at = bisect_left(members, rank)  # they are ascending
    return at < len(members) and members[at] == rank


def _at(roles: RankRoles, kind: str, reason: str, trace: Trace, column: str, role: int) -> Finding:
    position = int(np.flatnonzero((trace.group if column == "group" else trace.peer) == role)[0])
    return Finding(ERROR, kind, roles.file, reason, int(trace.id[position]), position)
