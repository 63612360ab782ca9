"""`coll -J`: the JSON of nccl-tests, which `compare` and other programs read."""

import json
from pathlib import Path
from typing import Any

import pytest

from r2cc_simai.measured import read_log

SIZES = ["-b", "1M", "-e", "64M", "-f", "8", "-n", "3", "-w", "1"]


def written(cli, path: Path, *options: str) -> dict[str, Any]:
    ended = cli("coll", "--cluster", "uniform", *SIZES, "-J", str(path), *options)
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize(
    ("options", "program"),
    [
        ((), "all_reduce_perf"),
        (("--strategy", "r2cc-allreduce:k=8", "--fail", "server1.nic0=0.5@0"), "all_reduce_perf"),
        (("--fail", "server0.nic0=0.5@0", "--fail", "server2.nic0=0.25@0"), "all_reduce_perf"),
        (("--collective", "all_to_all"), "alltoall_perf"),
        (("--collective", "broadcast", "-r", "2", "--fail", "server1.nic0=0.5@0"), "broadcast_perf"),
        (("-d", "half", "-o", "max", "--collective", "reduce_scatter"), "reduce_scatter_perf"),
    ],
)
def test_what_is_written_is_read_back_and_simulated_alike(cli, tmp_path, options, program):
    path = tmp_path / "run.json"
    document = written(cli, path, *options)
    assert document["args"][0] == program
    ended = cli("compare", "--json", str(path))
    assert ended.code == 0, ended.err
    assert ended.err == f"note: {path}:1: simulated by r2cc-simai, not measured\n"
    rows = json.loads(ended.out)["rows"]
    assert [row["bytes"] for row in rows] == [1 << 20, 8 << 20, 64 << 20]
    assert all(abs(row["error_pct"]) < 1e-9 for row in rows)


def test_the_keys_are_those_of_nccl_tests_and_the_numbers_those_of_the_table(cli, tmp_path):
    document = written(cli, tmp_path / "run.json")
    assert list(document) == [
        "version",
        "start_time",
        "args",
        "env",
        "nccl_version",
        "config",
        "results",
        "out_of_bounds",
        "average_bus_bandwidth",
        "errors",
        "end_time",
    ]
    table = cli("coll", "--cluster", "uniform", *SIZES, "--json")
    rows = [row for row in json.loads(table.out)["rows"] if row["metric"] in ("time", "algbw", "busbw")]
    for k, entry in enumerate(document["results"]):
        time, algbw, busbw = rows[3 * k : 3 * k + 3]
        assert entry["in_place"] == entry["out_of_place"]
        assert entry["out_of_place"]["time"] == pytest.approx(time["simulated"] * 1e6)
        assert entry["out_of_place"]["alg_bw"] == pytest.approx(algbw["simulated"] / 1e9)
        assert entry["out_of_place"]["bus_bw"] == pytest.approx(busbw["simulated"] / 1e9)
        assert (entry["size"], entry["count"], entry["root"]) == (time["bytes"], time["bytes"] // 4, "    -1")
    assert [device["hostname"] for device in document["config"]["devices"]] == [f"server{k}" for k in range(4)]


def test_several_strategies_are_a_file_each(cli, tmp_path):
    path = tmp_path / "run.json"
    strategies = ("--strategy", "balance", "--strategy", "r2cc-allreduce:k=8", "--fail", "server1.nic0=0.5@0")
    assert cli("coll", "--cluster", "uniform", *SIZES, *strategies, "-J", str(path)).code == 0
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["run.balance.json", "run.r2cc-allreduce-k-8.json"]
    assert read_log(tmp_path / names[1])[0].mode == "r2cc-allreduce:k=8"


def test_equal_runs_give_equal_files_and_none_is_written_over(cli, tmp_path):
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    written(cli, one)
    written(cli, other)
    assert one.read_bytes() == other.read_bytes()
    refused = cli("coll", "--cluster", "uniform", *SIZES, "-J", str(one))
    assert refused.code == 2
    assert refused.error == f"-J {one}: exists and is not written over; name another file"


def test_a_folder_that_is_not_there(cli, tmp_path):
    ended = cli("coll", "--cluster", "uniform", *SIZES, "-J", str(tmp_path / "none" / "run.json"))
    assert ended.code == 2
    assert "none/run.json: cannot be written: No such file" in ended.err
