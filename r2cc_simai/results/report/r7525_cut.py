"""The iteration during which a NIC of an r7525 server is cut."""

from collections.abc import Sequence

from r2cc_simai.results.report import comparison, labels
from r2cc_simai.results.report.document import Section, SectionKind, Text
from r2cc_simai.results.table import Row

SLUG = "r7525-cut"


def claims(row: Row) -> bool:
    """Claim the metric `time_cut` of the scenarios `r7525-*`, and the times before and after of `r7525-cut`."""
    beside = row.scenario == "r7525-cut" and row.metric in ("time", "time_first")
    return row.scenario.startswith("r7525-") and (row.metric == "time_cut" or beside) and bool(row.simulated)


def build(rows: Sequence[Row]) -> Section:
    """Return the section: bars and a table, a row a cut."""
    ordered = sorted((row for row in rows if row.metric == "time_cut"), key=_order)
    suffix = comparison.backend_suffix(ordered)
    return Section(
        SLUG,
        "r7525, the iteration that the cut hits",
        (
            Text(
                "mlx5_2 of one server is cut while the AllReduce runs, after the given number of bytes "
                "or seconds. The detection delay is hidden while the backup NIC still has traffic of its "
                "own, and exposed when the cut comes late."
            ),
            comparison.bars(
                SLUG,
                "Time of the iteration that the cut hits.",
                ordered,
                lambda row: _name(row) + suffix(row),
                "time",
            ),
            comparison.table(
                "Time of the iteration that the cut hits",
                ordered,
                (comparison.SIZE, comparison.STRATEGY, comparison.PATTERN, comparison.BACKEND),
            ),
        ),
    )


def _order(row: Row) -> tuple[object, ...]:
    return labels.strategy_order(row.strategy), labels.natural(row.pattern), row.backend, row.bytes


def _name(row: Row) -> str:
    return f"{labels.strategy_name(row.strategy)}\n{labels.short_pattern(row.pattern)}"


KIND = SectionKind(claims, build)
