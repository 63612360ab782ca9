"""`real parse`: measured jobs beside healthy and simulated ones, as rows."""

import json

import pytest

from r2cc_simai.results import make_row, read_rows
from r2cc_simai.results.files import write_csv

LINE = (
    " [2031-02-03 04:05:06] iteration {k:8d}/      20 | consumed samples: {s:12d} | elapsed time per iteration (ms): "
    "{ms:.1f} | global batch size:    64 | lm loss: 1.04E+01 |\n"
)


def log(path, times_ms, first=1):
    path.write_text("".join(LINE.format(k=k, s=64 * k, ms=ms) for k, ms in enumerate(times_ms, start=first)))
    return str(path)


@pytest.fixture
def logs(tmp_path):
    """A healthy log of 2 s an iteration and a degraded one of 2.02 s, each with a slow first line."""
    return log(tmp_path / "slow.log", [9000] + [2020] * 5), log(tmp_path / "well.log", [9000] + [2000] * 5)


def test_a_degraded_log_beside_a_healthy_one(cli, logs, tmp_path):
    slow, well = logs
    output = tmp_path / "rows.csv"
    ended = cli("real", "parse", slow, "--healthy", well, "--strategy", "balance", "--output", str(output))
    assert ended.code == 0
    assert "+1.00 %" in ended.out
    assert f"note: {slow}:6: the log ends at iteration 6 of 20" in ended.err
    rows = {row.metric: row for row in read_rows(output)}
    assert rows["iteration"].measured == 2.02
    assert rows["overhead[iteration]"].measured == pytest.approx(1.0)
    assert rows["overhead[iteration]"].strategy == "balance"


def test_one_log_before_and_after_its_failure(cli, tmp_path):
    path = log(tmp_path / "train.log", [2000] * 10 + [5000] + [2100] * 9)
    windows = ("--iterations", "12..", "--healthy", path, "--healthy-iterations", "1..10", "--json")
    rows = {row["metric"]: row for row in json.loads(cli("real", "parse", path, *windows).out)["rows"]}
    assert rows["overhead[iteration]"]["measured"] == pytest.approx(5.0)


def test_simulated_rows_beside(cli, logs, tmp_path):
    row = make_row(
        scenario="sim",
        cluster="h100x2",
        workload="gpt",
        pattern="server0.nic0@0",
        strategy="balance",
        backend="flow",
        bytes=0,
        metric="iteration",
        unit="s",
        simulated=2.04,
        ideal=2.0,
    )
    write_csv([row], tmp_path / "run.csv")
    slow, well = logs
    ended = cli("real", "parse", slow, "--healthy", well, "--simulated", str(tmp_path / "run.csv"), "--json")
    rows = {one["metric"]: one for one in json.loads(ended.out)["rows"]}
    assert rows["iteration"]["error_pct"] == pytest.approx(100 * (2.04 / 2.02 - 1))
    assert rows["overhead[iteration]"]["simulated"] == pytest.approx(2.0)


def test_several_logs_are_repetitions(cli, logs):
    ended = cli("real", "parse", *logs, "--json")
    assert [row["source"].split("; ")[1] for row in json.loads(ended.out)["rows"]] == [
        "repetition 1 of 2",
        "repetition 2 of 2",
    ]


BAD = {
    "no such log": (["nowhere.log"], "nowhere.log: cannot be read"),
    "a negative skip": (["{slow}", "--skip", "-1"], "--skip -1"),
    "a window that is none": (["{slow}", "--iterations", "5"], "FIRST..LAST"),
    "a window backwards": (["{slow}", "--iterations", "9..5"], "FIRST..LAST"),
    "no run beside": (["{slow}", "--simulated", "nowhere"], "nowhere: no such file"),
    "an output that cannot be": (["{slow}", "--output", "/nowhere/rows.csv"], "/nowhere/rows.csv: cannot be written"),
}


@pytest.mark.parametrize(("arguments", "named"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line(cli, logs, arguments, named):
    ended = cli("real", "parse", *(one.format(slow=logs[0]) for one in arguments))
    assert ended.code == 2
    assert named in ended.error
