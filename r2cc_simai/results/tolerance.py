"""How far a simulated number may lie from the measured or published one.

Against the three r7525 servers: times within 1% from 512 MiB on, 5% from 16 MiB on, 25% below; the
iteration that a failure hits within 2%; bytes per NIC within 1%.
Against the published closed forms (`figure7`, `table1`): the overhead within 1 point by the backend `flow`,
2 points by any other.
"""

from dataclasses import dataclass

from r2cc_simai.results.table import Row

MIB = 1 << 20
CLOSED_FORM_SCENARIOS = frozenset({"figure7", "table1"})


@dataclass(frozen=True)
class Check:
    """A row's deviation from its measured value and what is allowed, both in `unit` ("%" or "points")."""

    row: Row
    deviation: float
    tolerance: float
    unit: str

    @property
    def ok(self) -> bool:
        """Whether the deviation lies within the tolerance."""
        return abs(self.deviation) <= self.tolerance


def tolerance_pct(metric: str, size: int) -> float:
    """Return the tolerance in percent of a metric measured on the r7525 servers; `size` in bytes."""
    if metric == "time_cut":
        return 2.0
    if metric.startswith(("rx_bytes", "tx_bytes")) or size >= 512 * MIB:
        return 1.0
    return 5.0 if size >= 16 * MIB else 25.0


def is_outlier(row: Row) -> bool:
    """Whether the row's source marks its measured value as an outlier, which is shown but not judged."""
    return "outlier" in row.source


def check(row: Row) -> Check | None:
    """Return how the row compares with its measured value; None where there is nothing to judge."""
    if row.error_pct is None or is_outlier(row):
        return None
    if row.scenario in CLOSED_FORM_SCENARIOS and row.ideal:
        assert row.simulated is not None
        assert row.measured is not None
        points = 100.0 * (row.simulated - row.measured) / row.ideal
        return Check(row, points, 1.0 if row.backend == "flow" else 2.0, "points")
    return Check(row, row.error_pct, tolerance_pct(row.metric, row.bytes), "%")
