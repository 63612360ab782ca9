"""`trace megatron`: the files it writes, what it prints, and what it refuses in one line."""

import json

import pytest

JOB = (
    *("trace", "megatron", "--model", "gpt3-2.7b", "--gpus", "8", "--tensor-model-parallel-size", "2"),
    *("--pipeline-model-parallel-size", "2", "--global-batch-size", "4"),
)


def manifest(folder, name="gpt3-2.7b"):
    """What the generator wrote of its workload."""
    return json.loads((folder / f"{name}.manifest.json").read_text())["workload"]


def test_it_writes_a_file_for_every_rank(cli, tmp_path):
    ended = cli(*JOB, "--output", str(tmp_path / "made"))
    assert ended.code == 0
    files = {path.name for path in (tmp_path / "made").iterdir()}
    assert files == {
        "gpt3-2.7b.groups.json",
        "gpt3-2.7b.manifest.json",
        *(f"gpt3-2.7b.{rank}.et" for rank in range(8)),
    }


def test_it_prints_the_closed_forms_and_the_layout(cli, tmp_path):
    """8 GPUs = tensor 2 x pipeline 2 x 2 replicas, 4 sequences of 2,048."""
    printed = cli(*JOB, "--output", str(tmp_path)).out
    assert "ranks 8, tp 2, cp 1, dp 2, pp 2" in printed
    assert "8,192 tokens" in printed
    lines = {line.rsplit(maxsplit=3)[0]: line.split()[-1] for line in printed.splitlines() if line.endswith("equal")}
    assert lines == {
        "parameters, padded vocabulary": "equal",
        "bytes, dp ALL_REDUCE": "equal",
        "bytes, embedding ALL_REDUCE": "equal",
        "bytes, model ALL_REDUCE": "equal",
        "bytes, pp SEND": "equal",
        "bytes, tp ALL_REDUCE": "equal",
    }


def test_the_trace_is_valid(cli, tmp_path):
    cli(*JOB, "--output", str(tmp_path))
    ended = cli("trace", "validate", str(tmp_path))
    assert ended.code == 0
    assert "8 ranks in 2 classes" in ended.out


def test_folded_it_writes_a_file_for_every_stage(cli, tmp_path):
    assert cli(*JOB, "--output", str(tmp_path), "--fold", "--name", "small").code == 0
    traces = sorted(path.name for path in tmp_path.glob("*.et"))
    assert traces == ["small.class0.et", "small.class1.et"]


def test_the_same_options_give_the_same_bytes(cli, tmp_path):
    for name in ("one", "two"):
        cli(*JOB, "--output", str(tmp_path / name))
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_options_end_up_in_the_manifest(cli, tmp_path):
    flags = ("--sequence-parallel", "--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather")
    values = ("--grad-reduce-in-bf16", "--recompute-granularity", "full", "--seq-length", "1024")
    assert cli(*JOB, *flags, *values, "--output", str(tmp_path)).code == 0
    options = manifest(tmp_path)["options"]
    assert all(options[flag.removeprefix("--").replace("-", "_")] is True for flag in flags)
    assert options["accumulate_allreduce_grads_in_fp32"] is False
    assert (options["recompute_granularity"], options["seq_length"]) == ("full", 1024)


def test_the_gpu_and_the_scale_of_the_compute_times_are_recorded(cli, tmp_path):
    cli(*JOB, "--gpu", "H100-SXM5-80GB", "--mfu-scale", "0.5", "--output", str(tmp_path))
    assert "roofline H100-SXM5-80GB" in manifest(tmp_path)["compute_times"]


def test_measured_times_come_from_a_table(cli, tmp_path):
    """One row: the MLP forward takes 123 us; the rest is from the roofline."""
    table = tmp_path / "times.csv"
    row = "gpt3-2.7b,A100-SXM4-80GB,2,2048,mlp,forward,123"
    table.write_text(f"model,gpu,tp,tokens,block,pass,time_us\n{row}\n", encoding="utf-8")
    made = tmp_path / "made"
    ended = cli(*JOB, "--compute-times", str(table), "--compute-fallback", "--output", str(made))
    assert ended.code == 0
    assert "times.csv" in manifest(made)["compute_times"]
    assert cli("trace", "convert", str(made), "--rank", "0", "--output", str(tmp_path / "all.json")).code == 0
    (rank,) = json.loads((tmp_path / "all.json").read_text())["files"]
    nodes = [node for node in rank["nodes"] if node["name"].endswith("forward.mlp")]
    assert len(nodes) == 16 * 2  # layers of the stage, micro-batches
    assert {node["attributes"]["duration_nanos"] for node in nodes} == {123_000}


def test_a_published_count_that_contradicts_its_shape_is_shown_and_not_fatal(cli, tmp_path):
    """GPT-3 13B: 40 heads of 128 make 12.85 billion, 1.1% below what the paper prints."""
    options = ("--model", "gpt3-13b", "--gpus", "2", "--global-batch-size", "2", "--seq-length", "128", "--fold")
    ended = cli("trace", "megatron", *options, "--output", str(tmp_path))
    assert ended.code == 0
    assert "-1.1" in ended.out
    assert "(!)" in ended.out


def test_a_trace_of_the_same_name_is_kept_unless_forced(cli, tmp_path):
    assert cli(*JOB, "--output", str(tmp_path)).code == 0
    again = cli(*JOB, "--output", str(tmp_path))
    assert again.code == 2
    assert "--force" in again.error
    assert cli(*JOB, "--output", str(tmp_path), "--force").code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--model", "gpt3-2.7"), "no such model; gpt3-2.7b"),
        (("--gpus", "6"), "--gpus 6: a multiple of tensor x pipeline x context parallel size = 2 x 2 x 1 = 4"),
        (("--gpus", "0"), "--gpus"),
        (("--tensor-model-parallel-size", "3", "--gpus", "6"), "does not divide the 32 attention heads"),
        (("--recompute-granularity", "some"), "--recompute-granularity some: unknown (allowed: none, selective, full)"),
        (("--cp-comm-type", "a2a"), "--cp-comm-type a2a: unknown (allowed: p2p, all_gather)"),
        (("--gpu", "A1000"), "A1000"),
        (("--compute", "guess"), "--compute guess: unknown (allowed: roofline, csv, aiconfigurator)"),
        (("--compute", "csv"), "--compute-times"),
        (
            ("--compute", "roofline", "--compute-times", "x.csv"),
            "--compute-times x.csv: is read with --compute csv only",
        ),
        (("--mfu-scale", "0"), "--mfu-scale 0: a number above 0 is wanted"),
        (("--name", "a/b"), "--name 'a/b': letters, digits and . _ + - are allowed"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(cli, tmp_path, options, said):
    ended = cli(*JOB, "--output", str(tmp_path / "made"), *options)
    assert ended.code == 2
    assert said in ended.error
    assert not (tmp_path / "made").exists()


def test_an_output_that_is_a_file_is_refused(cli, tmp_path):
    (tmp_path / "file").write_text("")
    ended = cli(*JOB, "--output", str(tmp_path / "file"))
    assert ended.code == 2
    assert "file" in ended.error
