"""Reads the log of R2CC's hot-repair program: equal AllReduces, a NIC cut during one of them.

The counters in it are those of rank 0's host, the first one, on which the NIC is cut.
"""

import re

from r2cc_simai.measured.failure_evidence import read_cuts, read_n_ranks, read_warnings, with_strategy
from r2cc_simai.measured.log_text import MIB, LogText
from r2cc_simai.measured.model import Cut, FailedNic, Iteration, IterationSeries, Measurement
from r2cc_simai.measured.settings import R2CC_ALLREDUCE

SIGN = re.compile(r"^Config: iters=\d+, bytes=|^\[Rank \d+\] Iter \d+/\d+ START|IB RX per-iteration \(MB")
"""A line by which such a log is known."""

_CONFIG = re.compile(r"^Config: iters=(\d+), bytes=(\d+)")
_RANK = re.compile(r"^\[Rank (\d+)\] Running on ([^.\s]+)")
_OPERATION = re.compile(r"Iter \d+/\d+ START: (\w+)")
_HEADING = re.compile(r"^Iter\s+Time\(ms\)\s+(\S+_RX(?:\s+\S+_RX)*)\s*$")

_COLLECTIVES = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter"}
_TOLERANCE = 0.1
"""How far the growth of the surviving NICs may differ and still count as equal."""


def read_hot_repair(log: LogText) -> list[Measurement]:
    """The one run of the log. Raises InputError when the log is cut short or its parts disagree."""
    _, config = log.require(_CONFIG, "the line 'Config: iters=N, bytes=N ..'")
    _, operation = log.require(_OPERATION, "the line 'Iter 1/N START: allreduce ..'")
    heading, nics, iterations = _iterations(log, int(config[1]))
    hosts = _hosts(log)
    cut = _cut(log, nics, iterations)
    return [
        Measurement(
            source=log.where(heading),
            collective=_COLLECTIVES.get(operation[1], operation[1]),
            mode="hot-repair",
            host_names=hosts,
            nic_names=nics,
            n_nodes=len(hosts) or None,
            n_ranks=read_n_ranks(log),
            failed=FailedNic(0, cut.nic),
            iterations=IterationSeries(int(config[2]), iterations, cut),
            warnings=read_warnings(log),
        )
    ]


def _hosts(log: LogText) -> tuple[str, ...]:
    """Host names in the order of their ranks, which the log prints in any order."""
    ranks = sorted((int(match[1]), match[2]) for _, match in log.find_all(_RANK))
    return tuple(dict.fromkeys(host for _, host in ranks))


def _iterations(log: LogText, n: int) -> tuple[int, tuple[str, ...], tuple[Iteration, ...]]:
    """(line of the heading, NICs, iterations) from the table of times and received MB (2^20 bytes)."""
    heading, match = log.require(_HEADING, "the table 'Iter Time(ms) NIC_RX ..'")
    nics = tuple(name.removesuffix("_RX") for name in match[1].split())
    first = heading + 1
    if first + n > len(log.lines):
        raise log.truncated(f"{n} iterations in the table")
    iterations = tuple(_iteration(log, first + i, i + 1, nics) for i in range(n))
    return heading, nics, iterations


def _iteration(log: LogText, index: int, number: int, nics: tuple[str, ...]) -> Iteration:
    words = log.lines[index].split()
    if len(words) != 2 + len(nics) or not all(word.isdecimal() for word in words) or int(words[0]) != number:
        raise log.error(index, f"iteration {number} with its time in ms and the MB of {len(nics)} NICs")
    received = {nic: int(mib) * MIB for nic, mib in zip(nics, words[2:], strict=True)}
    return Iteration(number, int(words[1]) / 1000, received)


def _cut(log: LogText, nics: tuple[str, ...], iterations: tuple[Iteration, ...]) -> Cut:
    index, cut = read_cuts(log)[-1]
    if cut.nic not in nics:
        raise log.error(index, f"a NIC of the table ({', '.join(nics)})")
    if not 2 <= cut.iteration < len(iterations):
        raise log.error(index, f"a cut after the first and before the last of {len(iterations)} iterations")
    before, after = iterations[cut.iteration - 2], iterations[-1]
    if not before.rx_bytes[cut.nic]:
        raise log.error(index, "traffic on the NIC before its cut")
    strategy = later_strategy(before, after, cut.nic)
    if strategy is None:
        raise log.error(index, "later traffic as hot repair, Balance or R2CC-AllReduce leave it")
    return with_strategy(cut, strategy, iterations[cut.iteration - 1].time_s)


def later_strategy(before: Iteration, after: Iteration, dead: str) -> str | None:
    """Which strategy a server's counters show after it lost the NIC `dead`; None if they fit none.

    R2CC-AllReduce brings the degraded server X(1 - p/(2(p-1))) of the ring's data less, where X is the dead
    NIC's share: between X/4 (p = 3) and X/2 (large p). Balance spreads the share evenly, so that every
    survivor grows by the same factor. Hot repair moves it to one backup NIC, and the others stay as they
    were; a single survivor counts as that, since the two are then the same.
    """
    share = before.rx_bytes[dead] / before.total_rx_bytes
    kept = after.total_rx_bytes / before.total_rx_bytes
    alive = after.rx_bytes[dead] > _TOLERANCE * before.rx_bytes[dead]
    if alive or kept < 1 - 0.6 * share:
        return None
    if kept < 1 - 0.2 * share:
        return R2CC_ALLREDUCE
    growth = sorted(after.rx_bytes[nic] / max(rx, 1) for nic, rx in before.rx_bytes.items() if nic != dead)
    if len(growth) > 1 and growth[-1] - growth[0] < _TOLERANCE * growth[0]:
        return "balance"
    if all(abs(factor - 1) < _TOLERANCE for factor in growth[:-1]):
        return "hot-repair"
    return None
