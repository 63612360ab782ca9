"""What happened in an iteration, as a Chrome trace that Perfetto opens: compute, transfers, failures, migration.

Format: Trace Event Format, JSON object form with complete events ("X"), instants ("i") and metadata ("M"); times in
microseconds.
"""

import json
from pathlib import Path
from typing import Any

from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.results.files import replace_file
from r2cc_simai.training.iteration import Iteration

COMPUTE = 0  # thread of a rank; its communicators and peers follow
_LOG_NAMES = {
    "down": "{nic} goes down",
    "rate": "{nic} at {value:.0%} of its rate",
    "up": "{nic} works again",
    "detected": "both ends know that {nic} is down",
    "migrated": "{value:.0f} connections have left {nic}",
}
Json = dict[str, Any]


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
    row = run.classes.first_rank[number]
    trace = run.ranks.traces[run.ranks.trace_of[row]]
    process = int(run.ranks.rank[row]) + 1
    count = int(run.classes.rank_count[number])
    title = f"rank {process - 1}" + (f" (and {count - 1} equal ones)" if count > 1 else "")
    threads: dict[str, int] = {"compute": COMPUTE}
    kind, comm, group, peer = trace.type, trace.comm_type, trace.group, trace.peer
    size, name = trace.bytes, trace.name
    events: list[Json] = []
    for _, node, start_s, end_s in run.spans[run.spans[:, 0] == number]:
        i = int(node)
        event: Json = {"ph": "X", "pid": process, "ts": start_s * 1e6, "dur": (end_s - start_s) * 1e6}
        label = trace.names[name[i]] if name[i] >= 0 else f"node {int(trace.id[i])}"
        if kind[i] == NodeType.COMM_COLL:
            g = int(run.ranks.groups[row, group[i]])
            thread = f"{run.ranks.kinds[g] or 'group'} {run.ranks.names[g]}"
            event |= {"name": f"{CommType(int(comm[i])).name} {label}", "cat": "collective"}
            event["args"] = {"bytes": int(size[i]), "ranks": len(run.ranks.members[g])}
        elif kind[i] in (NodeType.COMM_SEND, NodeType.COMM_RECV):
            other = int(run.ranks.rank[run.ranks.peers[row, peer[i]]])
            way = "to" if kind[i] == NodeType.COMM_SEND else "from"
            thread = f"{way} rank {other}"
            event |= {"name": label, "cat": "message", "args": {"bytes": int(size[i])}}
        else:
            thread = "compute"
            event |= {"name": label, "cat": "compute"}
        event["tid"] = threads.setdefault(thread, len(threads))
        events.append(event)
    head = [_process(process, title)]
    head += [
        {"ph": "M", "name": "thread_name", "pid": process, "tid": tid, "args": {"name": thread}}
        for thread, tid in threads.items()
    ]
    return head + events


def _instant(name: str, time_s: float) -> Json:
    return {"ph": "i", "s": "g", "name": name, "cat": "failure", "pid": 0, "tid": 0, "ts": time_s * 1e6}


def _process(number: int, name: str) -> Json:
    return {"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}}
