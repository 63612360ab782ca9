"""Reads what Megatron-LM, and forks of it, print every few iterations of a training.

A line is `iteration I/ N | key: value | key: value | ..`. All versions print the elapsed time per iteration in ms; with
--log-throughput newer ones add the throughput per GPU in TFLOP/s; Megatron-DeepSpeed prints samples per second and
TFLOPs, other forks tokens per GPU and second. Tokens per second follow from the global batch size and the sequence
length, which stands in the list of arguments that is printed at the start.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import median

from r2cc_simai.errors import InputError
from r2cc_simai.measured.log_text import LogText
from r2cc_simai.real.job_metrics import JobMeasurement, JobMetric

SIGN = re.compile(r"\biteration\s+(\d+)\s*/\s*(\d+)\s*\|")
"""A line by which such a log is known."""

_ELAPSED = "elapsed time per iteration (ms)"
_BATCH = "global batch size"
_FLOPS = ("throughput per GPU (TFLOP/s/GPU)", "throughput (TFLOP/s/GPU)", "TFLOPs")
_TOKENS = ("tokens per gpu per second (tgs)", "tokens per GPU per second", "tokens-per-second-per-gpu")
_SAMPLES = ("samples per second",)
_SEQUENCE = re.compile(r"\bseq_length\s*\.{2,}\s*(\d+)")
_SKIPPED = ("number of nan iterations", "number of skipped iterations")


@dataclass(frozen=True)
class Window:
    """Which iterations count: those from `first` to `last` (None: open), without the first `skip` lines."""

    skip: int = 0
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class _Line:
    """One line of iterations: where it stands, which iteration of how many, and its values."""

    index: int
    iteration: int
    total: int
    values: dict[str, str]


def read_megatron(log: LogText, window: Window, seq_length: int | None) -> JobMeasurement:
    """The medians over the window's lines: `iteration` (s), and where the log says them `tokens_per_s`,
    `tokens_per_s_per_gpu`, `samples_per_s` and `flops_per_gpu` (FLOP/s).

    Raises:
        InputError: a line that is cut short or whose time is no time, or a window without a line.
    """
    lines = [_line(log, index, match) for index, match in log.find_all(SIGN)]
    if not lines:
        raise log.truncated("a line 'iteration N/ N | .. elapsed time per iteration (ms): N'")
    kept = [one for one in lines[window.skip :] if _inside(one.iteration, window)]
    if not kept:
        span = f"iterations {lines[0].iteration} to {lines[-1].iteration}, {len(lines)} lines"
        raise InputError(f"{log.where(lines[-1].index)}: nothing left to measure after --skip {window.skip} of {span}")
    first, last = log.where(kept[0].index), kept[-1].index + 1
    return JobMeasurement(
        source=f"{first}-{last}, {len(kept)} lines",
        program="megatron",
        workload="",
        metrics=tuple(_metrics(log, kept, _sequence(log, seq_length))),
        remarks=tuple(_remarks(log, lines)),
    )


def _inside(iteration: int, window: Window) -> bool:
    return (window.first is None or iteration >= window.first) and (window.last is None or iteration <= window.last)


def _line(log: LogText, index: int, match: re.Match[str]) -> _Line:
    values = {}
    for part in log.lines[index][match.end() :].split("|"):
        key, colon, value = part.rpartition(":")
        if colon:
            values[key.strip()] = value.strip()
    one = _Line(index, int(match[1]), int(match[2]), values)
    if _number(log, one, _ELAPSED) is None:
        raise log.error(index, f"'{_ELAPSED}: N' in the line of iteration {one.iteration}")
    if not log.lines[index].rstrip().endswith("|") and index == len(log.lines) - 1:
        raise log.error(index, f"the end of the line of iteration {one.iteration} ('|')")
    return one


def _number(log: LogText, line: _Line, *keys: str) -> float | None:
    """The first of the keys that the line has.

    Raises:
        InputError: its value is no number above 0.
    """
    for key in keys:
        if key in line.values:
            try:
                value = float(line.values[key])
            except ValueError:
                value = 0.0
            if not (isfinite(value) and value > 0):
                raise log.error(line.index, f"a number above 0 after '{key}:'")
            return value
    return None


def _metrics(log: LogText, lines: Sequence[_Line], seq_length: int | None) -> list[JobMetric]:
    found = [JobMetric("iteration", "s", _median(log, lines, _ELAPSED, scale=1e-3) or 0.0)]
    tokens = [_tokens_per_s(log, one, seq_length) for one in lines]
    known = [one for one in tokens if one is not None]
    if len(known) == len(lines):
        found.append(JobMetric("tokens_per_s", "1/s", median(known), True))
    for name, unit, keys, scale in (
        ("tokens_per_s_per_gpu", "1/s", _TOKENS, 1.0),
        ("samples_per_s", "1/s", _SAMPLES, 1.0),
        ("flops_per_gpu", "FLOP/s", _FLOPS, 1e12),
    ):
        value = _median(log, lines, *keys, scale=scale)
        if value is not None:
            found.append(JobMetric(name, unit, value, True))
    return found


def _median(log: LogText, lines: Sequence[_Line], *keys: str, scale: float) -> float | None:
    """The median over all lines; None where one of them does not say it."""
    values = [_number(log, one, *keys) for one in lines]
    known = [one for one in values if one is not None]
    return median(known) * scale if len(known) == len(values) else None


def _tokens_per_s(log: LogText, line: _Line, seq_length: int | None) -> float | None:
    batch, elapsed_ms = _number(log, line, _BATCH), _number(log, line, _ELAPSED)
    if seq_length is None or batch is None or elapsed_ms is None:
        return None
    return batch * seq_length / (elapsed_ms / 1e3)


def _sequence(log: LogText, given: int | None) -> int | None:
    said = log.find(_SEQUENCE)
    if given is not None and said is not None and int(said[1][1]) != given:
        raise log.error(said[0], f"the sequence length of --seq-length {given}")
    return given if said is None else int(said[1][1])


def _remarks(log: LogText, lines: Sequence[_Line]) -> list[str]:
    remarks = []
    for before, after in pairwise(lines):
        if after.iteration <= before.iteration:
            remarks.append(f"{log.where(after.index)}: back to iteration {after.iteration}: the job was restarted")
    last = lines[-1]
    if last.iteration < last.total:
        remarks.append(f"{log.where(last.index)}: the log ends at iteration {last.iteration} of {last.total}")
    for key in _SKIPPED:
        bad = [one for one in lines if one.values.get(key, "0") != "0"]
        if bad:
            remarks.append(f"{log.where(bad[0].index)}: {key}: {bad[0].values[key]}")
    return remarks
