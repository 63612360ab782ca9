"""`baseline update` and `baseline check`: what they print and write, and their exit codes."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from r2cc_simai.results import Row, RunFolder, error_row, make_row
from r2cc_simai.results.files import write_csv

pytestmark = pytest.mark.usefixtures("here")

STRATEGIES = ("balance", "hot-repair", "r2cc-allreduce:k=128")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Return times of three strategies on three clusters."""
    return [
        make_row(
            scenario="figure7",
            cluster=cluster,
            workload="all_reduce",
            pattern="server0.nic0=0.5@0",
            strategy=strategy,
            backend="flow",
            bytes=1 << 30,
            metric="time",
            unit="s",
            simulated=0.2 + 0.1 * i,
            ideal=0.2,
            measured=0.4,
            source="closed form",
        )
        for cluster in ("uniformx4", "uniformx8", "uniformx16")
        for i, strategy in enumerate(STRATEGIES)
    ]


@pytest.fixture
def here(tmp_path, monkeypatch, rows) -> Path:
    """Return the current folder, with a results table `run.csv` and one, `slow.csv`, in which balance is 2% slower."""
    monkeypatch.chdir(tmp_path)
    write_csv(rows, Path("run.csv"))
    slow = [replace(r, simulated=1.02 * r.simulated, overhead_pct=2.0) if r.strategy == "balance" else r for r in rows]
    write_csv(slow, Path("slow.csv"))
    return tmp_path


def test_a_run_is_kept_and_found_unchanged(cli):
    assert cli("baseline", "update", "run.csv", "--name", "own").out == "9 numbers in reports/baselines/own.csv\n"
    ended = cli("baseline", "check", "run.csv", "--name", "own")
    assert (ended.code, ended.out, ended.err) == (0, "reports/baselines/own.csv: 9 numbers compared: none moved\n", "")


def test_a_move_is_exit_code_1_and_one_line_that_names_it(cli):
    cli("baseline", "update", "run.csv", "--baseline", "kept.csv")
    ended = cli("baseline", "check", "slow.csv", "--baseline", "kept.csv")
    assert ended.code == 1
    assert ended.err == (
        "error: kept: balance: 3 of 3 numbers moved, +2.00%; the largest: figure7, uniformx16, all_reduce, "
        "server0.nic0=0.5@0, balance, flow, 1 GiB, time: 0.2 to 0.204 s (+2.00%), overhead +0.00 to +2.00%, measured "
        "or published 0.4 s (closed form); if that is meant: r2cc-simai baseline update slow.csv --baseline kept.csv\n"
    )
    assert "hot-repair" not in ended.out + ended.err
    assert ended.out.count("0.204 s") == 4  # the line of the strategy, and a line of the table for each


def test_tolerances_of_ones_own(cli):
    cli("baseline", "update", "run.csv", "--baseline", "kept.csv")
    Path("loose.yml").write_text("default: {value_pct: 5, overhead_points: 5}\n")
    assert cli("baseline", "check", "slow.csv", "--baseline", "kept.csv", "--tolerances", "loose.yml").code == 0
    Path("loose.yml").rename("tolerances.yml")
    assert cli("baseline", "check", "slow.csv", "--baseline", "kept.csv").code == 0


def test_json_lists_all_findings(cli):
    cli("baseline", "update", "run.csv", "--name", "own")
    ended = cli("baseline", "check", "slow.csv", "--name", "own", "--json")
    said = json.loads(ended.out)
    assert ended.code == 1
    assert (said["baseline"], said["ok"]) == ("own", False)
    assert said["compared"] == {"balance": 3, "hot-repair": 3, "r2cc-allreduce": 3}
    assert [f["strategy"] for f in said["findings"]] == ["balance"] * 3
    assert said["findings"][0]["before"] == {"value": 0.2, "overhead_pct": 0.0, "seeds": ""}
    assert said["findings"][0]["change_pct"] == pytest.approx(2.0)


def test_markdown_and_junit_are_written_also_where_the_check_fails(cli):
    cli("baseline", "update", "run.csv", "--name", "own")
    cli("baseline", "check", "slow.csv", "--name", "own", "--markdown", "summary.md", "--junit", "junit.xml")
    assert Path("summary.md").read_text().startswith("### Overhead numbers against baseline `own`: failed\n")
    assert ET.parse("junit.xml").getroot().get("failures") == "1"


def test_other_metrics_are_kept_on_demand(cli, rows):
    write_csv([*rows, replace(rows[0], metric="tx_bytes[nic0]", unit="B")], Path("run.csv"))
    ended = cli("baseline", "update", "run.csv", "--baseline", "bytes.csv", "--metric", "tx_bytes*")
    assert ended.out == "1 numbers in bytes.csv\n"
    ended = cli("baseline", "check", "run.csv", "--baseline", "bytes.csv")
    assert ended.out == "bytes.csv: 1 number compared: none moved\n"


def test_a_case_that_fails_is_named(cli, rows):
    cli("baseline", "update", "run.csv", "--name", "own")
    first = rows[0]
    failed = error_row(
        scenario=first.scenario,
        cluster=first.cluster,
        workload=first.workload,
        pattern=first.pattern,
        strategy=first.strategy,
        backend=first.backend,
        bytes=first.bytes,
        error="no NIC is left",
    )
    write_csv([failed, *rows[1:]], Path("run.csv"))
    ended = cli("baseline", "check", "run.csv", "--name", "own")
    assert ended.code == 1
    assert "own: 1 failed, the first: figure7, uniformx4, " in ended.err
    assert "(no NIC is left)" in ended.err
    ended = cli("baseline", "update", "run.csv", "--name", "own")
    assert ended.out.endswith("; 1 cases failed, and are expected to from now on\n")


BAD_INPUT = {
    "a run that is not there": (["check", "nowhere", "--baseline", "kept.csv"], "nowhere"),
    "a baseline that is not there": (["check", "run.csv", "--name", "papr"], "no reports/baselines/papr.csv"),
    "a baseline file that is not there": (["check", "run.csv", "--baseline", "no.csv"], "baseline update makes one"),
    "a results table as a baseline": (["check", "run.csv", "--baseline", "run.csv"], "run.csv:1: unknown header"),
    "a run of another scenario": (["check", "other.csv", "--baseline", "kept.csv"], "only 0 of the baseline's 9"),
    "a name that is a path": (["update", "run.csv", "--name", "../x"], "--baseline"),
    "no numbers": (["update", "run.csv", "--name", "own", "--metric", "speed"], "no numbers of the watched metrics"),
    "a sweep that is not finished": (["update", "unfinished", "--name", "own"], "come to its end"),
    "a folder as a baseline": (["update", "run.csv", "--baseline", "."], "a file that can be written"),
    "a summary that cannot be written": (
        ["check", "run.csv", "--baseline", "kept.csv", "--markdown", "no/x.md"],
        "no/x.md",
    ),
    "tolerances that are none": (
        ["check", "run.csv", "--baseline", "kept.csv", "--tolerances", "run.csv"],
        "run.csv",
    ),
}


@pytest.mark.parametrize(("arguments", "named"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_one_line_and_exit_code_2(cli, rows, arguments, named):
    cli("baseline", "update", "run.csv", "--baseline", "kept.csv")
    write_csv([replace(row, scenario="another") for row in rows], Path("other.csv"))
    RunFolder(Path("unfinished"), {"name": "x"}).append("a case", rows, 0.1)
    ended = cli("baseline", *arguments)
    assert ended.code == 2
    assert named in ended.error
