"""`r2cc-simai sim`: a trace, a cluster, failures, strategies; its table, its JSON, and one line for what is wrong."""

import json
from pathlib import Path

import pytest

from r2cc_simai.cli.main import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GPT 2.7B on 16 GPUs, one small batch."""
    path = tmp_path_factory.mktemp("traces") / "gpt"
    options = ["--model", "gpt3-2.7b", "--gpus", "16", "--global-batch-size", "16", "--gpu", "H100"]
    assert run(["trace", "megatron", *options, "--output", str(path)]) == 0
    return path


def test_the_table_and_the_numbers_agree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same run as a table and as rows of the results table."""
    arguments = [
        "sim",
        "--trace",
        str(folder),
        "--cluster",
        "h100x2",
        "--fail",
        "server0.nic3@0",
        "--strategy",
        "balance",
    ]
    assert run(arguments) == 0
    table = capsys.readouterr().out
    assert run([*arguments, "--json"]) == 0
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert f"{rows['iteration']['simulated']:.6g}" in table
    assert f"+{rows['iteration']['overhead_pct']:.3f}" in table
    assert rows["tokens_per_s"]["overhead_pct"] == pytest.approx(rows["iteration"]["overhead_pct"])
    assert rows["exposed_share"]["simulated"] > rows["exposed_share"]["ideal"] > 0


def test_unfolded_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every rank simulated."""
    arguments = ["sim", "--trace", str(folder), "--cluster", "h100x2", "--fail", "server0.nic3@0", "--json"]
    results = []
    for extra in ([], ["--unfold"]):
        assert run([*arguments, *extra]) == 0
        results.append(json.loads(capsys.readouterr().out)["rows"][0]["simulated"])
    assert results[0] == pytest.approx(results[1], rel=1e-9)


def test_timelines_of_several_strategies_have_their_names(folder: Path, tmp_path: Path) -> None:
    """OUT.json becomes OUT.STRATEGY.json."""
    out = tmp_path / "out.json"
    arguments = ["sim", "--trace", str(folder), "--cluster", "h100x2", "--fail", "server0.nic3@0.01"]
    assert run([*arguments, "--strategy", "balance", "--strategy", "hot-repair", "--timeline", str(out)]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {"out.balance.json", "out.hot-repair.json"}
    assert run([*arguments, "--timeline", str(out)]) == 0
    assert json.loads(out.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--cluster", "h100x1"], 2, "the trace has ranks up to 15, h100x1 has 8 GPUs"),
        (["--cluster", "h100x2", "--fail", "server9.nic0@0"], 2, "server9"),
        (["--cluster", "h100x2", "--fail", "server0.nic3@bytes:5"], 2, "give a time in seconds"),
        (["--cluster", "h100x2", "--strategy", "balanced"], 2, "balance was meant?"),
        (["--cluster", "h100x2", "--fail", "server0@0"], 3, "server0"),
        (["--cluster", "h100x2", "--timeline", "x.json", "--timeline-rank", "16"], 2, "the trace has ranks 0 to 15"),
    ],
)
def test_what_is_wrong_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, line: str
) -> None:
    """Exit codes 2 and 3, the reason on stderr."""
    assert run(["sim", "--trace", str(folder), *arguments]) == code
    err = capsys.readouterr().err.strip()
    assert line in err
    assert "\n" not in err


def test_no_trace_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder, and one that is not there."""
    for path in (tmp_path, tmp_path / "nothing"):
        assert run(["sim", "--trace", str(path), "--cluster", "h100x2"]) == 2
        assert str(path) in capsys.readouterr().err


def test_a_truncated_trace_names_file_and_reason(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file that is read for the class of ranks has lost its end."""
    for path in folder.iterdir():
        data = path.read_bytes()
        (tmp_path / path.name).write_bytes(data[:-3] if path.name.endswith(".0.et") else data)
    assert run(["sim", "--trace", str(tmp_path), "--cluster", "h100x2"]) == 2
    assert "gpt3-2.7b.0.et" in capsys.readouterr().err
