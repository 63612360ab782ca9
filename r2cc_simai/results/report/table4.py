"""Steady state and one-off costs after a failure on the three r7525 servers: Table 4."""

from collections.abc import Sequence

from r2cc_simai.results.report import comparison, labels
from r2cc_simai.results.report.document import Section, SectionKind, Text
from r2cc_simai.results.table import Row

SCENARIO = "table4"
METRICS = ("time", "time_first", "time_cut")


def claims(row: Row) -> bool:
    """Claim the times of scenario `table4`."""
    return row.scenario == SCENARIO and row.metric in METRICS


def build(rows: Sequence[Row]) -> Section:
    """Return the section: a table and bars, simulated beside measured."""
    ordered = sorted(rows, key=_order)
    suffix = comparison.backend_suffix(ordered)
    leading = (comparison.SIZE, comparison.STRATEGY, comparison.METRIC, comparison.BACKEND)
    return Section(
        SCENARIO,
        "Steady state and one-off costs after a failure (Table 4)",
        (
            Text(
                "Time of an AllReduce replayed after one of three NICs of a server has failed, and of "
                "the iteration that also pays what a strategy costs once (a new plan, communicator "
                "splits, re-capture of a CUDA graph)."
            ),
            comparison.bars(
                "table4",
                "Time per iteration, measured and simulated.",
                ordered,
                lambda row: _name(row) + suffix(row),
                "time per iteration",
            ),
            comparison.table("Simulated and measured times", ordered, leading),
        ),
    )


def _order(row: Row) -> tuple[object, ...]:
    return labels.strategy_order(row.strategy), METRICS.index(row.metric), row.bytes, row.backend, row.pattern


def _name(row: Row) -> str:
    return f"{labels.strategy_name(row.strategy)}\n{labels.metric_name(row.metric)}"


KIND = SectionKind(claims, build)
