"""`trace rlhf`: the files it writes, what it prints, and what it refuses in one line."""

import json

import pytest

JOB = (
    *("trace", "rlhf", "--gpus", "8", "--tensor-model-parallel-size", "4", "--actor-model", "gpt3-2.7b"),
    *("--rollout-batch-size", "16", "--ppo-mini-batch-size", "8", "--micro-batch-size", "1"),
    *("--prompt-length", "64", "--response-length", "4"),
)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--pipeline-model-parallel-size", "2", "--generation-pipeline-parallel-size", "2"),
        ("--weight-sync", "broadcast", "--generation-batches", "2"),
        ("--critic-model", "llama2-7b", "--ppo-epochs", "2", "--no-overlap-grad-reduce"),
    ],
    ids=["defaults", "pipeline", "broadcast", "other-critic"],
)
def test_what_it_writes_is_valid(cli, tmp_path, options):
    made = cli(*JOB, *options, "--fold", "--output", str(tmp_path))
    assert made.code == 0
    assert "(!)" not in made.out.replace("as published", "")
    ended = cli("trace", "validate", str(tmp_path))
    assert ended.code == 0
    assert "no errors" in ended.out


def test_the_manifest_holds_all_models(cli, tmp_path):
    """Critic and reward model are like the actor unless named; tokens are those of 16 sequences of 68."""
    cli(*JOB, "--output", str(tmp_path), "--critic-model", "gpt3-7b")
    workload = json.loads((tmp_path / "rlhf-gpt3-2.7b.manifest.json").read_text())["workload"]
    names = {role: model["name"] for role, model in workload["model"].items()}
    assert names == {"actor": "gpt3-2.7b", "critic": "gpt3-7b", "reward": "gpt3-7b"}
    assert (workload["tokens"], workload["tokens_are"]) == (16 * 68, "of prompts and responses")
    assert workload["layout"]["engines"] == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--weight-sync", "mail"), "--weight-sync mail: unknown (allowed: all_gather, broadcast)"),
        (("--recompute-granularity", "half"), "--recompute-granularity half: unknown"),
        (("--ppo-mini-batch-size", "3"), "--ppo-mini-batch-size 3: does not divide --rollout-batch-size 16"),
        (("--actor-model", "mixtral-8x7b"), "--actor-model mixtral-8x7b: has experts"),
        (("--response-length", "4000"), "together at most the 2048 positions"),
        (("--response-length", "1"), "--response-length"),
        (("--generation-tensor-parallel-size", "3"), "a divisor of --tensor-model-parallel-size 4"),
    ],
)
def test_what_it_refuses(cli, tmp_path, options, said):
    ended = cli(*JOB, *options, "--output", str(tmp_path))
    assert ended.code == 2
    assert said in ended.error
    assert not list(tmp_path.iterdir())
