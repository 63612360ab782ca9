"""Exit codes: 0 ok, 1 mismatch, 2 bad input, 3 partitioned or unfinished, 4 a component is missing.

Whatever is wrong is said in one line, which names what was written and what is allowed.
"""

import subprocess
import sys
import time

import pytest

from r2cc_simai.cli import main


def test_0_a_result(cli):
    ended = cli("coll", "-b", "1M", "--fail", "server0.mlx5_2@0")
    assert (ended.code, ended.err) == (0, "")


def test_1_a_measured_value_outside_its_tolerance(cli, slow_log):
    ended = cli("compare", str(slow_log))
    assert ended.code == 1
    assert "0 of 1 within tolerance" in ended.out


BAD_INPUT = {
    "an unknown cluster": (["coll", "--cluster", "h101"], "h100"),
    "no servers": (["coll", "--cluster", "h100x0"], "servers"),
    "more servers than any cluster has": (["coll", "--cluster", "h100x99999999"], "100000"),
    "a cluster file that is not there": (["coll", "--cluster", "nowhere.yml"], "nowhere.yml"),
    "an unknown strategy": (["coll", "--strategy", "balanse"], "balance was meant?"),
    "an unknown option of a strategy": (["coll", "--strategy", "balance:k=4"], "allowed: split"),
    "a value that the option does not take": (["coll", "--strategy", "balance:split=odd"], "even, weighted"),
    "no chunks": (["coll", "--strategy", "r2cc-allreduce:k=0"], "at least 1 chunk"),
    "an unknown backend": (["coll", "--backend", "packet"], "flow, chunk"),
    "an unknown collective": (["coll", "--collective", "scan"], "all_reduce, all_gather"),
    "a root that is no rank": (["coll", "--collective", "reduce", "-r", "6"], "0 to 5"),
    "an unknown data type": (["coll", "-d", "quad"], "float"),
    "an unknown reduction": (["coll", "-o", "xor"], "sum, prod"),
    "a server that does not exist": (["coll", "--fail", "server9.mlx5_2@0"], "0 to 2"),
    "a NIC that does not exist": (["coll", "--fail", "server0.nic7@0"], "mlx5_0, mlx5_2, mlx5_3"),
    "a failure without a time": (["coll", "--fail", "server0.mlx5_2"], "component[=fraction]@time"),
    "a time that is none": (["coll", "--fail", "server0.mlx5_2@soon"], "'soon'"),
    "a fraction above 1": (["coll", "--fail", "server0.mlx5_2=2@0"], "from 0 to 1"),
    "a failure that ends before it begins": (["coll", "--fail", "server0.mlx5_2@5..1"], "before it begins"),
    "a range backwards": (["coll", "--fail", "server0.nic[3-0]@0", "--cluster", "h100"], "[3-0]"),
    "a size that is none": (["coll", "-b", "big"], "-b 'big'"),
    "a negative size": (["coll", "-b", "-5"], "-b '-5'"),
    "sizes backwards": (["coll", "-b", "4G", "-e", "1G"], "above the largest"),
    "an absurd size": (["coll", "-b", "9999T"], "-b 9999T"),
    "a factor that does not grow": (["coll", "-b", "1", "-e", "1G", "-f", "1"], "above 1"),
    "more sizes than one can read": (["coll", "-b", "1", "-e", "1G", "-f", "1.00001"], "1000 sizes"),
    "no iterations": (["coll", "-n", "0"], "-n 0"),
    "an absurd number of iterations": (["coll", "-n", "99999999999"], "100000"),
    "a negative warm-up": (["coll", "-w", "-1"], "negative"),
    "a number that is none": (["coll", "-n", "many"], "--iters"),
    "an unknown option": (["coll", "--sizes", "8"], "--sizes"),
    "an unknown command": (["colls"], "colls"),
    "a group without its command": (["cluster"], "Missing command"),
    "no log": (["compare"], "logs"),
    "a log that is not there": (["compare", "nowhere.log"], "nowhere.log"),
    "a folder as a log": (["compare", "/"], "directory"),
    "a log to calibrate that is not there": (["calibrate", "nowhere.log"], "nowhere.log"),
    "an unknown cluster to show": (["cluster", "show", "h101"], "h100"),
    "a failure that the shown cluster cannot have": (["failures", "show", "server0.nic0@0"], "mlx5_0"),
}


@pytest.mark.parametrize(("arguments", "named"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_2_bad_input(cli, arguments, named):
    ended = cli(*arguments)
    assert ended.code == 2
    assert named in ended.error


@pytest.mark.parametrize("when", ["0", "0.001"])
@pytest.mark.parametrize("backend", ["flow", "chunk"])
@pytest.mark.parametrize("strategy", ["hot-repair", "balance", "r2cc-allreduce"])
def test_3_all_nics_of_a_server_down(cli, strategy, backend, when):
    """Known from the start or in the middle of a collective: no hang, and the reason within a second."""
    begun = time.monotonic()
    ended = cli("coll", "--strategy", strategy, "--backend", backend, "--fail", f"server0@{when}")
    assert ended.code == 3
    assert "server0" in ended.error
    assert time.monotonic() - begun < 10  # a second where nothing else runs


def test_4_the_engine_is_not_built():
    code = (
        "import sys; sys.modules['r2cc_simai.engine._core'] = None; "
        "from r2cc_simai.cli.main import run; sys.exit(run(['coll']))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 4
    assert ended.stderr == "error: the compiled engine is missing; run make simai\n"


def test_130_interrupted(cli, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", interrupted)
    ended = cli("coll")
    assert (ended.code, ended.error) == (130, "interrupted")


def test_a_reader_that_closes_the_pipe_is_no_error():
    """`r2cc-simai coll --json | head -1`."""
    command = [sys.executable, "-m", "r2cc_simai.cli.main", "coll", "-b", "8", "-e", "16M", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in (0, main.PIPE_CLOSED)
