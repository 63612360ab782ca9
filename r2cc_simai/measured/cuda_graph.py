"""Reads the log of R2CC's CUDA-graph program: one graph replayed across a failure, then captured anew.

The log numbers its hosts from 1 (node-1 is server 0) and calls them by number only.
"""

import re

from r2cc_simai.errors import InputError
from r2cc_simai.measured.failure_evidence import read_cuts, read_n_ranks, read_warnings, with_strategy
from r2cc_simai.measured.log_text import LogText, shorten
from r2cc_simai.measured.model import Cut, FailedNic, GraphRow, GraphTable, Measurement
from r2cc_simai.measured.settings import R2CC_ALLREDUCE

SIGN = re.compile(r"^=+ CUDA Graphs:|^Replayed graph \(")
"""A line by which such a log is known."""

_TITLE = re.compile(r"^=+ CUDA Graphs: .*?(\S+) of (\S+) cut during the run")
_SIZE = re.compile(r"^Replayed graph \((\d+) (B|KiB|MiB|GiB) (\w+)\)")
_ROW = re.compile(r"^(\S.*?)\s{2,}(\d+(?:\.\d+)?) s\s+(?:--|(\d+(?:\.\d+)?) (s|ms|us))\s*$")
_RUN = re.compile(r"^run (\d+)/(\d+), re-captured as (.+):$")
_TESTBED = re.compile(r"^\[testbed\] \S+ (\S+) ")

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_COLLECTIVES = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter"}
_STRATEGIES = (
    ("healthy", "nccl"),
    ("HotRepair", "hot-repair"),
    ("R2CC-Balance", "balance"),
    ("R2CC-AllReduce", R2CC_ALLREDUCE),
)


def read_cuda_graph(log: LogText) -> list[Measurement]:
    """The table of the log with the cut of each of its runs. Raises InputError when parts are missing."""
    title, names = log.require(_TITLE, "the title 'CUDA Graphs: .. NIC of HOST cut during the run'")
    heading, size = log.require(_SIZE, "the table 'Replayed graph (N GiB AllReduce) ..'")
    testbed = log.find(_TESTBED)
    nics = {names[1]} | ({testbed[1][1]} if testbed else set())
    return [
        Measurement(
            source=log.where(heading),
            collective=_COLLECTIVES.get(size[3], size[3].lower()),
            mode="hot-repair",
            host_names=(names[2],),
            nic_names=tuple(sorted(nics)),
            n_ranks=read_n_ranks(log),
            failed=FailedNic(_server_index(log, title, names[2]), names[1]),
            graph=GraphTable(int(size[1]) * _UNITS[size[2]], _rows(log, heading), _cuts(log)),
            warnings=read_warnings(log),
        )
    ]


def _server_index(log: LogText, index: int, host: str) -> int:
    number = re.search(r"(\d+)$", host)
    if number is None or int(number[1]) < 1:
        raise log.error(index, "a host whose name ends with its number, from 1")
    return int(number[1]) - 1


def _rows(log: LogText, heading: int) -> tuple[GraphRow, ...]:
    rows = []
    for index in range(heading + 1, len(log.lines)):
        match = _ROW.match(log.lines[index])
        if match is None:
            break
        recapture_s = None if match[3] is None else float(match[3]) * _SECONDS[match[4]]
        rows.append(GraphRow(match[1], _strategy(log, index, match[1]), float(match[2]), recapture_s))
    if not rows:
        raise log.error(min(heading + 1, len(log.lines) - 1), "a row 'NAME  N s  --' or 'NAME  N s  N ms'")
    return tuple(rows)


def _strategy(log: LogText, index: int, name: str) -> str:
    """The strategy spec that a row or a run is named after."""
    for word, strategy in _STRATEGIES:
        if name.endswith(word):
            return strategy
    known = ", ".join(word for word, _ in _STRATEGIES)
    raise InputError(f"{log.where(index)}: expected a graph named {known}, found {shorten(name)}")


def _cuts(log: LogText) -> tuple[Cut, ...]:
    """One cut a run; each run must be there and follow its own title."""
    runs = log.find_all(_RUN)
    cuts = read_cuts(log)
    n_runs = int(runs[0][1][2]) if runs else 1
    if len(runs) != n_runs or len(cuts) != n_runs:
        raise log.truncated(f"{n_runs} 'run N/{n_runs}, re-captured as ..' with their failure evidence")
    strategies = [_strategy(log, index, match[3]) for index, match in runs]
    return tuple(with_strategy(cut, strategy) for (_, cut), strategy in zip(cuts, strategies, strict=True))
