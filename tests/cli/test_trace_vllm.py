"""`trace vllm`: the files it writes, what it prints, and what it refuses in one line."""

import json

import pytest

SERVED = ("trace", "vllm", "--model", "llama2-7b", "--gpus", "8", "--tensor-parallel-size", "2", "--iterations", "2")


@pytest.mark.parametrize(
    "options",
    [
        ("--pipeline-parallel-size", "2"),
        ("--phase", "prefill", "--batch-size", "16"),
        ("--phase", "mixed", "--num-prompts", "64"),
        ("--kv-transfer", "--prefill-gpus", "6", "--batch-size", "3"),
        ("--fold",),
    ],
    ids=lambda options: options[0],
)
def test_what_it_writes_is_valid(cli, tmp_path, options):
    assert cli(*SERVED, *options, "--output", str(tmp_path)).code == 0
    ended = cli("trace", "validate", str(tmp_path))
    assert ended.code == 0
    assert "no errors" in ended.out


def test_the_manifest_says_what_the_tokens_are(cli, tmp_path):
    """4 replicas of 64 sequences, 2 steps of one token each."""
    printed = cli(*SERVED, "--output", str(tmp_path)).out
    assert "512 tokens" in printed
    workload = json.loads((tmp_path / "llama2-7b.manifest.json").read_text())["workload"]
    assert workload["generator"] == "vllm"
    assert (workload["tokens"], workload["tokens_are"]) == (512, "generated")
    assert workload["options"]["max_model_len"] == 4096
    assert workload["compute_times"].startswith("roofline H100-SXM5-80GB")


def test_it_prints_closed_forms_that_hold(cli, tmp_path):
    printed = cli(*SERVED, "--pipeline-parallel-size", "2", "--output", str(tmp_path)).out
    equal = {line.rsplit(maxsplit=3)[0] for line in printed.splitlines() if line.endswith("equal")}
    assert equal == {
        "parameters, as published",
        "tokens, decode",
        "bytes, pp SEND",
        "bytes, tp ALL_GATHER",
        "bytes, tp ALL_REDUCE",
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--phase", "both"), "--phase both: unknown (allowed: prefill, decode, mixed)"),
        (("--gpus", "6", "--pipeline-parallel-size", "2"), "--gpus 6: a multiple of"),
        (("--model", "lama2"), "'lama2': no such model"),
        (("--iterations", "0"), "--iterations"),
        (("--gpu", "Z100"), "'Z100': no such GPU"),
        (("--batch-size", "8", "--num-prompts", "8"), "one of the two is wanted"),
        (("--kv-transfer", "--phase", "decode"), "--phase decode: with --kv-transfer"),
        (("--name", "a/b"), "--name 'a/b'"),
    ],
)
def test_what_it_refuses(cli, tmp_path, options, said):
    ended = cli(*SERVED, *options, "--output", str(tmp_path))
    assert ended.code == 2
    assert said in ended.error
    assert not list(tmp_path.iterdir())
