"""Sections on training: made of rows as a sweep of training jobs has them."""

from collections.abc import Callable, Sequence

import pytest

from r2cc_simai.results import Row, check
from r2cc_simai.results.report import training_settings
from r2cc_simai.results.report.build import build_report, report_sections
from r2cc_simai.results.report.document import Plot, Section, Table

MakeRow = Callable[..., Row]
BASE = (
    "gpt3-2.7b tp=1 pp=1 dp=16 batch=128 micro_batch=8 sequence=2048 gradients=fp32 gradient_gb=10.6 overlap=no "
    "gpu=H100-SXM5-80GB mfu_scale=0.618834 nic_gbps=262.0232"
)
HEALTHY = 314_618.0


@pytest.fixture
def trained(row: MakeRow) -> MakeRow:
    """Return a function that makes a row of throughput from an overhead in percent, published one beside it."""

    def make(scenario: str, strategy: str, overhead: float, published: float | None = None, **more: object) -> Row:
        values = {
            "workload": BASE,
            "cluster": "h100",
            "pattern": "server0.nic3@0",
            "bytes": 0,
            "metric": "tokens_per_s",
            "unit": "1/s",
            "measured": None if published is None else HEALTHY / (1 + published / 100),
            "source": "" if published is None else "the paper",
        }
        values |= {"simulated": HEALTHY / (1 + overhead / 100), "ideal": HEALTHY}
        return row(scenario=scenario, strategy=strategy, **values | more)

    return make


def lines(section: Section, caption: str) -> list[list[str]]:
    """Return a table of a section as lists of texts."""
    (found,) = (b for b in section.blocks if isinstance(b, Table) and b.caption.startswith(caption))
    return [[cell.text for cell in line] for line in found.rows]


def section(rows: Sequence[Row], slug: str) -> Section:
    return {s.slug: s for s in report_sections(rows)}[slug]


def test_settings_are_told_in_words() -> None:
    """Every setting that a result depends on, the effective rate of the NICs included."""
    assert training_settings.prose(BASE) == (
        "gpt3-2.7b, TP 1, PP 1, DP 16, batch of 128 sequences, 8 at a time, 2,048 tokens each, fp32 gradients, 10.6 GB "
        "of them on a GPU, not overlapped with the backward pass, compute times by the roofline of H100-SXM5-80GB, "
        "efficiencies × 0.619, NICs at an effective 262.0 Gb/s"
    )


def test_a_variant_is_told_by_what_differs() -> None:
    """What follows from other settings (replicas, gradient bytes) is not told."""
    other = BASE.replace("gradients=fp32 gradient_gb=10.6", "gradients=bf16 gradient_gb=5.3").replace("tp=1", "tp=2")
    assert training_settings.difference(other, BASE) == "TP 2, bf16 gradients"
    assert training_settings.difference(BASE, BASE) == "as above"


def test_h100_bars_print_every_residual_and_say_what_was_fitted(trained: MakeRow) -> None:
    """Residual = simulated - published overhead, in points; judged within 0.1 where the mechanism is the paper's."""
    rows = [
        trained("h100-training", "ideal", 0.0, 0.0),
        trained("h100-training", "hot-repair", 9.25, 4.82),
        trained("h100-training", "balance", 1.32, 1.32),
        trained("h100-training", "r2cc-allreduce:k=16", 0.75, 0.71),
        trained("h100-training", "r2cc-allreduce:k=16", 1.32, 1.24, pattern="server0.nic3@0 server1.nic3@0"),
        trained("h100-training-settings", "r2cc-allreduce", 0.89, 0.71),
    ]
    found = section(rows, "h100-training")
    told = lines(found, "Throughput and overhead")
    assert told[1] == [
        "Hot repair",
        "server0.nic3",
        "predicted",
        "300,151/s",
        "287,980/s",
        "4.82%",
        "9.25%",
        "+4.43 points",
    ]
    assert [line[2] for line in told] == ["fitted", "predicted", "fitted", "predicted", "predicted"]
    assert told[4][1] == "server0.nic3 and server1.nic3"
    assert lines(found, "The same with other settings")[0][-1] == "+0.18 points"
    assert "R2CC-AllReduce k=16 0.75% (published 0.71%)" in found.findings[0]


@pytest.mark.parametrize(
    ("scenario", "strategy", "overhead", "ok"),
    [
        ("h100-training", "r2cc-allreduce:k=16", 0.80, True),
        ("h100-training", "r2cc-allreduce:k=16", 0.82, False),
        ("h100-training", "balance", 0.60, False),
        ("h100-training", "adapcc", 8.0, None),
        ("h100-training-settings", "balance", 8.0, None),
        ("training-servers", "balance", 8.0, None),
    ],
)
def test_what_is_judged_and_what_is_shown_alone(
    trained: MakeRow, scenario: str, strategy: str, overhead: float, ok: bool | None
) -> None:
    """Within 0.1 points of 0.71% for the fitted bars and R2CC-AllReduce; the others are not judged."""
    judged = check(trained(scenario, strategy, overhead, 0.71))
    assert (None if judged is None else judged.ok) is ok


def test_judged_training_overheads_are_counted_apart(trained: MakeRow) -> None:
    found = {s.slug: s for s in report_sections([trained("h100-training", "balance", 1.32, 1.32)])}
    (said,) = (f for f in found["overview"].findings if f.startswith("Against"))
    assert said.startswith("Against the published training overheads, 1 of 1 simulated values are within tolerance.")


def test_servers_are_columns_and_other_settings_lines(trained: MakeRow) -> None:
    """The plot has a line a strategy; NCCL, which is as fast as before, is not in the finding."""
    rows = [
        trained("training-servers", strategy, overhead * n, cluster=f"a100x{n}")
        for n in (4, 64)
        for strategy, overhead in (("nccl", 0.0), ("balance", 0.01), ("adapcc", 0.1))
    ]
    other = BASE.replace("batch=128", "batch=256")
    rows.append(trained("training-servers-settings", "balance", 0.3, cluster="a100x16", workload=other))
    found = section(rows, "training-servers")
    assert lines(found, "Overhead of later iterations")[1] == ["Balance", "0.04%", "0.64%"]
    assert lines(found, "Overhead with other settings, 16") == [["batch of 256 sequences", "0.30%"]]
    assert "Balance 0.64%, AdapCC 6.40%" in found.findings[0]
    assert "NCCL" not in found.findings[0]


@pytest.mark.parametrize(("slug", "published"), [("training-175b", "54×"), ("training-rlhf", "15×")])
def test_time_lost_is_compared_with_adapcc(trained: MakeRow, slug: str, published: str) -> None:
    """Ratio = time lost by AdapCC over that of each strategy; the published one stands beside R2CC-AllReduce."""
    rows = []
    for strategy, lost in (("balance", 20.0), ("r2cc-allreduce", 10.0), ("adapcc", 540.0)):
        rows.append(trained(slug, strategy, lost / 36))
        rows.append(trained(slug, strategy, 0, metric="failure_induced", unit="s", simulated=lost))
    rows += [trained(f"{slug}-settings", s, o, workload=BASE + " bucket=9") for s, o in _THREE.items()]
    found = section(rows, slug)
    assert [line[3:] for line in lines(found, "Failure-induced time")] == [
        ["27.0×", "–"],
        ["54.0×", published],
        ["1.0×", "–"],
    ]
    assert lines(found, "Overhead of later iterations with other") == [["bucket 9", "0.50%", "0.25%", "5.00%", "20.0×"]]
    assert "54.0× less than AdapCC" in found.findings[0]


_THREE = {"balance": 0.5, "r2cc-allreduce": 0.25, "adapcc": 5.0}


def test_draws_are_summed_up_by_number_of_failures(trained: MakeRow) -> None:
    """Mean of 1 and 3 = 2, standard error sqrt(2)/sqrt(2) = 1, largest 3."""
    patterns = {"server0.nic0@0": [1.5], "server0.nic0@0 server1.nic1@0": [1.0], "server0.nic0@0 server2.nic1@0": [3.0]}
    rows = [
        trained("training-512", "r2cc-allreduce", overhead, pattern=pattern)
        for pattern, overheads in patterns.items()
        for overhead in overheads
    ]
    told = lines(section(rows, "training-512"), "Overhead: mean")
    assert told == [
        ["R2CC-AllReduce k=4", "1", "1", "1.50%", "1.50%", "1.5%"],
        ["R2CC-AllReduce k=4", "2", "2", "2.00 ± 1.00%", "3.00%", "–"],
    ]


def test_a_day_shows_shares_and_the_course_of_one_day(row: MakeRow) -> None:
    """96% of a day are done: 4% of 86,400 s = 57.6 min are lost."""
    common = {"scenario": "training-day", "workload": f"{BASE} checkpoint_min=30 days=100", "pattern": "0.77 failures"}
    rows = []
    for strategy, share in (("nccl", 0.96), ("balance", 0.999)):
        own = {**common, "strategy": strategy, "bytes": 0, "unit": "1", "ideal": None}
        rows += [
            row(**own, metric="effective_time", simulated=share),
            row(**own, metric="effective_time_stderr", simulated=0.001),
            row(**own, metric="effective_time_least", simulated=share - 0.1),
            row(**{**own, "unit": "h"}, metric="failure[0]", simulated=2.0),
            row(**{**own, "ideal": 0.0}, metric="tokens[0.000000]", simulated=0.0),
            row(**{**own, "ideal": 1e12}, metric="tokens[24.000000]", simulated=share * 1e12),
        ]
    found = section(rows, "training-day")
    assert lines(found, "Work done")[0] == ["NCCL", "96.00%", "57.6 min", "86.00%"]
    (plot,) = (b for b in found.blocks if isinstance(b, Plot))
    assert "most failures (1, dotted)" in plot.caption


def test_the_report_of_a_training_job_of_ones_own(tmp_path, trained: MakeRow) -> None:  # type: ignore[no-untyped-def]
    """Any other scenario has the generic section, without sizes of buffers."""
    paths = build_report([trained("my-job", "balance", 2.0)], tmp_path, "t")
    text = paths.markdown.read_text()
    assert "## my-job" in text
    assert "Tokens per second" in text
    assert "0 B" not in text
