"""Overheads of measured jobs, and simulated rows beside them."""

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.real.beside import Labels, job_rows
from r2cc_simai.real.job_metrics import JobMeasurement, JobMetric
from r2cc_simai.results import make_row


def job(iteration_s, program="megatron"):
    metrics = (JobMetric("iteration", "s", iteration_s), JobMetric("tokens_per_s", "1/s", 1000 / iteration_s, True))
    return JobMeasurement("train.log:1-9, 9 lines", program, "", metrics)


def simulated(strategy="balance", scenario="sim", value=2.03, ideal=2.0):
    return make_row(
        scenario=scenario,
        cluster="h100x2",
        workload="gpt3-2.7b",
        pattern="server0.nic0@0",
        strategy=strategy,
        backend="flow",
        bytes=0,
        metric="iteration",
        unit="s",
        simulated=value,
        ideal=ideal,
    )


def by_metric(rows):
    return {row.metric: row for row in rows}


def test_the_overhead_of_times_and_of_rates_is_the_same_loss():
    """2.02 s against 2.00 s is 1%, and so is the rate, which is lower by 1/1.01."""
    rows = by_metric(job_rows(job(2.02), job(2.0), None, Labels(strategy="balance")))
    assert rows["overhead[iteration]"].measured == pytest.approx(1.0)
    assert rows["overhead[tokens_per_s]"].measured == pytest.approx(1.0)
    assert rows["overhead[iteration]"].unit == "%"
    assert rows["overhead[iteration]"].source == "train.log:1-9, 9 lines; healthy: train.log:1-9, 9 lines"
    assert rows["iteration"].backend == "real"


def test_simulated_rows_stand_beside_with_their_errors():
    """Simulated 2.03 s beside 2.02 s: +0.495%; simulated overhead 1.5% beside 1%: +50% of it."""
    table = [simulated(), simulated("adapcc", value=2.2)]
    rows = by_metric(job_rows(job(2.02), job(2.0), table, Labels(strategy="balance")))
    assert rows["iteration"].simulated == 2.03
    assert rows["iteration"].error_pct == pytest.approx(100 * (2.03 / 2.02 - 1))
    assert rows["overhead[iteration]"].simulated == pytest.approx(1.5)
    assert rows["overhead[iteration]"].error_pct == pytest.approx(50.0)
    assert (rows["iteration"].cluster, rows["iteration"].pattern) == ("h100x2", "server0.nic0@0")
    assert rows["tokens_per_s"].simulated is None


def test_several_rows_that_fit_have_to_be_chosen_from():
    table = [simulated(), simulated(scenario="other")]
    with pytest.raises(InputError, match=r"2 rows of iteration fit .*choose by --scenario"):
        job_rows(job(2.02), None, table, Labels(strategy="balance"))
    assert job_rows(job(2.02), None, table, Labels(scenario="other"))[0].simulated == 2.03


def test_no_row_that_fits_is_said_with_what_there_is():
    with pytest.raises(InputError, match=r"it has sim / h100x2 / gpt3-2.7b / server0.nic0@0 / balance"):
        job_rows(job(2.02), None, [simulated()], Labels(strategy="optcc"))


def test_logs_of_two_programs_do_not_compare():
    with pytest.raises(InputError, match="healthy one is of vllm"):
        job_rows(job(2.02), job(2.0, "vllm"), None, Labels())
