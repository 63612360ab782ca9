"""Whether ranks agree on what they do together: collectives member by member, messages pair by pair.

Fingerprints tell whether anything differs, without the traces; for what differs the two files are read again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.chakra.finding import ERROR, Finding
from r2cc_simai.chakra.groups import ALL_RANKS, Groups
from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.engine._core import Trace

Int = NDArray[np.int64]
MOST_DETAILS = 20
"""Differences of one kind that are looked into; the others are counted."""


@dataclass(frozen=True)
class Participation:
    """What a rank takes part in, as numbers: equal ones mean the same operations."""

    collectives: tuple[int, ...]
    """Per group role: of the sequence of types and sizes."""
    sends: tuple[int, ...]
    """Per peer role: of the tags and sizes, whatever their order; 0 if there are none."""
    receives: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Ranks:
    """All ranks of a job."""

    files: Sequence[str]
    groups: Sequence[tuple[int, ...]]
    """Per rank: number of the group of each role."""
    peers: Sequence[tuple[int, ...]]
    participation: Sequence[Participation]
    read: Callable[[int], Trace]
    """Reads the trace of a rank."""


@dataclass(frozen=True)
class _Node:
    rank: int
    id: int
    position: int
    size: int
    key: int
    """Type of a collective, tag of a message."""


def check_collectives(ranks: Ranks, groups: Groups) -> list[Finding]:
    """Groups whose members do not issue the same sequence of collectives, each of the same type and size."""
    issued: dict[int, dict[int, int]] = {}
    for rank, numbers in enumerate(ranks.groups):
        for role, number in enumerate(numbers):
            issued.setdefault(number, {})[rank] = ranks.participation[rank].collectives[role]
    nodes = _Nodes(ranks)
    findings = _Details()
    for number in sorted(issued):
        members = range(len(ranks.files)) if number == ALL_RANKS else groups[number]
        first = next(iter(issued[number]))
        for member in members:
            if issued[number].get(member) != issued[number][first]:
                findings.add(partial(_difference, ranks, nodes, number, first, member))
    return findings.all()


def check_messages(ranks: Ranks) -> list[Finding]:
    """Sends without a receive and the other way round: both match first-in-first-out by tag, ranks and size."""
    sent: dict[tuple[int, int], int] = {}
    received: dict[tuple[int, int], int] = {}
    for rank, peers in enumerate(ranks.peers):
        one = ranks.participation[rank]
        for peer, sends, receives in zip(peers, one.sends, one.receives, strict=True):
            if sends:
                sent[rank, peer] = sends
            if receives:
                received[peer, rank] = receives
    nodes = _Nodes(ranks)
    findings = _Details()
    for pair in sorted(sent.keys() | received.keys()):
        if sent.get(pair) != received.get(pair):
            findings.add(partial(_unmatched, ranks, nodes, *pair))
    return findings.all()


class _Details:
    """Findings; the first few differences are looked into, the others counted."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._looked_into = 0
        self._more = 0

    def add(self, details: Callable[[], list[Finding]]) -> None:
        if self._looked_into == MOST_DETAILS:
            self._more += 1
            return
        self._looked_into += 1
        self._found.extend(details())

    def all(self) -> list[Finding]:
        if self._more:
            last = self._found[-1]
            self._found[-1] = replace(last, more=last.more + self._more)
        return self._found


class _Nodes:
    """Communication nodes of single ranks; the last few ranks' stay in memory."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._read = lru_cache(maxsize=4)(ranks.read)

    def collectives(self, rank: int, number: int) -> list[_Node]:
        """Those of a rank on a group, in the order of the file."""
        trace = self._read(rank)
        if number not in self._ranks.groups[rank]:
            return []
        role = self._ranks.groups[rank].index(number)
        return self._pick(trace, rank, (trace.type == NodeType.COMM_COLL) & (trace.group == role), trace.comm_type)

    def messages(self, rank: int, kind: NodeType, peer: int) -> list[_Node]:
        """The sends or receives of a rank with a peer, in the order of the file."""
        trace = self._read(rank)
        if peer not in self._ranks.peers[rank]:
            return []
        role = self._ranks.peers[rank].index(peer)
        return self._pick(trace, rank, (trace.type == kind) & (trace.peer == role), trace.tag)

    @staticmethod
    def _pick(trace: Trace, rank: int, which: NDArray[np.bool_], keys: Int) -> list[_Node]:
        at = np.flatnonzero(which)
        columns = trace.id[at].tolist(), at.tolist(), trace.bytes[at].tolist(), keys[at].tolist()
        return [_Node(rank, *values) for values in zip(*columns, strict=True)]


def _difference(ranks: Ranks, nodes: _Nodes, number: int, first: int, other: int) -> list[Finding]:
    """The first collective of a group on which two members do not agree."""
    a, b = nodes.collectives(first, number), nodes.collectives(other, number)
    same = 0
    while same < min(len(a), len(b)) and (a[same].key, a[same].size) == (b[same].key, b[same].size):
        same += 1
    if same == len(a):  # the other one goes on
        a, b, first, other = b, a, other, first
    group = "all ranks" if number == ALL_RANKS else f"group {number}"
    file = ranks.files[other]
    there = f"{file}: node {b[same].id} has {_collective(b[same])}" if same < len(b) else f"{file} has {len(b)} only"
    reason = f"collective {same + 1} of {group} is {_collective(a[same])}; {there}"
    return [Finding(ERROR, "collective-mismatch", ranks.files[first], reason, a[same].id, a[same].position)]


def _collective(node: _Node) -> str:
    return f"{CommType(node.key).name} of {node.size} bytes"


def _unmatched(ranks: Ranks, nodes: _Nodes, src: int, dst: int) -> list[Finding]:
    sends, receives = nodes.messages(src, NodeType.COMM_SEND, dst), nodes.messages(dst, NodeType.COMM_RECV, src)
    left, waiting = _without_partner(sends, receives), _without_partner(receives, sends)
    findings = []
    for send in left:
        # What was probably meant: the same tag with another size, or the same size under another tag.
        near = next((one for one in waiting if one.key == send.key), None)
        near = near or next((one for one in waiting if one.size == send.size), None)
        there = f"and no node of {ranks.files[dst]} receives that"
        if near is not None:
            waiting.remove(near)
            there = f"{ranks.files[dst]}: node {near.id} receives {near.size} bytes under tag {near.key}"
        reason = f"sends {send.size} bytes to rank {dst} under tag {send.key}, {there}"
        kind = "unmatched-send" if near is None else "unequal-message"
        findings.append(Finding(ERROR, kind, ranks.files[src], reason, send.id, send.position))
    for one in waiting:
        reason = f"receives {one.size} bytes from rank {src} under tag {one.key}, and no node of {ranks.files[src]} "
        findings.append(
            Finding(ERROR, "unmatched-receive", ranks.files[dst], reason + "sends that", one.id, one.position)
        )
    return _shortened(findings)


def _without_partner(nodes: list[_Node], others: list[_Node]) -> list[_Node]:
    """Nodes that are left over when the k-th of each tag and size takes the k-th other one."""
    free: dict[tuple[int, int], int] = {}
    for other in others:
        free[other.key, other.size] = free.get((other.key, other.size), 0) + 1
    left = []
    for node in nodes:
        key = node.key, node.size
        if free.get(key, 0) > 0:
            free[key] -= 1
        else:
            left.append(node)
    return left


def _shortened(findings: list[Finding]) -> list[Finding]:
    if len(findings) <= MOST_DETAILS:
        return findings
    last = findings[MOST_DETAILS - 1]
    more = len(findings) - MOST_DETAILS
    return [*findings[: MOST_DETAILS - 1], replace(last, more=more)]
