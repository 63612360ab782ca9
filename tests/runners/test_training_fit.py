"""GPT 2.7B on 2 x 8 H100: the shipped numbers are the fit to two bars, and what they predict for the others.

Published throughput in tokens/s (R2CC paper): healthy 314,618, Balance 310,516; fitted to these. With one of eight NICs
lost Balance costs e/7, so that e = 7 (314618/310516 - 1) = 9.25% of an iteration moves gradients.
"""

from dataclasses import replace

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.measured import published
from r2cc_simai.runners.scenario import load_scenario
from r2cc_simai.runners.training_fit import Bars, fitted
from r2cc_simai.runners.training_scenario import TrainingBlock
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training.job import run_training

ONE, TWO = "server0.nic3@0", "server0.nic3@0 server1.nic3@0"
BLOCKS = [b for b in load_scenario("paper")[1].training if b.scenario.startswith("h100-training")]
MAIN = next(b for b in BLOCKS if b.scenario == "h100-training")
OTHERS = list({(b.job_on("h100").options, b.mfu_scale, b.nic_rate_gbps): b for b in BLOCKS}.values())


def throughput(strategy: str, failed_nics: int) -> float:
    """Published tokens/s of a strategy."""
    lines = published.load("h100_training")
    found = [r for r in lines if (r["strategy"], r["failed_nics"]) == (strategy, str(failed_nics))]
    return float(found[0]["throughput_tokens_per_s"])


BARS = Bars(healthy=throughput("nccl", 0), balance=throughput("balance", 1), failure=ONE)


def overhead_pct(block: TrainingBlock, strategy: str, failures: str = ONE) -> float:
    """Overhead of the shipped job in percent."""
    job = block.job_on("h100").job()
    return 100 * run_training(job, parse_strategy(strategy), parse_failures(failures.split(), job.cluster)).overhead


def published_pct(strategy: str, failed_nics: int = 1) -> float:
    """Overhead that the published throughput means, in percent."""
    return 100 * (BARS.healthy / throughput(strategy, failed_nics) - 1)


@pytest.mark.parametrize("block", OTHERS, ids=lambda b: f"{b.nic_rate_gbps:g} Gb/s")
def test_the_shipped_numbers_give_both_bars(block: TrainingBlock) -> None:
    """Healthy throughput within 1e-5, Balance's overhead within 1e-4 points, with every batch and gradient type."""
    job = block.job_on("h100").job()
    assert job.tokens / job.healthy.elapsed_s == pytest.approx(BARS.healthy, rel=1e-5)
    assert overhead_pct(block, "balance") == pytest.approx(published_pct("balance"), abs=1e-4)


def test_the_fit_finds_the_shipped_numbers_from_elsewhere() -> None:
    """From nominal NICs and efficiencies: mfu_scale and rate as shipped, to their last digit."""
    fit = fitted(replace(MAIN.job_on("h100"), mfu_scale=1.0, nic_rate_gbps=None), BARS)
    assert fit.mfu_scale == pytest.approx(MAIN.mfu_scale, abs=1e-6)
    assert fit.nic_rate_gbps == pytest.approx(MAIN.nic_rate_gbps, abs=1e-4)


def test_bars_that_no_hardware_gives_are_refused() -> None:
    """A throughput far beyond the GPUs' peak."""
    with pytest.raises(InputError, match="no value between"):
        fitted(MAIN.job_on("h100"), replace(BARS, healthy=1e9))


@pytest.mark.parametrize("block", OTHERS, ids=lambda b: f"{b.nic_rate_gbps:g} Gb/s")
def test_r2cc_allreduce_is_predicted_within_a_tenth_of_a_point(block: TrainingBlock) -> None:
    """e (1 + 1/K) p X / (2 (p-1) (1-X)) with p = 16, X = 1/8, K = 16: 0.75%; published 0.71%."""
    closed = 9.25 * (1 + 1 / 16) * 16 / 8 / (2 * 15 * 7 / 8)
    assert overhead_pct(block, "r2cc-allreduce:k=16") == pytest.approx(closed, abs=0.02)
    assert overhead_pct(block, "r2cc-allreduce:k=16") == pytest.approx(published_pct("r2cc-allreduce"), abs=0.1)


def test_two_failures_one_on_each_server_are_predicted_within_a_tenth_of_a_point() -> None:
    """Both servers have lost the same, no smaller ring is faster: e/7 = 1.32% as under Balance; published 1.24%."""
    assert overhead_pct(MAIN, "r2cc-allreduce:k=16", TWO) == pytest.approx(9.25 / 7, abs=0.01)
    assert overhead_pct(MAIN, "r2cc-allreduce:k=16", TWO) == pytest.approx(published_pct("r2cc-allreduce", 2), abs=0.1)


@pytest.mark.parametrize(("backups", "closed"), [(1, 9.25), (2, 4.62)])
def test_hot_repair_doubles_a_backup_or_adds_half_to_two(backups: int, closed: float) -> None:
    """e or e/2; published 4.82%, which two backup NICs explain within 0.2 points, and one does not."""
    assert overhead_pct(MAIN.model_copy(update={"backups_per_nic": backups}), "hot-repair") == pytest.approx(
        closed, abs=0.02
    )


def test_adapcc_loses_a_rank_of_sixteen() -> None:
    """16/15 of the work for each rank that is left, with gradients over 7 of 8 NICs: 8.0%; published 8.65%."""
    ring = 9.25 * (8 / 7 * (14 / 15) / (15 / 16) - 1)  # 2(p-1)/p of the buffer through 7 NICs, p = 15
    assert overhead_pct(MAIN, "adapcc") == pytest.approx(100 * (16 / 15 * (1 + ring / 100) - 1), abs=0.05)
