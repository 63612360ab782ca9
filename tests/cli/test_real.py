"""`real run nccl-tests` and `real parse` end to end, against a `mpirun` that replays output in nccl-tests' form."""

import json
import sys
import time
from pathlib import Path

import pytest

from r2cc_simai.measured import read_log
from r2cc_simai.results import read_rows

MIB = 1 << 20
HEALTHY_US = {512 * MIB: 254_000, 1024 * MIB: 509_000, 2048 * MIB: 1_018_000}
SIZES = tuple(HEALTHY_US)
HEAD = """# nccl-tests version 2.20.0 (0000000) nccl-headers=22304 nccl-library=22304
# Collective test starting: all_reduce_perf
#
# Using devices
"""
COLUMNS = """NCCL version 2.23.4+cuda12.2
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
"""
FOOT = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 3.5\n#\n"
STUB = """#!{python}
import json, sys, time
if "--version" in sys.argv:
    print("mpirun (Open MPI) 4.1.6")
    sys.exit(0)
for delay, text in json.load(open({play!r})):
    time.sleep(delay)
    sys.stdout.write(text)
    sys.stdout.flush()
sys.exit({code})
"""


def row(size, factor=1.0, wrong=0):
    """A row whose time is `factor` times the healthy one; both columns alike."""
    time_us = factor * HEALTHY_US[size]
    half = f"{time_us:10.0f} {size / time_us / 1e3:6.2f} {size / time_us / 600:6.2f} {wrong}"
    return f"{size:12d} {size // 4:12d} float sum -1 {half} {half}\n"


def head():
    ranks = [
        f"#  Rank  {r} Group  0 Pid  10{r} on  node-{r // 2 + 1} device  {r % 2} [0000:21:00] GPU\n" for r in range(6)
    ]
    return HEAD + "".join(ranks) + COLUMNS


class Bench:
    """A folder with a hosts file and a stub of mpirun."""

    def __init__(self, folder: Path, cli):
        self.folder = folder
        self.out = folder / "out"
        self.hosts = folder / "hosts"
        self.hosts.write_text("node-1 slots=2\nnode-2 slots=2\nnode-3 slots=2\n")
        self._cli = cli

    def run(self, output, *options, code=0):
        """Runs against a stub that writes `output`, texts or (delay in s, text), and ends with `code`."""
        (self.folder / "play.json").write_text(
            json.dumps([one if isinstance(one, tuple) else (0, one) for one in output])
        )
        stub = self.folder / "mpirun"
        stub.write_text(STUB.format(python=sys.executable, play=str(self.folder / "play.json"), code=code))
        stub.chmod(0o755)
        return self.command("--launcher", str(stub), "--output", str(self.out), *options)

    def command(self, *options):
        sizes = ("-b", "512M", "-e", "2G", "--nics", "mlx5_0,mlx5_2,mlx5_3")
        return self._cli("real", "run", "nccl-tests", "--hosts", str(self.hosts), *sizes, *options)

    def rows(self):
        return read_rows(self.out / "results.csv")

    def record(self):
        return json.loads((self.out / "run1.json").read_text())


@pytest.fixture
def bench(tmp_path, cli):
    return Bench(tmp_path, cli)


LOST = ("--mode", "balance", "--failed-node", "0", "--failed-nic", "mlx5_2")


def test_dry_run_prints_the_exact_command_and_starts_nothing(bench):
    hook = ("--fail-hook", "ssh switch drop mlx5_2", "--fail-at", "2s", "--repair-hook", "ssh switch pass mlx5_2")
    ended = bench.command("--output", str(bench.out), "--ib-timeout", "14", *LOST, *hook, "--dry-run")
    assert ended.code == 0
    assert ended.out == (
        "mpirun --host node-1:2,node-2:2,node-3:2 -np 6 --map-by slot --tag-output "
        "-x NCCL_IB_HCA=mlx5_0,mlx5_2,mlx5_3 -x NCCL_IB_TIMEOUT=14 "
        "-x R2CC_MODE=2 -x R2CC_FAILED_NODE=0 -x R2CC_FAILED_HCA=mlx5_2 "
        "all_reduce_perf -b 512M -e 2G -f 2 -n 20 -w 5 -d float -o sum -g 1\n"
        f"# one run of at most 600 s; output to {bench.out}/run<k>.log, rows to results.csv\n"
        "# 2 s after the start: /bin/sh -c 'ssh switch drop mlx5_2', at most 30 s\n"
        "# after that run, however it ends: /bin/sh -c 'ssh switch pass mlx5_2'\n"
    )
    assert not bench.out.exists()


def test_a_complete_run_is_shown_stored_and_compared(bench):
    printed = head() + "".join(map(row, SIZES)) + FOOT
    ended = bench.run([printed])
    assert ended.code == 0, ended.err
    assert printed in ended.out
    assert (bench.out / "run1.log").read_text().count("\n") == printed.count("\n") + 3
    rows = bench.rows()
    assert [(r.bytes, r.strategy, r.cluster, r.measured) for r in rows] == [
        (size, "nccl", "r7525", HEALTHY_US[size] / 1e6) for size in SIZES
    ]
    assert all(abs(r.error_pct) < 1 for r in rows)
    assert rows[0].source.startswith(f"{bench.out}/run1.log:")
    assert all(part in rows[0].source for part in ("repetition 1 of 1", "Linux", "NCCL 2.23.4", "nccl-tests 2.20.0"))


def test_the_record_says_where_with_what_and_how(bench):
    bench.run([head() + row(SIZES[0]) + FOOT], "--ib-retries", "3")
    record = bench.record()
    assert record["environment"]["NCCL_IB_RETRY_CNT"] == "3"
    assert record["hosts"] == ["node-1", "node-2", "node-3"]
    assert record["versions"]["mpirun"] == "mpirun (Open MPI) 4.1.6"
    assert (record["exit_codes"], record["stopped"], record["repetition"]) == ([0], "", 1)
    assert record["commands"][0][1:3] == ["--host", "node-1:2,node-2:2,node-3:2"]
    assert record["kernel"]
    assert record["host"]


def test_repetitions_are_runs_of_their_own(bench):
    ended = bench.run([head() + row(SIZES[0]) + FOOT], "--repetitions", "3")
    assert ended.code == 0
    assert [r.source.split("; ")[1].split(",")[0] for r in bench.rows()] == [f"repetition {k} of 3" for k in (1, 2, 3)]


def test_a_time_outside_its_tolerance_is_a_mismatch(bench):
    ended = bench.run([head() + row(SIZES[0], 1.2) + FOOT])
    assert ended.code == 1
    assert "NO" in ended.out


def test_json_goes_to_stdout_and_the_run_to_stderr(bench):
    ended = bench.run([head() + row(SIZES[0]) + FOOT], "--json")
    assert [r["bytes"] for r in json.loads(ended.out)["rows"]] == [SIZES[0]]
    assert "NCCL version" in ended.err


def test_wrong_elements_are_a_mismatch(bench):
    ended = bench.run([head() + row(SIZES[0], wrong=3) + FOOT])
    assert ended.code == 1
    assert "run1.log: 6 wrong elements" in ended.err


def test_a_run_that_crashes_is_compared_up_to_there(bench):
    """Two rows of three, the third cut in its middle, exit code 134."""
    ended = bench.run([head() + row(SIZES[0]) + row(SIZES[1]) + row(SIZES[2])[:50]], code=134)
    assert ended.code == 3
    assert "run1.log: the command ended with exit code 134" in ended.err
    assert f"2 rows read up to {SIZES[1]} bytes, {bench.out}/run1.log:18 is cut in its middle" in ended.err
    assert [(r.bytes, r.simulated is not None) for r in bench.rows()] == [(SIZES[0], True), (SIZES[1], True)]
    assert bench.record()["exit_codes"] == [134]


def test_a_run_that_fails_after_its_table(bench):
    ended = bench.run([head() + row(SIZES[0]) + FOOT], code=5)
    assert ended.code == 1
    assert "exit code 5" in ended.err
    assert len(bench.rows()) == 1


def test_a_run_that_ends_before_its_table(bench):
    ended = bench.run(["ssh: no route to host\n"], code=255)
    assert ended.code == 3
    assert "the table of nccl-tests has no end: 0 rows read" in ended.err
    assert bench.rows() == []


def test_a_run_that_hangs_is_stopped_at_its_limit(bench):
    begun = time.monotonic()
    ended = bench.run([head() + row(SIZES[0]), (60.0, FOOT)], "--limit", "1500ms")
    assert time.monotonic() - begun < 15
    assert ended.code == 3
    assert "stopped after the limit of 1.5 s, waiting for the end of the table of nccl-tests" in ended.err
    assert [r.bytes for r in bench.rows()] == [SIZES[0]]
    assert "limit" in bench.record()["stopped"]


def test_output_of_several_ranks_in_one_stream(bench):
    """Rank 3 complains in the middle of rank 0's row; the tags are Open MPI's."""
    lines = (head() + row(SIZES[0]) + row(SIZES[1]) + FOOT).splitlines()
    tagged = [f"[1,0]<stdout>:{line}\n" for line in lines]
    at = next(k for k, line in enumerate(tagged) if str(SIZES[1]) in line)
    tagged[at] = tagged[at][:40] + "[1,3]<stdout>:node-2: NCCL WARN slow\n[1,0]<stdout>:" + tagged[at][40:].lstrip(" ")
    ended = bench.run(["".join(tagged)])
    assert ended.code == 0, ended.err
    assert [r.bytes for r in bench.rows()] == [SIZES[0], SIZES[1]]


def test_a_pattern_sees_lines_without_their_tags(bench, tmp_path):
    lines = (head() + row(SIZES[0])).splitlines(keepends=True)
    output = ["".join(f"[1,0]<stdout>:{line}" for line in lines), (0.5, FOOT)]
    ended = bench.run(output, "--fail-hook", f"touch {tmp_path}/cut", "--fail-on", f"^ *{SIZES[0]} ")
    assert ended.code == 0, ended.err
    assert (tmp_path / "cut").exists()


def test_a_garbled_table_is_named_with_its_line(bench):
    ended = bench.run([head() + "   536870912   134217728 float oops\n" + row(SIZES[1]) + FOOT])
    assert ended.code == 2
    assert f"{bench.out}/run1.log:16: expected 13 values as in the table's heading" in ended.err


def test_the_failure_comes_when_the_output_matches(bench, tmp_path):
    """Hot repair: the first row is healthy, the second was under way, the third shows twice the time."""
    hooks = ("--fail-hook", f"touch {tmp_path}/cut", "--fail-on", f"^ *{SIZES[0]} ")
    repair = ("--repair-hook", f"mv {tmp_path}/cut {tmp_path}/repaired")
    output = [head() + row(SIZES[0]), (0.7, row(SIZES[1], 1.5)), (0.1, row(SIZES[2], 2)), (0.0, FOOT)]
    ended = bench.run(output, "--mode", "hot-repair", "--failed-node", "0", "--failed-nic", "mlx5_2", *hooks, *repair)
    assert ended.code == 0, ended.err
    assert (tmp_path / "repaired").exists()
    assert "1 row measured while the failure came, not compared" in ended.err
    rows = {r.bytes: r for r in bench.rows()}
    assert (rows[SIZES[0]].strategy, rows[SIZES[2]].strategy) == ("nccl", "hot-repair")
    assert rows[SIZES[2]].pattern == "server0.mlx5_2@0"
    assert abs(rows[SIZES[2]].error_pct) < 1
    assert (rows[SIZES[1]].simulated, rows[SIZES[1]].measured) == (None, 0.7635)
    assert bench.record()["failure"]["started_s"] > 0
    assert [len(m.sizes) for m in read_log(bench.out / "run1.after.log")] == [1]


def test_the_failure_comes_at_its_time(bench, tmp_path):
    output = [head() + row(SIZES[0]), (1.2, row(SIZES[1])), (0.1, row(SIZES[2], 1.7) + FOOT)]
    ended = bench.run(output, "--fail-hook", f"touch {tmp_path}/cut", "--fail-at", "600ms", "--port-failover")
    assert ended.code == 0, ended.err
    assert (tmp_path / "cut").exists()
    assert [(r.bytes, r.strategy, r.simulated is not None) for r in bench.rows()] == [
        (SIZES[0], "nccl", True),
        (SIZES[1], "nccl-failover", False),
        (SIZES[2], "nccl-failover", False),
    ]
    assert "1 row measured after the failure, not compared: --mode" in ended.err


def test_a_failure_that_never_comes_is_said(bench):
    ended = bench.run([head() + row(SIZES[0]) + FOOT], "--fail-hook", "true", "--fail-on", "no such line")
    assert ended.code == 1
    assert "the failure was never made: it was to come once the output matches 'no such line'" in ended.err


def test_a_hook_that_fails_ends_the_run_and_is_repaired(bench, tmp_path):
    hooks = ("--fail-hook", "echo denied; exit 9", "--fail-at", "100ms", "--repair-hook", f"touch {tmp_path}/repaired")
    ended = bench.run([head() + row(SIZES[0]), (30.0, FOOT)], *hooks)
    assert ended.code == 2
    assert "--fail-hook: ended with exit code 9" in ended.err
    assert (bench.out / "run1.hook.log").read_text() == "denied\n"
    assert (tmp_path / "repaired").exists()


def test_a_repair_that_fails_is_said_and_the_rows_are_kept(bench):
    hooks = ("--fail-hook", "true", "--fail-at", "100ms", "--repair-hook", "exit 3")
    ended = bench.run([head() + row(SIZES[0]), (0.6, FOOT)], *hooks)
    assert ended.code == 1
    assert "--repair-hook: ended with exit code 3; what it was to repair may still be broken" in ended.err
    assert len(bench.rows()) == 1


def test_a_hook_that_hangs_ends_the_run(bench):
    hooks = ("--fail-hook", "sleep 60", "--fail-at", "100ms", "--hook-limit", "500ms")
    begun = time.monotonic()
    ended = bench.run([head() + row(SIZES[0]), (30.0, FOOT)], *hooks)
    assert time.monotonic() - begun < 12
    assert ended.code == 2
    assert "--fail-hook: did not end within 0.5 s" in ended.err


def test_what_was_measured_is_never_written_over(bench):
    bench.run([head() + row(SIZES[0]) + FOOT])
    ended = bench.run([head() + row(SIZES[0]) + FOOT])
    assert (ended.code, ended.out) == (2, "")
    assert "holds files already" in ended.error


def test_ranks_elsewhere_than_asked_for(bench):
    """Everything ran on one host: the log says so, and nothing is compared."""
    ended = bench.run([head().replace("node-2", "node-1").replace("node-3", "node-1") + row(SIZES[0]) + FOOT])
    assert "not compared" in ended.err
    assert "expected the 6 ranks on 3 nodes" in ended.err
    assert [r.simulated for r in bench.rows()] == [None]


BAD = {
    "no launcher": (["--launcher", "/nowhere/mpirun"], 4, "/nowhere/mpirun: not found"),
    "an unknown launcher": (["--launcher", "qsub"], 2, "mpirun, srun"),
    "a moment without a hook": (["--fail-at", "2s"], 2, "--fail-hook"),
    "a hook without a moment": (["--fail-hook", "true"], 2, "--fail-at TIME or --fail-on PATTERN"),
    "a bad pattern": (["--fail-hook", "true", "--fail-on", "("], 2, "no regular expression"),
    "a limit that is none": (["--limit", "soon"], 2, "--limit 'soon'"),
    "a cluster of another shape": (["--cluster", "h100"], 2, "but the hosts are 3 with 6 ranks"),
    "no repetition": (["--repetitions", "0"], 2, "--repetitions 0"),
}


@pytest.mark.parametrize(("options", "code", "named"), BAD.values(), ids=BAD)
def test_what_cannot_be_run(bench, options, code, named):
    ended = bench.command("--output", str(bench.out), *options)
    assert ended.code == code
    assert named in ended.error
    assert not bench.out.exists()
