"""What happened in an iteration, as a Chrome trace that Perfetto opens: compute, transfers, failures, migration.

Format: Trace Event Format, JSON object form with complete events ("X"), instants ("i") and metadata ("M"); times in
microseconds.
"""

import json
from pathlib import Path
from typing import Any

from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.collectives.channels import server_order
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.results.files import replace_file
from r2cc_simai.training.iteration import Iteration
from r2cc_simai.training.job import TrainingJob
from r2cc_simai.training.ranks import NONE

_COLLECTIVE, _SEND = int(NodeType.COMM_COLL), int(NodeType.COMM_SEND)
_MESSAGES = (_SEND, int(NodeType.COMM_RECV))
COMPUTE = 0  # thread of a rank; its communicators and peers follow
_LOG_NAMES = {
    "down": "{nic} goes down",
    "rate": "{nic} at {value:.0%} of its rate",
    "up": "{nic} works again",
    "detected": "both ends know that {nic} is down",
    "migrated": "{value:.0f} connections have left {nic}",
}
Json = dict[str, Any]
MOST_RANKS = 8
"""In a timeline whose ranks nobody chose."""


def ranks_beside(job: TrainingJob, failures: Timeline) -> tuple[int, ...]:
    """Ranks that tell most of failures: rank 0, and those next to what fails."""
    ranks = {int(rank) for rank in job.ranks.rank}
    beside = [0, *(server_order(job.cluster, event.nic)[0] for event in failures.events)]
    return tuple(rank for rank in dict.fromkeys(beside) if rank in ranks)[:MOST_RANKS]


def timeline_events(run: Iteration, nic_names: list[str]) -> list[Json]:
    """Events of the recorded classes, one process each, and of the NICs."""
    events: list[Json] = [_process(0, "network")]
    for entry in run.log:
        name = _LOG_NAMES.get(entry.what, entry.what).format(nic=nic_names[entry.nic], value=entry.value)
        events.append(
            {"ph": "i", "s": "g", "name": name, "cat": "failure", "pid": 0, "tid": 0, "ts": entry.time_s * 1e6}
        )
    for number in dict.fromkeys(int(row[0]) for row in run.spans):
        events += _rank_events(run, number)
    return events


def write_timeline(run: Iteration, nic_names: list[str], path: Path) -> None:
    """Writes the events of an iteration as one JSON file."""
    content = {"displayTimeUnit": "ms", "traceEvents": timeline_events(run, nic_names)}
    replace_file(path, json.dumps(content, separators=(",", ":")).encode())


def _rank_events(run: Iteration, number: int) -> list[Json]:
    row = int(run.classes.first_rank[number])
    rank, count = int(run.ranks.rank[row]), int(run.classes.rank_count[number])
    title = f"rank {rank}" + (f" (and {count - 1} equal ones)" if count > 1 else "")
    describe = _Nodes(run, row).describe
    threads: dict[str, int] = {"compute": COMPUTE}
    events: list[Json] = []
    for _, node, start_s, end_s in run.spans[run.spans[:, 0] == number].tolist():
        thread, event = describe(int(node))
        tid = threads.setdefault(thread, len(threads))
        times = {"ts": start_s * 1e6, "dur": (end_s - start_s) * 1e6}
        events.append({"ph": "X", "pid": rank + 1, "tid": tid, **times, **event})
    head = [_process(rank + 1, title)]
    for thread, tid in threads.items():
        head.append({"ph": "M", "name": "thread_name", "pid": rank + 1, "tid": tid, "args": {"name": thread}})
    return head + events


class _Nodes:
    """The nodes of one rank in words: on which line of the timeline, and under which name."""

    def __init__(self, run: Iteration, row: int) -> None:
        ranks = run.ranks
        trace = ranks.traces[ranks.trace_of[row]]
        self._names, self._name, self._id = trace.names, trace.name.tolist(), trace.id.tolist()
        self._kind, self._comm = trace.type.tolist(), trace.comm_type.tolist()
        self._group, self._peer, self._bytes = trace.group.tolist(), trace.peer.tolist(), trace.bytes.tolist()
        self._groups = [
            ("", 0) if g < 0 else (f"{ranks.kinds[g] or 'group'} {ranks.names[g]}", len(ranks.members[g]))
            for g in ranks.groups[row].tolist()
        ]
        self._peers = [NONE if p < 0 else int(ranks.rank[p]) for p in ranks.peers[row].tolist()]

    def describe(self, node: int) -> tuple[str, Json]:
        """The line, and name, category and arguments of the event."""
        label = self._names[self._name[node]] if self._name[node] >= 0 else f"node {self._id[node]}"
        kind, size = self._kind[node], self._bytes[node]
        if kind == _COLLECTIVE:
            line, members = self._groups[self._group[node]]
            name = f"{CommType(self._comm[node]).name} {label}"
            return line, {"name": name, "cat": "collective", "args": {"bytes": size, "ranks": members}}
        if kind in _MESSAGES:
            way = "to" if kind == _SEND else "from"
            line = f"{way} rank {self._peers[self._peer[node]]}"
            return line, {"name": label, "cat": "message", "args": {"bytes": size}}
        return "compute", {"name": label, "cat": "compute"}


def _instant(name: str, time_s: float) -> Json:
    return {"ph": "i", "s": "g", "name": name, "cat": "failure", "pid": 0, "tid": 0, "ts": time_s * 1e6}


def _process(number: int, name: str) -> Json:
    return {"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}}
