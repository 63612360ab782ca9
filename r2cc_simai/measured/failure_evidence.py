"""The lines in which R2CC's hot-repair programs report a cut and how they checked the results."""

import re
from dataclasses import replace

from r2cc_simai.measured.log_text import MIB, LogText
from r2cc_simai.measured.model import Cut

_EVIDENCE = re.compile(r"Failure evidence:")
_CUT = re.compile(
    r"(?P<nic>\S+) cut during iteration (?P<iteration>\d+) "
    r"\((?P<rx>\d+) of (?P<full>\d+) MB received before the cut; "
    r"command ran (?P<c0>\d+\.\d+)-(?P<c1>\d+\.\d+) s, iteration (?P<i0>\d+\.\d+)-(?P<i1>\d+\.\d+) s\)"
)
_VERIFIED = re.compile(r"Verification: .* on all (\d+) ranks.*: (\d+) wrong")
_TEST = re.compile(r"\bTEST (PASS|FAIL)\b")
_EXIT = re.compile(r"^\[result\] exit=(\d+)")


def read_cuts(log: LogText) -> list[tuple[int, Cut]]:
    """(line index, cut) for each run; the logs' MB are 2^20 bytes. `later_strategy` is left empty.

    Raises InputError when no run reports a cut or a report reads otherwise.
    """
    log.require(_EVIDENCE, "the line 'Failure evidence: NIC cut during iteration N ..'")
    return [(index, _cut(log, index)) for index, _ in log.find_all(_EVIDENCE)]


def _cut(log: LogText, index: int) -> Cut:
    match = _CUT.search(log.lines[index])
    if match is None:
        raise log.error(index, "'NIC cut during iteration N (A of B MB received before the cut; ..)'")
    start, end = float(match["i0"]), float(match["i1"])
    return Cut(
        nic=match["nic"],
        iteration=int(match["iteration"]),
        rx_bytes=int(match["rx"]) * MIB,
        full_rx_bytes=int(match["full"]) * MIB,
        time_s=round(end - start, 6),
        command_s=(float(match["c0"]), float(match["c1"])),
        window_s=(start, end),
        later_strategy="",
    )


def with_strategy(cut: Cut, strategy: str, time_s: float | None = None) -> Cut:
    """The cut with what followed it, and its time where a table gives it more digits."""
    return replace(cut, later_strategy=strategy, time_s=cut.time_s if time_s is None else time_s)


def read_n_ranks(log: LogText) -> int:
    """Ranks on which the results were checked, the same for every run of the log."""
    log.require(_VERIFIED, "the line 'Verification: .. on all N ranks: N wrong'")
    found = [(index, int(match[1])) for index, match in log.find_all(_VERIFIED)]
    index, n_ranks = found[-1]
    if any(other != n_ranks for _, other in found):
        raise log.error(index, "as many ranks as in the log's other runs")
    return n_ranks


def read_warnings(log: LogText) -> tuple[str, ...]:
    """Wrong elements, failed tests and a bad exit code. Raises InputError when no verdict is there."""
    log.require(_TEST, "the verdict 'TEST PASS' or 'TEST FAIL'")
    wrong = [(i, f"{m[2]} wrong elements") for i, m in log.find_all(_VERIFIED) if int(m[2])]
    failed = [(i, "the run's own test failed") for i, m in log.find_all(_TEST) if m[1] == "FAIL"]
    exits = [(i, f"the run ended with exit code {m[1]}") for i, m in log.find_all(_EXIT) if int(m[1])]
    return tuple(f"{log.where(index)}: {what}" for index, what in sorted(wrong + failed + exits))
