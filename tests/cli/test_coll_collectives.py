"""`coll --collective`: every collective of nccl-tests with its own columns, bandwidths and refusals."""

import json

import pytest

from r2cc_simai.collectives.operations import OPERATIONS

# A one-way send is none of nccl-tests', and leaves all NICs but one idle.
OPS = pytest.mark.parametrize("op", [op for op in OPERATIONS if op != "send"])


@OPS
def test_every_collective_has_its_rows(op, cli):
    """h100, a dead NIC: no time below the bound, busbw = algbw times the factor for 16 ranks."""
    printed = cli("coll", "--collective", op, "--cluster", "h100", "-b", "64M", "--fail", "server0.nic3@0", "--json")
    rows = {row["metric"]: row for row in json.loads(printed.out)["rows"]}
    assert rows["time"]["workload"] == op
    assert rows["time"]["simulated"] >= rows["time"]["bound"] > 0
    assert rows["time"]["overhead_pct"] > 5
    factor = OPERATIONS[op].bus_factor(16)
    assert rows["busbw"]["simulated"] == pytest.approx(factor * rows["algbw"]["simulated"])


@pytest.mark.parametrize(
    ("op", "count", "redop", "root"),
    [
        ("all_reduce", 2**28, "sum", "-1"),
        ("all_gather", 2**24, "none", "-1"),
        ("reduce_scatter", 2**24, "sum", "-1"),
        ("broadcast", 2**28, "none", "5"),
        ("reduce", 2**28, "sum", "5"),
        ("all_to_all", 2**24, "none", "-1"),
        ("send_recv", 2**28, "none", "-1"),
    ],
)
def test_the_columns_are_those_of_nccl_tests(op, count, redop, root, cli):
    """1 GiB over 16 ranks: the count of a rank, the reduction and the root where there are such."""
    printed = cli("coll", "--collective", op, "--cluster", "h100", "-b", "1G", "-r", "5").out.splitlines()
    assert printed[0].startswith(f"{op} on h100")
    assert printed[3].split()[1:6] == [str(2**30), str(count), "float", redop, root]


def test_the_names_of_nccl_tests_mean_the_same(cli):
    for alias, name in (("alltoall", "all_to_all"), ("sendrecv", "send_recv")):
        outs = [cli("coll", "--collective", one, "-b", "1M").out for one in (alias, name)]
        assert outs[0] == outs[1]


@OPS
def test_a_cut_in_mid_collective_is_followed_by_a_new_plan(op, cli):
    """The iteration that is hit waits for the detection; the next one runs on what is left."""
    fail = ("--fail", "server0.nic3@0.001", "-n", "12")
    printed = cli("coll", "--collective", op, "--cluster", "h100", "-b", "1G", *fail, "--json")
    rows = {row["metric"]: row["simulated"] for row in json.loads(printed.out)["rows"]}
    assert rows["time_cut"] > rows["time"]
