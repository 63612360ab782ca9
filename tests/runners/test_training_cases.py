"""Training jobs in a sweep: rows, published figures beside them, the same table whatever the number of processes."""

import json
from pathlib import Path

import pytest
import yaml

from r2cc_simai.chakra.memory import trace_set
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import PartitionedError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.results.table import Row
from r2cc_simai.runners.sweep import run_sweep
from r2cc_simai.runners.training import job_of
from r2cc_simai.runners.training_cases import training_case_rows
from r2cc_simai.runners.training_scenario import TrainingBlock, training_cases
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training.job import run_training
from r2cc_simai.workloads import vllm
from r2cc_simai.workloads.compute_times import compute_times
from r2cc_simai.workloads.models import load_model
from r2cc_simai.workloads.vllm_options import VllmOptions

SMALL: dict[str, object] = {
    "scenario": "small",
    "megatron": {"model": "gpt3-2.7b", "micro_batch_size": 1, "global_batch_size": 16},
    "gpu": "H100",
    "clusters": ["h100"],
    "failures": ["server0.nic3@0"],
    "strategies": ["balance"],
}


def rows_of(**change: object) -> list[Row]:
    """All rows of the small job with changes."""
    content = {k: v for k, v in (SMALL | change).items() if v is not None}
    cases = training_cases(0, TrainingBlock.model_validate(content))
    return [row for case in cases for row in training_case_rows(case)]


def value(rows: list[Row], metric: str) -> float:
    (row,) = (row for row in rows if row.metric == metric)
    assert row.simulated is not None
    return row.simulated


def test_balance_costs_a_seventh_of_the_exposed_gradients() -> None:
    """One of eight NICs lost, X = 1/8: the gradients take 1/(1-X) = 8/7 as long.

    Without overlap they are 2(p-1)/p * D of bytes through a server's NICs, p = 16 ranks, D = 4 bytes a parameter.
    """
    rows = rows_of()
    (iteration,) = (row for row in rows if row.metric == "iteration")
    gradients_s = 2 * 15 / 16 * 4 * 2.65e9 / (8 * 50e9)
    assert iteration.simulated is not None
    assert iteration.ideal is not None
    assert iteration.simulated - iteration.ideal == pytest.approx(gradients_s / 7, rel=0.03)


def test_the_rate_of_the_nics_can_be_replaced() -> None:
    """Half the rate: the gradients take twice as long, and so does what a lost NIC adds."""
    whole, half = (rows_of(nic_rate_gbps=rate) for rate in (400, 200))
    added = [value(rows, "iteration") - rows[0].ideal for rows in (whole, half) if rows[0].ideal]
    assert added[1] == pytest.approx(2 * added[0], rel=0.01)


def test_backups_can_be_replaced() -> None:
    """Hot repair: a backup NIC carries 2 shares, two of them 1.5 each: the gradients take 2 or 1.5 times as long."""
    one, two = (rows_of(strategies=["hot-repair"], backups_per_nic=n) for n in (1, 2))
    extra = [value(rows, "iteration") - rows[0].ideal for rows in (one, two) if rows[0].ideal]
    assert extra[0] == pytest.approx(2 * extra[1], rel=0.02)


def test_rows_say_with_which_settings() -> None:
    """All that a reader needs to do it again stands in the column `workload`."""
    (workload,) = {row.workload for row in rows_of(nic_rate_gbps=200, mfu_scale=0.5, backups_per_nic=2)}
    assert workload == (
        "gpt3-2.7b tp=1 pp=1 dp=16 batch=16 micro_batch=1 sequence=2048 gradients=fp32 gradient_gb=10.6 overlap=no "
        "gpu=H100-SXM5-80GB mfu_scale=0.5 nic_gbps=200 backups=2"
    )


def test_failure_induced_time_is_the_hit_and_the_overhead_until_the_repair() -> None:
    """t = (time of the iteration that is hit - healthy) + overhead * 3600 s."""
    rows = rows_of(failures=["server0.nic3@0.05"], repair_h=1)
    (tokens,) = (row for row in rows if row.metric == "tokens_per_s")
    (cut,) = (row for row in rows if row.metric == "iteration_cut")
    assert cut.simulated is not None
    assert cut.ideal is not None
    assert tokens.overhead_pct is not None
    expected = cut.simulated - cut.ideal + tokens.overhead_pct / 100 * 3600
    assert value(rows, "failure_induced") == pytest.approx(expected)


def test_published_figures_stand_beside_the_rows_of_their_strategy() -> None:
    """h100_training.csv by strategy and number of failed NICs, whatever the options of the strategy."""
    references = [
        {
            "table": "h100_training",
            "metric": "tokens_per_s",
            "value": "throughput_tokens_per_s",
            "strategy": "r2cc-allreduce",
            "where": {"strategy": "r2cc-allreduce", "failed_nics": "1"},
            "pattern": "server0.nic3@0",
        }
    ]
    failures = ["server0.nic3@0", "server0.nic4@0"]
    rows = rows_of(strategies=["balance", "r2cc-allreduce:k=16"], failures=failures, references=references)
    assert [(row.strategy, row.pattern, row.measured) for row in rows if row.measured is not None] == [
        ("r2cc-allreduce:k=16", "server0.nic3@0", 312394.0)
    ]


def test_rlhf_is_a_training_job_too() -> None:
    """Eight replicas, AdapCC drops one: the same work takes 8/7 as long, and a little less for fewer gradients."""
    rows = rows_of(megatron=None, rlhf={}, gpu="A100", clusters=["a100x8"], strategies=["adapcc"])
    (tokens,) = (row for row in rows if row.metric == "tokens_per_s")
    assert tokens.overhead_pct == pytest.approx(100 / 7, abs=0.6)
    assert tokens.workload.startswith("rlhf-llama2-7b tp=8 pp=1 dp=8")


def test_serving_is_a_job_too() -> None:
    """Decode steps of tensor parallelism over two servers: as `sim` has them of the traces that `trace vllm` writes."""
    model, options = "llama2-7b", {"tensor_parallel_size": 16, "batch_size": 8, "iterations": 2}
    own = {"megatron": None, "vllm": options | {"model": model}, "gpu": "H100", "clusters": ["h100x2"]}
    rows = rows_of(**own | {"strategies": ["hot-repair"], "failures": ["none", "server0.nic3@0"]})
    well, hurt = (row for row in rows if row.metric == "tokens_per_s")
    assert well.workload == hurt.workload
    assert well.workload == (
        "llama2-7b tp=16 pp=1 dp=1 phase=decode batch=8 input=1024 output=128 steps=2 gpu=H100-SXM5-80GB"
    )
    asked = VllmOptions.model_validate(options | {"gpus": 16})
    workload = vllm.generate("x", load_model(model), asked, compute_times("roofline", "H100"))
    job = job_of(trace_set(workload), load_cluster("h100x2"))
    result = run_training(job, parse_strategy("hot-repair"), parse_failures(["server0.nic3@0"], job.cluster))
    assert hurt.simulated == pytest.approx(result.tokens_per_s, rel=1e-12)
    assert well.simulated is not None
    assert hurt.simulated < well.simulated


def sweep_file(folder: Path) -> str:
    content = SMALL | {"strategies": ["balance", "hot-repair", "adapcc"], "failures": ["none", "server0.nic3@0.05"]}
    path = folder / "small.yml"
    path.write_text(yaml.safe_dump({"title": "t", "training": [content]}))
    return str(path)


def test_one_or_two_processes_give_the_same_bytes(tmp_path: Path) -> None:
    scenario = sweep_file(tmp_path)
    one = run_sweep(scenario, tmp_path / "one", workers=1)
    two = run_sweep(scenario, tmp_path / "two", workers=2)
    assert (one.folder / "results.csv").read_bytes() == (two.folder / "results.csv").read_bytes()
    assert {row.metric for row in one.rows} >= {"iteration", "iteration_cut", "tokens_per_s", "exposed_share"}


def test_finished_training_cases_do_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is in the run folder, so that nothing is simulated the second time."""
    scenario = sweep_file(tmp_path)
    first = run_sweep(scenario, tmp_path / "run", workers=1)

    def refuse(case: object) -> None:
        raise AssertionError(case)

    monkeypatch.setattr("r2cc_simai.runners.sweep.run_case", refuse)
    assert run_sweep(scenario, tmp_path / "run", workers=1).rows == first.rows


def test_a_job_that_cannot_go_on_is_reported() -> None:
    """All NICs of one of two servers down: no path, exit code 3's error."""
    with pytest.raises(PartitionedError):
        rows_of(failures=["server0@0"])


def test_a_timeline_for_each_case_that_the_report_links_to(tmp_path: Path) -> None:
    """`timelines: true`: one trace-event file a case, of rank 0 and of the ranks at the failure; the page names it."""
    scenario = tmp_path / "small.yml"
    block = SMALL | {"timelines": True, "failures": ["server1.nic3@0.1"], "strategies": ["balance", "r2cc-allreduce"]}
    scenario.write_text(yaml.safe_dump({"title": "small", "training": [block]}))
    result = run_sweep(str(scenario), tmp_path / "run", workers=1)
    files = sorted((result.folder / "timelines").glob("*.json"))
    assert len(files) == 2
    events = json.loads(files[0].read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {"rank 0", "network"} <= {name.partition(" (")[0] for name in names}
    assert any("server1.nic3 goes down" in event["name"] for event in events)
    page = result.report.html.read_text()
    assert all(f'href="timelines/{file.name}"' in page for file in files)


def test_a_day_has_no_timelines() -> None:
    """A day is walked through, not simulated event by event."""
    block = SMALL | {"failures": [], "day": {}, "timelines": True}
    with pytest.raises(ValueError, match="a day has no timelines"):
        TrainingBlock.model_validate(block)
