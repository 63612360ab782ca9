"""Rows of the results table from runs of nccl-tests: measured beside simulated where a simulation stands for them."""

from dataclasses import dataclass, replace
from pathlib import Path

from r2cc_simai.collectives.operations import canonical
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.measured.settings import run_settings
from r2cc_simai.real.nccl_tests import NcclRun, Repetition
from r2cc_simai.real.table_parts import Phase, TableRow
from r2cc_simai.results import Row, make_row
from r2cc_simai.runners.compare import LogComparison, compare_log

MEASURED = "real"
"""Name in the column `backend` of a row that nothing simulated stands beside."""


@dataclass(frozen=True)
class Judged:
    """What a repetition yielded: all its rows, the comparisons made, and why there is none where there is none."""

    rows: tuple[Row, ...]
    comparisons: tuple[LogComparison, ...]
    remarks: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every value that is judged lies within its tolerance."""
        return all(comparison.ok for comparison in self.comparisons)


def judge(run: NcclRun, one: Repetition, cluster: str | None, backend: Backend, *, compare: bool) -> Judged:
    """Compares a repetition with the simulation; rows that cannot be compared hold the measured value alone."""
    comparisons: list[LogComparison] = []
    remarks: list[str] = []
    for path in one.comparable if compare else ():
        try:
            comparisons.append(compare_log(path, cluster, backend))
        except (InputError, PartitionedError) as error:
            remarks.append(f"not compared: {error}")
    rows = [row.row for comparison in comparisons for row in comparison.compared]
    compared = _compared_phases(one, comparisons)
    rows += [_measured(run, one, row, cluster or "") for row in one.table.rows if row.phase not in compared]
    said = [remark for comparison in comparisons for remark in comparison.remarks]
    about = f"{one.record.provenance}, raw log {one.log}"
    sourced = tuple(replace(row, source=f"{row.source}; {about}") for row in rows)
    return Judged(sourced, tuple(comparisons), (*remarks, *said))


def _compared_phases(one: Repetition, comparisons: list[LogComparison]) -> set[Phase]:
    """Phases of the run that have been compared, by the logs that were written for them."""
    found: set[Phase] = set()
    for comparison in comparisons:
        path = Path(comparison.log)
        found.add(Phase.AFTER if path == one.log.with_suffix(".after.log") else Phase.BEFORE)
    return found


def _measured(run: NcclRun, one: Repetition, row: TableRow, cluster: str) -> Row:
    failed = row.phase is not Phase.BEFORE
    settings = run_settings(run.variables, "the run's environment")
    pattern = f"server{settings.failed.node}.{settings.failed.nic}" if settings.failed is not None else ""
    program = Path(run.program).name.removesuffix("_perf")
    return make_row(
        scenario=f"{one.log.stem} {row.phase.value}" if failed else one.log.stem,
        cluster=cluster,
        workload=canonical(program),
        pattern=pattern or ("the failure hook" if failed else ""),
        strategy=_strategy(run, settings.mode, failed=failed),
        backend=MEASURED,
        bytes=row.size.bytes,
        metric="time",
        unit="s",
        simulated=None,
        measured=row.size.time_s,
        source=one.table.log.where(row.line),
    )


def _strategy(run: NcclRun, mode: str, *, failed: bool) -> str:
    survives = run.variables.get("NCCL_IB_RESILIENCY_PORT_FAILOVER") == "1"
    return "nccl-failover" if failed and mode == "nccl" and survives else mode
