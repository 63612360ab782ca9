"""Training jobs in scenario files: which cases they spell out, and what is said of a mistake."""

from pathlib import Path

import pytest
import yaml

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.runners.scenario import load_scenario
from r2cc_simai.runners.training_scenario import TrainingBlock, failures_of, training_cases

SMALL: dict[str, object] = {
    "scenario": "small",
    "megatron": {"model": "gpt3-2.7b", "micro_batch_size": 1, "global_batch_size": 16},
    "gpu": "H100",
    "clusters": ["h100"],
    "failures": ["server0.nic3@0"],
    "strategies": ["balance", "adapcc"],
}


def block(**change: object) -> TrainingBlock:
    """The small job, with changes; None leaves a key out."""
    return TrainingBlock.model_validate({k: v for k, v in (SMALL | change).items() if v is not None})


def scenario_file(folder: Path, **change: object) -> str:
    path = folder / "own.yml"
    content = {k: v for k, v in (SMALL | change).items() if v is not None}
    path.write_text(yaml.safe_dump({"title": "t", "training": [content]}))
    return str(path)


def test_cases_are_all_combinations_in_the_order_of_the_file() -> None:
    """2 clusters x 2 failures x 2 strategies, each with a key of its own."""
    cases = list(training_cases(0, block(clusters=["h100", "h100x4"], failures=["none", "server0.nic3@0"])))
    assert [(c.cluster, c.failure, c.strategy) for c in cases[:3]] == [
        ("h100", "none", "balance"),
        ("h100", "none", "adapcc"),
        ("h100", "server0.nic3@0", "balance"),
    ]
    assert len({case.key for case in cases}) == 8


def test_drawn_failures_are_distinct_nics_and_the_same_for_all_strategies() -> None:
    """3 draws of 2 and of 5 NICs of 32: each name stands once in its draw, no two draws are alike."""
    drawn = {"nics": [2, 5], "draws": 3, "seed": 1}
    cases = list(training_cases(0, block(clusters=["h100x4"], failures=None, drawn=drawn)))
    by_strategy = [[case.failure for case in cases if case.strategy == s] for s in ("balance", "adapcc")]
    assert by_strategy[0] == by_strategy[1]
    sizes = [len(set(failure.split())) for failure in by_strategy[0]]
    assert sizes == [2, 2, 2, 5, 5, 5]
    assert len(set(by_strategy[0])) == 6
    for failure in by_strategy[0]:
        assert len(parse_failures(failures_of(failure), load_cluster("h100x4")).events) == len(failure.split())


def test_a_seed_gives_the_same_draws_again_and_another_one_others() -> None:
    one, same, other = (
        [c.failure for c in training_cases(0, block(failures=None, drawn={"nics": [3], "draws": 4, "seed": seed}))]
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_there_are_no_more_draws_than_ways_to_draw() -> None:
    """One NIC of 16 can fail in 16 ways; 50 draws are asked for."""
    cases = list(training_cases(0, block(failures=None, strategies=["balance"], drawn={"nics": [1], "draws": 50})))
    assert len({case.failure for case in cases}) == len(cases) == 16


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"megatron": None}, "training.0: write one of megatron, rlhf and vllm"),
        ({"rlhf": {}}, "training.0: write one of megatron, rlhf and vllm"),
        (
            {"megatron": None, "vllm": {"model": "llama2-7b", "tensor_parallel_size": 3}},
            r"training.0 \(small\): vllm: --gpus 16: a multiple of tensor",
        ),
        ({"megatron": None, "vllm": {"model": "llama2-7b", "batch": 4}}, "vllm: batch: unknown key"),
        ({"failures": None}, "write failures"),
        ({"day": {"hours": 24}}, "day draws the failures"),
        ({"gpus": 16}, "training.0.gpus: unknown key"),
        ({"gpu": "H1000"}, r"training.0 \(small\): gpu: .*no such GPU"),
        ({"clusters": ["h101"]}, r"training.0 \(small\): clusters: .*no such cluster"),
        ({"strategies": ["balanced"]}, r"training.0 \(small\): strategies: .*balance was meant"),
        ({"failures": ["server9.nic0@0"]}, r"training.0 \(small\): failures: .*no such component"),
        ({"megatron": {"model": "gpt3-2.8b"}}, r"training.0 \(small\): megatron: .*gpt3-2.8b.*no such model"),
        ({"megatron": {"model": "gpt3-2.7b", "gpus": 8}}, "megatron: gpus: unknown key; the job takes the whole"),
        (
            {"megatron": {"model": "gpt3-2.7b", "tensor_parallel_size": 8}},
            "megatron: tensor_parallel_size: unknown key",
        ),
        (
            {"megatron": {"model": "gpt3-2.7b", "tensor_model_parallel_size": 3}},
            "megatron: --gpus 16: a multiple of tensor",
        ),
        ({"failures": None, "drawn": {"nics": [17]}}, "drawn.nics: at most the 16 NICs of h100"),
        ({"strategies": ["balance", "balance"]}, "stands twice"),
    ],
)
def test_a_mistake_is_one_line_with_file_block_and_key(tmp_path: Path, change: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        load_scenario(scenario_file(tmp_path, **change))
    assert "own.yml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_scenario_needs_a_block_of_either_kind(tmp_path: Path) -> None:
    path = tmp_path / "empty.yml"
    path.write_text("title: t\n")
    with pytest.raises(InputError, match="a block is wanted under blocks or under training"):
        load_scenario(str(path))


def test_the_shipped_scenario_has_what_the_report_shows() -> None:
    """Every training section of the report has its scenario."""
    assert {job.scenario for job in load_scenario("paper")[1].training} >= {
        "h100-training",
        "training-servers",
        "training-175b",
        "training-rlhf",
        "training-512",
        "training-day",
    }
