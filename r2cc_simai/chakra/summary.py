"""What a trace adds up to: nodes by type, bytes by kind of communication, compute, and the critical path."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from r2cc_simai.chakra.folder import TraceSet
from r2cc_simai.chakra.groups import ALL_RANKS
from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.engine._core import Trace, critical_path
from r2cc_simai.errors import InputError

TOP_NAMES = 5
_NUMBER = re.compile(r"[0-9]+")
GroupOf = Callable[[int], tuple[str, int | None]]
"""Kind and number of members of a group role."""


@dataclass(frozen=True)
class Traffic:
    """Communication of one kind of one rank."""

    comm: str
    """ALL_REDUCE, ..., SEND or RECV."""
    group: str
    """Kind of the groups ("tp", ...) as the manifest says, "all" for all ranks, "" where it is unknown."""
    size: int | None
    """Members of each group; None for messages."""
    count: int
    bytes: int


@dataclass(frozen=True)
class NameTime:
    """Compute of the nodes of one name."""

    name: str
    """Names that differ only in numbers (of layers, of micro-batches) count as one, with * for the numbers."""
    count: int
    seconds: float


@dataclass(frozen=True)
class Path:
    """The longest chain of compute through the dependencies; communication counts as nothing."""

    seconds: float
    node_ids: tuple[int, ...]
    """All nodes on it, communication too, from first to last."""
    names: tuple[NameTime, ...]
    """The names that take the most time on it."""


@dataclass(frozen=True)
class RankSummary:
    """One rank of a class."""

    number: int
    """Of the class."""
    first_rank: int
    ranks: int
    """How many ranks the class has."""
    nodes: dict[str, int]
    """By type, those that occur."""
    compute_s: float
    num_ops: int
    traffic: tuple[Traffic, ...]
    critical: Path


@dataclass(frozen=True)
class Summary:
    """A trace, or one of its ranks."""

    trace: str
    ranks: int
    nodes: int
    """Of all ranks."""
    classes: tuple[RankSummary, ...]


def summarise_trace(traces: TraceSet, rank: int | None = None) -> Summary:
    """What each class of a trace adds up to, or one rank alone. Groups are those of the rank, or of a class's first.

    Raises:
        InputError: there is no such rank.
    """
    if rank is not None and rank >= traces.n_ranks:
        raise InputError(f"--rank {rank}: {traces.prefix} has ranks 0 to {traces.n_ranks - 1}")
    if rank is not None:
        found = [_summarise(traces, int(traces.rank_class[rank]), rank, 1)]
    else:
        _, first, counts = np.unique(traces.rank_class, return_index=True, return_counts=True)
        pairs = zip(first.tolist(), counts.tolist(), strict=True)
        found = [_summarise(traces, number, *pair) for number, pair in enumerate(pairs)]
    nodes = sum(sum(one.nodes.values()) * one.ranks for one in found)
    return Summary(str(traces.prefix), sum(one.ranks for one in found), nodes, tuple(found))


def _summarise(traces: TraceSet, number: int, rank: int, ranks: int) -> RankSummary:
    trace = traces.classes[number]
    kinds, counts = np.unique(trace.type, return_counts=True)
    compute = trace.type == NodeType.COMP

    def group_of(role: int) -> tuple[str, int | None]:
        index = int(traces.rank_groups[rank, role])
        kind = "all" if traces.group_ids[index] == ALL_RANKS else traces.group_kind[index]
        return kind, len(traces.groups[index])

    return RankSummary(
        number=number,
        first_rank=rank,
        ranks=ranks,
        nodes={type_name(kind): count for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)},
        compute_s=float(trace.duration_s[compute].sum()),
        num_ops=sum(trace.num_ops[compute].tolist()),
        traffic=(*_collectives(trace, group_of), *_messages(trace)),
        critical=_critical(trace),
    )


def type_name(kind: int) -> str:
    """Chakra's name of a type of node."""
    return NodeType(kind).name if kind else "INVALID"


def _collectives(trace: Trace, group_of: GroupOf) -> list[Traffic]:
    found: dict[tuple[str, str, int | None], tuple[int, int]] = {}
    rows = np.flatnonzero(trace.type == NodeType.COMM_COLL)
    keys = np.stack((trace.comm_type[rows], trace.group[rows]))
    sizes = trace.bytes[rows]
    pairs, which = np.unique(keys, axis=1, return_inverse=True)
    for i, (comm, role) in enumerate(pairs.T.tolist()):
        mine = sizes[which.reshape(-1) == i].tolist()
        key = CommType(comm).name, *group_of(role)
        count, total = found.get(key, (0, 0))
        found[key] = count + len(mine), total + sum(mine)
    return [Traffic(*key, *sums) for key, sums in sorted(found.items(), key=str)]


def _messages(trace: Trace) -> list[Traffic]:
    found = []
    for kind, name in ((NodeType.COMM_SEND, "SEND"), (NodeType.COMM_RECV, "RECV")):
        sizes = trace.bytes[trace.type == kind].tolist()
        if sizes:
            found.append(Traffic(name, "", None, len(sizes), sum(sizes)))
    return found


def _critical(trace: Trace) -> Path:
    seconds, positions = critical_path(trace)
    compute = positions[trace.type[positions] == NodeType.COMP]
    counts = np.bincount(trace.name[compute])
    times = np.bincount(trace.name[compute], weights=trace.duration_s[compute])
    texts = trace.names
    found: dict[str, NameTime] = {}
    for k in np.flatnonzero(counts).tolist():
        name = _NUMBER.sub("*", texts[k])
        before = found.get(name, NameTime(name, 0, 0.0))
        found[name] = NameTime(name, before.count + int(counts[k]), before.seconds + float(times[k]))
    top = sorted(found.values(), key=lambda one: (-one.seconds, one.name))[:TOP_NAMES]
    return Path(seconds, tuple(trace.id[positions].tolist()), tuple(top))
