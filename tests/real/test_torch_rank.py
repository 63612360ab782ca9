"""A rank whose neighbour dies or falls silent in the middle of a collective says which messages it waited for."""

import importlib.util
import io
import json
import time
from dataclasses import replace

import pytest

from r2cc_simai.real.launcher import Command, local
from r2cc_simai.real.process import Silent, Sink, run_processes
from r2cc_simai.real.torch_job import TorchJob
from r2cc_simai.real.torch_rank import INIT
from r2cc_simai.real.torch_report import read_reports

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed (pip install 'r2cc-simai[torch]')"
)

JOB = TorchJob("uniformx2", "balance", "all_reduce", 65536, (), 0, "float32", "sum", 2, 0, "gloo", 3.0)
MUTE = """
import os, time, torch.distributed as dist
dist.init_process_group("gloo", init_method=os.environ["{init}"], rank=1, world_size=2)
dist.barrier()
time.sleep(120)
"""


def run(commands):
    file = io.BytesIO()
    ended = run_processes(commands, Sink(file, lambda _: None), 90.0, Silent(), "the ranks")
    return ended, read_reports("log", file.getvalue().decode())


@pytest.fixture
def ranks(tmp_path):
    """Return two ranks that meet in a file, as commands."""
    variables = {INIT: f"file://{tmp_path}/meeting", "GLOO_SOCKET_IFNAME": "lo"}
    return local(2, ["r2cc_simai.real.torch_rank", JOB.text], variables)


def test_a_neighbour_that_falls_silent(ranks):
    """It has passed the first barrier and sends nothing; the wait ends after --wait-limit, 3 s."""
    mute = Command((ranks[1].argv[0], "-c", MUTE.format(init=INIT)), ranks[1].env, ranks[1].label)
    begun = time.monotonic()
    ended, reports = run([ranks[0], mute])
    assert time.monotonic() - begun < 80
    assert ended.codes[0] == 1
    assert reports.errors[0].startswith("iteration 0, round 1 of ")
    assert "messages with ranks 1: " in reports.errors[0]
    assert "Timed out" in reports.errors[0]


def test_a_neighbour_that_ends_early(ranks):
    """Rank 1 runs one iteration of two and takes the barrier of the second for that at the end."""
    short = replace(JOB, iterations=1)
    early = Command((*ranks[1].argv[:-1], short.text), ranks[1].env, ranks[1].label)
    ended, reports = run([ranks[0], early])
    assert ended.codes[0] == 1
    assert reports.complete(2) == [0]
    assert reports.errors[0].startswith("iteration 1, ")


def test_another_number_of_ranks_than_the_cluster_has(ranks):
    job = json.loads(JOB.text) | {"cluster": "uniformx3"}
    ended, reports = run([Command((*one.argv[:-1], json.dumps(job)), one.env, one.label) for one in ranks])
    assert ended.codes == (2, 2)
    assert reports.errors[0] == "2 processes, but uniformx3 has 3 ranks"
