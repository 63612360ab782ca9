"""Rows of trained jobs, and the section of the report that is made of them."""

import pytest

from r2cc_simai.errors import MismatchError
from r2cc_simai.lab.cuts import Action, Done, Kind
from r2cc_simai.lab.record import Iteration
from r2cc_simai.lab.spec import LabCase
from r2cc_simai.lab.training.experiment import require_sound
from r2cc_simai.lab.training.history import History
from r2cc_simai.lab.training.job import Job, judge
from r2cc_simai.lab.training.rows import job_rows
from r2cc_simai.lab.training.settings import load_training
from r2cc_simai.results import Row
from r2cc_simai.results.report import lab_training
from r2cc_simai.results.report.document import Plot, Table
from r2cc_simai.results.tolerance import check

NAME, SPEC, LAB = load_training("ci")
STEPS, FAILED_IN = SPEC.steps, SPEC.failure.step


def history(apart_from: int = STEPS) -> History:
    """Of a job that is another one's twin up to the step `apart_from`."""
    losses = [3.3 - 0.1 * k + (1e-6 if k > apart_from else 0) for k in range(STEPS)]
    sums = [k + (100 if k >= apart_from else 0) for k in range(STEPS)]
    return History(tuple(losses), tuple(sums), 8.0 * (1 + (1e-7 if apart_from < STEPS else 0)))


def job(strategy: str, own: History, replanned: int | None, times: list[float]) -> Job:
    failed = strategy != "ideal"
    case = LabCase(strategy, "in step", tuple(SPEC.failure.script) if failed else ())
    iterations = tuple(
        Iteration("steady", 0, k, time_s, (), (), {}, {}, 0, ({},) * (failed and k == FAILED_IN), 0, "")
        for k, time_s in enumerate(times, 1)
    )
    done = (Done(Action(4, Kind.LINK_DOWN), 0.01, 8e4),) if failed else ()
    return Job(case, own, own, replanned, iterations, done, ())


def rows_of(*jobs: Job) -> list[Row]:
    rows = []
    for one in jobs:
        verdict = judge(one, jobs[0], SPEC.perplexity_tolerance_pct)
        rows += job_rows(NAME, SPEC, LAB, one, jobs[0], verdict, f"raw/{one.case.strategy}.json")
    return rows


TIMES = [0.02] * (FAILED_IN - 1) + [0.07] + [0.03] * (STEPS - FAILED_IN)
HEALTHY = job("ideal", history(), None, [0.02] * STEPS)
REPAIRED = job("hot-repair", history(), None, TIMES)
BALANCED = job("balance", history(FAILED_IN), FAILED_IN + 1, TIMES)


def test_rows_hold_what_was_found() -> None:
    rows = {row.metric: row for row in rows_of(HEALTHY, BALANCED) if row.strategy == "balance"}
    found = {metric: row.measured for metric, row in rows.items() if not metric.startswith("loss[")}
    assert found == {
        "perplexity": 8.0000008,
        "identical_losses": FAILED_IN + 1,
        "identical_parameters": FAILED_IN,
        "replanned_in": FAILED_IN + 1,
        "recoveries": 1,
        "faults": 0,
        "time_before": 0.02,
        "time_cut": 0.07,
        "time_after": 0.03,
    }
    assert rows["perplexity"].overhead_pct == pytest.approx(1e-5)
    assert sum(metric.startswith("loss[") for metric in rows) == STEPS
    assert all(lab_training.claims(row) and check(row) is None for row in rows.values())


def test_faults_end_with_the_first_of_them() -> None:
    require_sound(rows_of(HEALTHY, REPAIRED, BALANCED))
    wrong = job("hot-repair", history(3), None, TIMES)
    with pytest.raises(MismatchError, match=r"hot-repair: the loss of step 5 is not that of the healthy job \(1 jobs"):
        require_sound(rows_of(HEALTHY, wrong))


def test_section_says_which_bits_are_equal() -> None:
    section = lab_training.build(rows_of(HEALTHY, REPAIRED, BALANCED))
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    texts = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert texts["Hot repair"][:3] == ["–", f"all {STEPS} steps", f"all {STEPS} steps"]
    balanced = texts["Balance"]
    assert balanced[:3] == [
        f"step {FAILED_IN + 1}",
        f"{FAILED_IN + 1} of {STEPS} steps",
        f"{FAILED_IN} of {STEPS} steps",
    ]
    assert balanced[5:] == ["+0.000010%", "20.0 ms", "70.0 ms", "30.0 ms", "1", "yes"]
    (finding,) = section.findings
    assert "Hot repair equal bit for bit to the end; Balance equal bit for bit up to step 6" in finding


def test_plot_leaves_out_what_is_equal() -> None:
    """A job without a difference has no point on the logarithmic axis, and the legend says so."""
    (plot,) = [b for b in lab_training.build(rows_of(HEALTHY, REPAIRED, BALANCED)).blocks if isinstance(b, Plot)]
    assert "Hot repair: equal bit for bit" in plot.svg
    assert "Balance: equal bit for bit" not in plot.svg
