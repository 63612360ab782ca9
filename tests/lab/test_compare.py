"""The lab beside its simulation: what is calibrated, what is compared, and how errors are judged.

Measured rows are made by the simulation itself on a cluster whose calibrated numbers differ from the lab file's, so
that the right answer is known: all numbers are found, and nothing is left of any error. What a large collective takes
beside its steps and bytes, a small one does not.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError
from r2cc_simai.lab.compare import Calibration, Side, compare_lab, with_calibrated
from r2cc_simai.lab.cuts import timeline_of
from r2cc_simai.lab.spec import LabCase, LabSpec, cases_of
from r2cc_simai.results import Row, make_row
from r2cc_simai.runners.collective import Job
from r2cc_simai.runners.rows import CUT, job_rows, simulate

TRUE = Calibration(step_s=0.0003, base_s=0.004, header_bytes=80.0)
BEGAN_S = 0.1
SPEC = LabSpec(
    servers=3,
    ranks_per_server=1,
    nics=[{"count": 2, "rate_mbps": 100}],
    bytes=4_000_000,
    strategies=["balance", "hot-repair"],
    failures=[
        {"name": "lost", "script": ["server1.nic1@0"]},
        {"name": "cut", "script": ["server1.nic1@bytes:1M"], "strategies": ["balance"]},
    ],
)
NAME = "made"


def measured_by_simulation(repetitions: int = 1) -> list[Row]:
    """Rows as the lab writes them, of a lab that is exactly what `chunk` says of the shifted cluster."""
    cluster = with_calibrated(SPEC.cluster(NAME), TRUE)
    rows: list[Row] = []
    for case in cases_of(SPEC):
        cuts = case.cuts(cluster)
        began = {position: BEGAN_S for position, cut in enumerate(cuts) if not cut.before}
        timeline = timeline_of(cuts, began, case.pattern)
        job = Job(case.bytes or SPEC.bytes, SPEC.collective, 3, 1, backend=Backend.CHUNK)
        where = cluster if case.bytes is None else with_calibrated(cluster, replace(TRUE, base_s=0.0))
        simulated = job_rows(simulate(where, case.parsed_strategy(), timeline, job), f"lab-{NAME}")
        for repetition in range(repetitions):
            rows += [as_measured(row, repetition) for row in simulated]
            rows += [as_measured(began_row(case, position, t), repetition) for position, t in began.items()]
    return rows


def as_measured(row: Row, repetition: int) -> Row:
    return replace(
        row,
        backend="lab",
        simulated=None,
        measured=row.simulated,
        source=f"raw/x.json repetition {repetition + 1} of 3; host h",
    )


def began_row(case: LabCase, position: int, time_s: float) -> Row:
    return make_row(
        scenario=f"lab-{NAME}{CUT}",
        cluster=NAME,
        workload="all_reduce",
        pattern=case.pattern,
        strategy=case.strategy,
        backend="lab",
        bytes=SPEC.bytes,
        metric=f"cut_at[{position}]",
        unit="s",
        simulated=time_s,
    )


def scaled(rows: Sequence[Row], factor: float, **of: Any) -> list[Row]:
    """The rows with some measured values changed."""

    def hit(row: Row) -> bool:
        return all(getattr(row, key) == value for key, value in of.items())

    return [replace(row, measured=(row.measured or 0.0) * factor) if hit(row) else row for row in rows]


def of(sides: Sequence[Side], failure: str, strategy: str, metric: str) -> Side:
    (found,) = [s for s in sides if (s.case.failure, s.row.strategy, s.row.metric) == (failure, strategy, metric)]
    return found


def test_all_numbers_are_found_and_no_error_is_left() -> None:
    found = compare_lab(NAME, SPEC, measured_by_simulation())
    assert found.calibration.step_s == pytest.approx(TRUE.step_s, rel=1e-3)
    assert found.calibration.base_s == pytest.approx(TRUE.base_s, rel=1e-3)
    assert found.calibration.header_bytes == pytest.approx(TRUE.header_bytes, rel=1e-6)
    assert found.ok
    assert max(abs(side.error_pct) for side in found.sides) < 0.05


def test_only_the_healthy_rows_move_the_calibration() -> None:
    """Twice the time under every failure changes nothing that the simulation says."""
    rows = measured_by_simulation()
    slower = [row if row.pattern == "none" else replace(row, measured=2 * (row.measured or 0.0)) for row in rows]
    one, other = (compare_lab(NAME, SPEC, some) for some in (rows, slower))
    assert one.calibration == other.calibration
    time = ("lost", "balance", "time")
    assert of(one.sides, *time).row.simulated == of(other.sides, *time).row.simulated
    assert of(other.sides, *time).error_pct == pytest.approx(-50, abs=0.1)
    assert not other.ok


def test_every_case_has_times_ratios_and_bytes_of_every_nic() -> None:
    sides = compare_lab(NAME, SPEC, measured_by_simulation()).sides
    for case in [case for case in cases_of(SPEC) if case.bytes is None]:
        own = {(side.row.scenario, side.row.metric) for side in sides if side.case == case}
        assert ("lab-made", "time") in own
        assert (("lab-made", "ratio") in own) is bool(case.script)
        assert len([m for _, m in own if m.startswith("rx_bytes")]) == 6 * (1 + (case.failure == "cut"))
        assert (("lab-made", "time_cut") in own) is (case.failure == "cut")


def test_ratio_is_time_over_the_healthy_time_on_either_side() -> None:
    found = compare_lab(NAME, SPEC, scaled(measured_by_simulation(), 1.015, metric="time", strategy="hot-repair"))
    side = of(found.sides, "lost", "hot-repair", "ratio")
    assert side.row.measured == pytest.approx(1.015 * (side.row.simulated or 0.0), rel=1e-3)
    assert (side.tolerance_pct, side.ok) == (1.0, False)  # 1.5% off: too far for a ratio, and within 2% for a time
    assert of(found.sides, "lost", "hot-repair", "time").ok


def test_measured_is_the_median_and_its_spread_is_kept() -> None:
    rows = measured_by_simulation(repetitions=3)
    times = [row for row in rows if (row.metric, row.pattern, row.bytes) == ("time", "none", SPEC.bytes)]
    odd = [replace(row, measured=(row.measured or 0) * f) for row, f in zip(times, (0.99, 1.0, 1.3), strict=True)]
    side = of(compare_lab(NAME, SPEC, [r for r in rows if r not in times] + odd).sides, "none", "ideal", "time")
    assert side.row.measured == times[0].measured
    assert (side.lowest, side.highest, side.repetitions) == (odd[0].measured, odd[2].measured, 3)
    assert side.row.source.startswith("lab: median of 3, ")


def test_acknowledgements_on_a_nic_that_carries_nothing_are_judged_by_what_it_carries_when_healthy() -> None:
    """A NIC that only takes acknowledgements has no bytes in the simulation: 0 against 10 kB is no error of 100%."""
    rows = measured_by_simulation()
    dead = f"rx_bytes[{SPEC.cluster(NAME).nics[3].full_name}]"
    healthy = next(row.measured for row in rows if (row.metric, row.pattern, row.bytes) == (dead, "none", SPEC.bytes))
    assert healthy
    some = [
        replace(row, measured=0.002 * healthy) if (row.metric, row.pattern) == (dead, "server1.nic1@0") else row
        for row in rows
    ]
    side = of(compare_lab(NAME, SPEC, some).sides, "lost", "balance", dead)
    assert side.row.simulated == 0
    assert side.error_pct == pytest.approx(-0.2)
    assert side.ok


def test_without_healthy_rows_nothing_is_compared() -> None:
    failed = [row for row in measured_by_simulation() if row.pattern != "none"]
    with pytest.raises(InputError, match="no healthy iteration among its rows"):
        compare_lab(NAME, SPEC, failed)


def test_cases_that_were_not_measured_yet_are_left_out() -> None:
    healthy = [row for row in measured_by_simulation() if row.pattern == "none"]
    assert {side.case.failure for side in compare_lab(NAME, SPEC, healthy).sides} == {"none"}
