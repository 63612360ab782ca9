"""`real run torch`: schedules with real bytes over gloo on loopback, and how its runs fail."""

import importlib.util
import json
import sys
import time

import pytest

from r2cc_simai.results import read_rows

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed (pip install 'r2cc-simai[torch]')"
)


@pytest.fixture
def run(cli, tmp_path):
    """Return a function that runs `real run torch` into a folder."""

    def call(*options):
        return cli("real", "run", "torch", "--output", str(tmp_path / "out"), *options)

    return call


@needs_torch
@pytest.mark.parametrize(
    "options",
    [
        ("--local", "2", "-b", "1M"),
        (
            "--local",
            "6",
            "--cluster",
            "r7525",
            "--strategy",
            "r2cc-allreduce",
            "--fail",
            "server0.mlx5_2@0",
            "-d",
            "int32",
        ),
        ("--local", "4", "--strategy", "optcc:k=2", "--fail", "server0.nic0=0.5@0", "-o", "max", "-b", "256K"),
        ("--local", "3", "--collective", "reduce_scatter", "-b", "12K", "-o", "avg"),
    ],
    ids=["ring", "r2cc-allreduce", "optcc", "reduce_scatter"],
)
def test_every_element_is_right_and_the_times_are_stored(run, tmp_path, options):
    ended = run(*options, "-n", "2", "-w", "1", "--limit", "100s")
    assert ended.code == 0, ended.out + ended.err
    rows = {row.metric: row for row in read_rows(tmp_path / "out" / "results.csv")}
    assert rows["wrong"].measured == 0
    assert rows["time"].measured > 0
    assert rows["algbw"].measured == pytest.approx(rows["time"].bytes / rows["time"].measured)
    assert rows["time"].backend == "torch-gloo"
    assert all(part in rows["time"].source for part in ("torch.log", "2 iterations", "Linux", "torch 2"))
    record = json.loads((tmp_path / "out" / "torch.json").read_text())
    assert set(record["exit_codes"]) == {0}
    assert not (tmp_path / "out" / "meeting").exists()


@needs_torch
def test_torchrun_from_a_hosts_file(run, tmp_path):
    (tmp_path / "hosts").write_text("localhost slots=2\n")
    where = (
        "--hosts",
        str(tmp_path / "hosts"),
        "--cluster",
        "uniformx2",
        "--port",
        "29617",
        "--python",
        sys.executable,
    )
    ended = run(*where, "-n", "2", "-b", "64K", "--env", "GLOO_SOCKET_IFNAME=lo", "--limit", "100s")
    assert ended.code == 0, ended.out + ended.err
    assert {row.metric for row in read_rows(tmp_path / "out" / "results.csv")} == {"time", "algbw", "busbw", "wrong"}


@needs_torch
def test_ranks_that_do_not_come_are_said(run):
    """The ranks look for each other on a network device that is not there."""
    begun = time.monotonic()
    ended = run(
        "--local", "2", "-b", "64K", "--env", "GLOO_SOCKET_IFNAME=nosuch0", "--wait-limit", "3s", "--limit", "60s"
    )
    assert time.monotonic() - begun < 60
    assert ended.code == 3
    assert "rank 0: meeting the 2 ranks at file://" in ended.err
    assert "0 of 5 iterations ended on all 2 ranks" in ended.err


@needs_torch
def test_the_limit_of_the_run(run):
    ended = run("--local", "2", "-b", "64K", "-n", "100000", "--limit", "12s")
    assert ended.code == 3
    assert "stopped after the limit of 12 s, waiting for 100001 iterations on 2 ranks" in ended.err


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_4_without_torch(run, tmp_path):
    ended = run("--local", "2")
    assert (ended.code, ended.error) == (4, "torch: not installed; pip install 'r2cc-simai[torch]'")
    assert not (tmp_path / "out").exists()


def test_dry_run_by_mpirun(run, tmp_path):
    (tmp_path / "hosts").write_text("a:2\nb:2\nc:2\n")
    ended = run(
        "--hosts",
        str(tmp_path / "hosts"),
        "--cluster",
        "r7525",
        "--launcher",
        "mpirun",
        "--python",
        "python3",
        "--dry-run",
    )
    command = ended.out.splitlines()[0]
    assert command.startswith(
        "mpirun --host a:2,b:2,c:2 -np 6 --map-by slot --tag-output -x MASTER_ADDR=a -x MASTER_PORT=29500 "
        'python3 -m r2cc_simai.real.torch_rank \'{"cluster": "r7525"'
    )


BAD = {
    "neither here nor there": ([], "either --local N or --hosts FILE"),
    "one rank": (["--local", "1"], "from 2 to 256"),
    "as many processes as the cluster has ranks": (["--local", "4", "--cluster", "r7525"], "has 6 ranks"),
    "an unknown backend": (["--local", "2", "--backend", "mpi"], "gloo, nccl"),
    "an unknown strategy": (["--local", "2", "--strategy", "balanse"], "balance was meant?"),
    "an unknown type": (["--local", "2", "-d", "double"], "float16, float32, int32"),
    "half an element": (["--local", "2", "-b", "7"], "multiple of the 4 bytes"),
    "hosts without a cluster": (["--hosts", "{hosts}"], "--cluster: missing"),
}


@pytest.mark.parametrize(("options", "named"), BAD.values(), ids=BAD)
def test_what_cannot_be_run(run, tmp_path, options, named):
    (tmp_path / "hosts").write_text("a:2\n")
    ended = run(*(one.format(hosts=tmp_path / "hosts") for one in options), "--dry-run")
    assert ended.code == 2
    assert named in ended.error
