"""Putting published and measured figures beside simulated rows."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.measured import published
from r2cc_simai.results import Row, make_row
from r2cc_simai.runners.reference import Reference
from r2cc_simai.runners.rows import CUT

_HEALTHY = {"ideal": "nccl"}  # the tables name what ran: NCCL, on the healthy cluster


@lru_cache(maxsize=32)
def _table(name: str) -> list[dict[str, str]]:
    return published.load(name)


def with_references(
    rows: Sequence[Row], references: Sequence[Reference], cluster: Cluster, timeline: Timeline
) -> list[Row]:
    """The rows, each with the figure of the first reference that has one for it."""
    return [_with_first(row, references, cluster, timeline) for row in rows]


def _with_first(row: Row, references: Sequence[Reference], cluster: Cluster, timeline: Timeline) -> Row:
    for reference in references:
        if row.metric.partition("[")[0] != reference.metric or not _of_iteration(row, reference):
            continue
        fitting = [line for line in _table(reference.table) if _fits(line, row, reference, cluster, timeline)]
        figures = [(value, line) for line in fitting if (value := _value(line, reference, row)) is not None]
        if figures:
            value, line = min(figures, key=lambda figure: figure[0])
            note = f"; {line['note']}" if line.get("note") else ""
            return _measured(row, value, line["source"] + note)
    return row


def _of_iteration(row: Row, reference: Reference) -> bool:
    return reference.iteration is None or (reference.iteration == "cut") == row.scenario.endswith(CUT)


def _fits(line: dict[str, str], row: Row, reference: Reference, cluster: Cluster, timeline: Timeline) -> bool:
    if reference.strategy not in (None, row.strategy.partition(":")[0]) or reference.pattern not in (None, row.pattern):
        return False
    if any(line[column] != value for column, value in reference.where.items()):
        return False
    if "strategy" in line and "strategy" not in reference.where and not _same_strategy(line["strategy"], row.strategy):
        return False
    if "bytes" in line and int(line["bytes"]) != row.bytes:
        return False
    if "nic" in line and "rx_bytes" in line and row.metric != f"rx_bytes[{_component(line)}]":
        return False
    if "n" in line and int(line["n"]) != len(cluster.servers):
        return False
    return "x" not in line or abs(float(line["x"]) - _lost(cluster, timeline)) < 1e-9


def _component(line: dict[str, str]) -> str:
    return line["server"] if line["nic"] == "total" else f"{line['server']}.{line['nic']}"


def _same_strategy(table: str, row: str) -> bool:
    """Whether a table's strategy is the row's; an option that is not written has its default."""
    return _full(table) == _full(_HEALTHY.get(row, row))


def _full(strategy: str) -> str:
    return "r2cc-allreduce:k=4" if strategy == "r2cc-allreduce" else strategy


def _lost(cluster: Cluster, timeline: Timeline) -> float:
    """The lost fraction X of the most degraded server at time 0."""
    view = View(cluster, tuple(float(f) for f in timeline.fractions(len(cluster.nics), 0.0)))
    return max(view.lost(server.index) for server in cluster.servers)


def _value(line: dict[str, str], reference: Reference, row: Row) -> float | None:
    if any(not line[column] for column in reference.values):
        return None
    value = sum(float(line[column]) for column in reference.values)
    if reference.values[0].endswith("_pct"):
        return None if row.ideal is None else row.ideal * (1 + value / 100)
    return value


def _measured(row: Row, value: float, source: str) -> Row:
    kept = replace(row, measured=None, source="")
    return make_row(
        scenario=kept.scenario,
        cluster=kept.cluster,
        workload=kept.workload,
        pattern=kept.pattern,
        seed=kept.seed,
        strategy=kept.strategy,
        backend=kept.backend,
        bytes=kept.bytes,
        metric=kept.metric,
        unit=kept.unit,
        simulated=kept.simulated,
        ideal=kept.ideal,
        bound=kept.bound,
        measured=value,
        source=source,
        error=kept.error,
    )
