"""The numbers of a results table that a baseline keeps: watched metrics, drawn rows as their mean over the seeds."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from r2cc_simai.results import ERROR, Row
from r2cc_simai.results.files import canonical

WATCHED = (
    "time",
    "time_first",
    "time_cut",
    "one_off",
    "iteration",
    "iteration_cut",
    "tokens_per_s",
    "exposed_share",
    "failure_induced",
    "stopped",
    "work_factor",
    "effective_time",
    "lost_gpu_h",
)
"""Metrics that are watched where nothing else is asked for: times and what follows from them, not counters of bytes,
bandwidths (size over time), courses by the hour or shares by cause."""


@dataclass(frozen=True, order=True)
class Key:
    """What names a number: the columns of the results table, without the seed.

    `repeat` counts numbers that nothing else tells apart, in the order of their values.
    """

    scenario: str
    cluster: str
    workload: str
    pattern: str
    strategy: str
    backend: str
    bytes: int
    metric: str
    unit: str
    repeat: int = 0

    @property
    def case(self) -> tuple[str, str, str, str, str, str, int]:
        """What the numbers of one simulated case share."""
        return (self.scenario, self.cluster, self.workload, self.pattern, self.strategy, self.backend, self.bytes)


@dataclass(frozen=True)
class Number:
    """A watched number: `value` in the key's unit, and its overhead against the healthy cluster in percent.

    Both are means over `seeds` ("0-99 120", empty where nothing is drawn), rounded to 12 significant digits. Of a case
    that failed the value is the number of seeds (1 where nothing is drawn) and `error` a reason. `measured` (same unit)
    and `source` stand beside it in the results table and are not kept in a baseline.
    """

    key: Key
    value: float
    overhead_pct: float | None = None
    seeds: str = ""
    measured: float | None = None
    source: str = ""
    error: str = ""


def plain(text: str) -> str:
    r"""The text in one line that every format can hold: a character that is not printable is written as `\x1b`."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def kind(metric: str) -> str:
    """The metric without what it is counted of: `rx_bytes` of `rx_bytes[server0.nic0]`."""
    return metric.partition("[")[0]


def watched(rows: Iterable[Row], metrics: Sequence[str]) -> list[Number]:
    """The numbers of `rows` whose metric matches one of the patterns (`time*`), in the order of their keys.

    Cases that failed are always among them. The order of the rows does not matter.
    """
    groups: dict[Key, list[Row]] = defaultdict(list)
    singles: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        failed = row.metric == ERROR
        if failed or (row.simulated is not None and any(fnmatchcase(row.metric, m) for m in metrics)):
            (singles if row.seed is None and not failed else groups)[_key(row)].append(row)
    numbers = [_mean(key, members) for key, members in groups.items()]
    numbers += [_single(key, row) for key, members in singles.items() for row in members]
    return in_order(numbers)


def in_order(numbers: Iterable[Number]) -> list[Number]:
    """The numbers in the order of their keys; those with equal keys are counted in the order of their values."""
    ordered = sorted(numbers, key=lambda n: (replace(n.key, repeat=0), n.seeds, n.value, _sortable(n.overhead_pct)))
    return list(_counted(ordered))


def seed_ranges(seeds: Iterable[int]) -> str:
    """`0-99 120` of the seeds 0 to 99 and 120."""
    parts: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], seed]
        else:
            parts.append([seed])
    return " ".join("-".join(str(end) for end in part) for part in parts)


def _key(row: Row) -> Key:
    scenario, cluster, workload, pattern = map(plain, (row.scenario, row.cluster, row.workload, row.pattern))
    strategy, backend, metric, unit = map(plain, (row.strategy, row.backend, row.metric, row.unit))
    return Key(scenario, cluster, workload, pattern, strategy, backend, row.bytes, metric, unit)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _single(key: Key, row: Row) -> Number:
    assert row.simulated is not None  # rows without a value are left out
    overhead = row.overhead_pct
    return Number(
        key,
        value=canonical(row.simulated),
        overhead_pct=None if overhead is None else canonical(overhead),
        measured=row.measured,
        source=plain(row.source),
    )


def _mean(key: Key, rows: Sequence[Row]) -> Number:
    seeds = seed_ranges(row.seed for row in rows if row.seed is not None)
    if key.metric == ERROR:
        return Number(key, value=float(len(rows)), seeds=seeds, error=plain(min(row.error for row in rows)))
    value = _mean_of([row.simulated for row in rows])
    assert value is not None  # rows without a value are left out
    return Number(key, value, _mean_of([row.overhead_pct for row in rows]), seeds)


def _mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of the values that exist, whatever their order: the sum is rounded once."""
    known = [value for value in values if value is not None]
    return canonical(math.fsum(known) / len(known)) if known else None


def _counted(ordered: Iterable[Number]) -> Iterator[Number]:
    previous: Key | None = None
    for number in ordered:
        key = replace(number.key, repeat=0)
        if previous is not None and key == replace(previous, repeat=0):
            key = replace(key, repeat=previous.repeat + 1)
        previous = key
        yield replace(number, key=key)


def _sortable(value: float | None) -> float:
    return -math.inf if value is None else value
