"""`coll`: the flags and columns of nccl-tests, simulated under failures."""

import json

import pytest

from r2cc_simai.results import COLUMNS

FOUR_GIB = 4 * 2**30


@pytest.fixture
def rows(cli):
    """Return a function: the rows of `coll --json`."""

    def call(*arguments: str) -> list[dict]:
        ended = cli("coll", "--json", *arguments)
        assert ended.code == 0
        return json.loads(ended.out)["rows"]

    return call


def by_metric(rows):
    return {(row["scenario"], row["metric"]): row for row in rows}


def test_the_keys_are_the_columns_of_the_results_table(rows):
    assert all(tuple(row) == COLUMNS for row in rows("-b", "1M"))


def test_metrics_of_a_run_that_a_failure_hits(rows):
    """The NIC dies 0.528 s into the first iteration; R2CC-AllReduce then splits two communicators off, once."""
    found = rows("-b", "4G", "--fail", "server0.mlx5_2@0.528", "--strategy", "r2cc-allreduce")
    times = [row["metric"] for row in found if row["unit"] == "s"]
    assert times == ["time", "time_first", "time_cut"]
    metric = by_metric(found)
    steady, first, cut = (metric["coll", name]["simulated"] for name in times)
    assert first == pytest.approx(steady + 2 * 0.164)
    assert cut > steady
    assert metric["coll", "time"]["overhead_pct"] == pytest.approx(37.5, abs=1)


def test_a_failure_at_the_start_is_known_and_hits_no_iteration(rows):
    found = rows("-b", "4G", "--fail", "server0.mlx5_2@0")
    assert [row["metric"] for row in found if row["unit"] == "s"] == ["time"]
    assert by_metric(found)["coll", "time"]["overhead_pct"] == pytest.approx(50, abs=0.1)


def test_bandwidths_follow_from_the_time(rows):
    """algbw = D/t and busbw = algbw 2(p-1)/p with p = 6 ranks; their overhead counts what is lost."""
    metric = by_metric(rows("-b", "4G", "--fail", "server0.mlx5_2@0"))
    time, algbw, busbw = (metric["coll", name] for name in ("time", "algbw", "busbw"))
    assert algbw["simulated"] == pytest.approx(FOUR_GIB / time["simulated"])
    assert busbw["simulated"] == pytest.approx(algbw["simulated"] * 10 / 6)
    assert algbw["overhead_pct"] == pytest.approx(time["overhead_pct"])


def test_bytes_of_every_nic_in_the_steady_iteration_and_in_the_cut_one(rows):
    """601 MiB had passed on the NIC; the backup of its connections, mlx5_0, carries the rest. 2 x 9 counters each."""
    metric = by_metric(rows("-b", "4G", "--fail", "server0.mlx5_2@bytes:601M"))
    steady = {name: row for (scenario, name), row in metric.items() if scenario == "coll" and row["unit"] == "B"}
    cut = {name: row for (scenario, name), row in metric.items() if scenario == "coll/cut"}
    assert len(steady) == len(cut) == 18
    assert cut["rx_bytes[server0.mlx5_2]"]["simulated"] == pytest.approx(601 * 2**20)
    assert steady["rx_bytes[server0.mlx5_2]"]["simulated"] == 0
    assert cut["rx_bytes[server0.mlx5_0]"]["overhead_pct"] == pytest.approx(74, abs=1)


@pytest.mark.parametrize("strategy", ["hot-repair", "balance", "r2cc-allreduce", "nccl"])
def test_no_time_is_below_the_bound_in_the_failed_state(rows, strategy):
    found = rows("-b", "1G", "--fail", "server0.mlx5_2@0.2", "--strategy", strategy)
    assert all(row["bound_gap_pct"] >= 0 for row in found if row["bound"] is not None)


def test_after_a_restart_on_spare_parts_the_bound_is_the_healthy_one(rows):
    lost = ["--fail", "server0.mlx5_2@0.2", "--fail", "server0.mlx5_3@0.2"]
    metric = by_metric(rows("-b", "1G", *lost, "--strategy", "nccl"))
    healthy = by_metric(rows("-b", "1G"))
    assert metric["coll", "time"]["bound"] == healthy["coll", "time"]["bound"]
    assert metric["coll", "time_cut"]["bound"] > healthy["coll", "time"]["bound"]


def test_ideal_hears_of_no_failure(rows):
    assert rows("-b", "1G", "--fail", "server0.mlx5_2@0", "--strategy", "ideal")[0]["overhead_pct"] == 0


def test_several_strategies_and_sizes_are_run_in_order(rows):
    found = rows("-b", "1M", "-e", "4M", "--strategy", "balance", "--strategy", "hot-repair")
    runs = [(row["strategy"], row["bytes"] // 2**20) for row in found if row["metric"] == "time"]
    assert runs == [(strategy, mib) for strategy in ("balance", "hot-repair") for mib in (1, 2, 4)]


def test_zero_latency_is_faster_and_says_so(rows):
    still, real = rows("-b", "1M", "--zero-latency")[0], rows("-b", "1M")[0]
    assert still["simulated"] < real["simulated"]
    assert still["scenario"] == "coll, zero latency"


def test_backends_agree(rows):
    flow, chunk = (rows("-b", "64M", "--backend", name)[0] for name in ("flow", "chunk"))
    assert (flow["backend"], chunk["backend"]) == ("flow", "chunk")
    assert chunk["simulated"] == pytest.approx(flow["simulated"], rel=0.02)


def test_a_captured_graph_costs_a_new_capture(rows):
    """A graph of before the failure goes on; a strategy that makes a new plan captures it, for 1.7 ms here."""
    cut = ("-b", "4G", "-G", "1", "--fail", "server0.mlx5_2@0.5")
    metric = by_metric(rows(*cut, "--strategy", "balance"))
    cost = metric["coll", "time_first"]["simulated"] - metric["coll", "time"]["simulated"]
    assert cost == pytest.approx(1.7e-3)
    assert ("coll", "time_first") not in by_metric(rows(*cut, "--strategy", "hot-repair"))


def test_the_table_has_the_columns_of_nccl_tests_with_their_units(cli):
    printed = cli("coll", "-b", "4G", "--fail", "server0.mlx5_2@0.528").out.splitlines()
    assert printed[0] == (
        "all_reduce on r7525 (3 servers, 6 ranks, 9 NICs), failures: server0.mlx5_2@0.528, backend: flow"
    )
    for heading in ("size (B)", "count", "type", "redop", "root", "time (us)", "algbw (GB/s)", "busbw (GB/s)"):
        assert heading in printed[1]
    for heading in ("ideal (us)", "overhead (%)", "bound (us)", "time_cut (us)"):
        assert heading in printed[1]
    assert printed[3].split()[:6] == ["balance", str(FOUR_GIB), str(2**30), "float", "sum", "-1"]


def test_count_follows_the_data_type(cli):
    assert cli("coll", "-b", "1M", "-d", "double").out.splitlines()[3].split()[2] == str(2**17)


def test_nic_bytes_are_printed_on_request(cli):
    assert "rx" not in cli("coll", "-b", "1M").out
    printed = cli("coll", "-b", "1M", "--nic-bytes").out
    assert "received (B)" in printed
    assert "server2.mlx5_3" in printed


def test_notes_go_to_stderr(cli):
    """A failure after the job's end, and a strategy that stood back for another."""
    ended = cli("coll", "-b", "1M", "--fail", "server0.mlx5_2@9999")
    assert (ended.code, ended.err.count("\n")) == (0, 1)
    assert ended.err.startswith("note: server0.mlx5_2 fails at 9999 s, after the job has ended")
    stood_back = cli("coll", "-b", "1M", "--fail", "server0.mlx5_2@0", "--strategy", "r2cc-allreduce", "--json")
    assert stood_back.err == "note: r2cc-allreduce falls back to balance below 16 MiB\n"
    json.loads(stood_back.out)


def test_a_single_iteration_that_is_hit_has_no_steady_time(cli, rows):
    arguments = ("-b", "4G", "-n", "1", "--fail", "server0.mlx5_2@0.5")
    assert "no iteration was free of failures" in cli("coll", *arguments).err
    assert {row["metric"] for row in rows(*arguments) if row["unit"] != "B"} == {"time_cut"}


def test_zero_bytes_and_odd_bytes_finish(rows):
    assert rows("-b", "0")[0]["bytes"] == 0
    assert rows("-b", "1000003", "--cluster", "uniformx3")[0]["bytes"] == 1_000_003


def test_sizes_go_from_nothing_through_one_element_upwards(rows):
    found = [row["bytes"] for row in rows("-b", "0", "-e", "64", "-f", "4") if row["metric"] == "time"]
    assert found == [0, 4, 16, 64]


def test_one_server_alone_has_no_bound_to_miss(rows):
    assert rows("-b", "1M", "--cluster", "h100x1")[0]["bound_gap_pct"] is None


def test_the_same_command_prints_the_same(cli):
    arguments = ("coll", "--json", "-b", "1M", "-e", "64M", "--fail", "server0.mlx5_2@0.01..0.5")
    assert cli(*arguments) == cli(*arguments)
