"""How far a simulated number may lie from the measured or published one.

Against the three r7525 servers: times within 1% from 512 MiB on, 5% from 16 MiB on, 25% below; the
iteration that a failure hits within 2%; bytes per NIC within 1%.
Against the published closed forms (`figure7`, `table1`): the overhead within 1 point by the backend `flow`,
2 points by any other.
The emulated cluster (`lab-*`): times within 2%, their ratios to healthy 1%, the iteration that a cut hits 5%, bytes per
NIC 0.5%, and 5% in the iteration that a cut hits, where bytes under way are sent in vain.
Training (`h100-training`): the overhead within 0.1 points for the bars that the two calibrated numbers are fitted to
and for R2CC-AllReduce. What the paper's HotRepair and AdapCC do beside is unknown: they are shown, and not judged.
"""

from dataclasses import dataclass

from r2cc_simai.results.table import Row

MIB = 1 << 20
CLOSED_FORM_SCENARIOS = frozenset({"figure7", "table1"})
TRAINING = "training"
"""What stands in the names of scenarios of training jobs."""
H100_TRAINING = "h100-training"
H100_JUDGED = frozenset({"ideal", "balance", "r2cc-allreduce"})
H100_POINTS = 0.1

LAB = "lab-"
"""Before the name of an emulated cluster in a scenario."""
LAB_TIMES_PCT = {"time": 2.0, "ratio": 1.0, "time_cut": 5.0}
LAB_BYTES_PCT, LAB_CUT_BYTES_PCT = 0.5, 5.0


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
    if row.scenario.startswith(LAB):
        return _lab_check(row)
    if TRAINING in row.scenario:
        return _training_check(row)
    if row.scenario in CLOSED_FORM_SCENARIOS and row.ideal:
        assert row.simulated is not None
        assert row.measured is not None
        points = 100.0 * (row.simulated - row.measured) / row.ideal
        return Check(row, points, 1.0 if row.backend == "flow" else 2.0, "points")
    return Check(row, row.error_pct, tolerance_pct(row.metric, row.bytes), "%")


def lab_deviation_pct(row: Row) -> float | None:
    """Return how far a simulated value is from the one that the lab measured, in percent of the latter.

    Bytes of a NIC are compared in percent of what it carries in a healthy iteration where that is more: on some NICs
    nothing but acknowledgements pass after a failure.
    """
    if row.simulated is None or row.measured is None:
        return None
    scale = max(row.measured, row.ideal or 0.0) if row.unit == "B" else row.measured
    return 100.0 * (row.simulated - row.measured) / scale if scale else None


def _lab_check(row: Row) -> Check | None:
    deviation = lab_deviation_pct(row)
    if row.unit == "B":
        allowed = LAB_CUT_BYTES_PCT if row.scenario.endswith("/cut") else LAB_BYTES_PCT
    else:
        allowed = LAB_TIMES_PCT.get(row.metric, 0.0)
    return Check(row, deviation, allowed, "%") if deviation is not None and allowed else None


def _training_check(row: Row) -> Check | None:
    """The overhead that a throughput means, against that of the published throughput."""
    if row.scenario != H100_TRAINING or row.strategy.partition(":")[0] not in H100_JUDGED:
        return None
    if row.metric != "tokens_per_s" or not row.ideal or not row.simulated or not row.measured:
        return None
    points = 100.0 * (row.ideal / row.simulated - row.ideal / row.measured)
    return Check(row, points, H100_POINTS, "points")
