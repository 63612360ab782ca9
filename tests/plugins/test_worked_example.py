"""The worked example of docs/extending.md, installed as a package and run: the text of the docs is what is tested."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.collectives.bound import all_reduce_bound
from r2cc_simai.collectives.checker import check_schedule, check_trace
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.failures.timeline import Event, Timeline
from r2cc_simai.strategies.plugins import GROUP
from r2cc_simai.strategies.registry import parse_strategy

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/extending.md").read_text()
MIB = 2**20


def block(name: str, kind: str) -> str:
    """The code block that follows the line `name`:."""
    found = re.search(rf"^`{re.escape(name)}`:\n\n```{kind}\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
    assert found, f"docs/extending.md has no {kind} block of {name}"
    return found[1]


SOURCE = block("leaf_ring.py", "python")
ENTRIES = tomllib.loads(block("pyproject.toml", "toml"))["project"]["entry-points"]
COMMAND = re.search(r"^\$ r2cc-simai (.*leaf-ring.*)$", DOCS, re.MULTILINE)


@pytest.fixture
def leaf_ring(install):
    """Return the folder in which the example is installed."""
    return install("leaf-ring", "leaf_ring", SOURCE, ENTRIES[GROUP])


def test_the_command_of_the_docs_runs(leaf_ring):
    """`r2cc-simai coll --strategy leaf-ring` in a process of its own: exit code 0 and rows of that strategy."""
    assert COMMAND is not None
    path = os.pathsep.join([str(leaf_ring), str(ROOT), *sys.path])
    program = "import sys; from r2cc_simai.cli.main import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, *COMMAND[1].split()],
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "leaf-ring:k=64" in done.stdout


@pytest.mark.usefixtures("leaf_ring")
def test_the_time_that_the_docs_give(simulate):
    """uniformx8, X = 0.6, 1 GiB: 60.0 ms, 11.7 % above the bound D / 0.4 B; Balance 94.0 ms."""
    cluster, left = load_cluster("uniformx8"), {0: 0.4}
    ours, balance, r2cc = (
        simulate(cluster, s, 2**30, lost=left).elapsed_s for s in ("leaf-ring:k=64", "balance", "r2cc-allreduce")
    )
    text = f"it takes {ours * 1e3:.1f} ms, {100 * (ours / (2**30 / 0.4 / 50e9) - 1):.1f}% above the lower bound"
    text += f"; Balance takes {balance * 1e3:.1f} ms, R2CC-AllReduce {r2cc * 1e3:.1f} ms"
    assert text in DOCS


@pytest.mark.usefixtures("leaf_ring")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    servers=st.integers(3, 9),
    gpus=st.integers(1, 2),
    nics=st.integers(1, 3),
    size=st.sampled_from([0, 1, 1_000_003, 16 * MIB + 5]),
    k=st.integers(1, 5),
    leaves=st.sets(st.integers(0, 8), max_size=3),
    cut=st.floats(0, 1.1),
    victim=st.integers(0, 26),
)
def test_it_is_checked_and_executed_with_a_cut(servers, gpus, nics, size, k, leaves, cut, victim, cluster_of, plan_for):
    """Exactly once on paper, and in what ran although a NIC failed at a drawn time; no run beats the bound."""
    cluster = cluster_of(servers=servers, gpus=gpus, nics=nics, transport={"chunk_kib": 512})
    left = {cluster.servers[s].nics[0]: 0.5 for s in leaves if s < servers - 2}
    plan = plan_for(cluster, f"leaf-ring:k={k}", size, left)
    assert check_schedule(plan.schedule) is None
    known = [_core.NicEvent(nic=nic, fraction=f) for nic, f in left.items()]
    whole_s = _core.run_chunk(core_cluster(cluster), plan.schedule.core, plan.binding.core, known, None).elapsed_s
    bound = all_reduce_bound(cluster, size, Timeline(tuple(Event(nic, f) for nic, f in left.items())))
    assert whole_s >= bound * (1 - 1e-9)
    event = _core.NicEvent(nic=victim % len(cluster.nics), fraction=0.0, time_s=cut * whole_s)
    provenance = _core.Provenance(plan.schedule.core)
    out = _core.run_chunk(
        core_cluster(cluster), plan.schedule.core, plan.binding.core, [*known, event], None, provenance=provenance
    )
    if out.status != _core.Status.DONE:
        assert "no NIC is left" in out.reason
        return
    assert check_trace(plan.schedule, provenance) is None


@pytest.mark.usefixtures("leaf_ring")
def test_its_options_are_those_of_the_class():
    """`leaf-ring:k=3` reads back; the default is not repeated."""
    assert parse_strategy("leaf-ring:k=3").spec == "leaf-ring:k=3"
    assert parse_strategy("leaf-ring:k=8").spec == "leaf-ring"


EXAMPLES = re.findall(r"^```python\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)


def test_the_other_examples_print_what_the_docs_say(tmp_path):
    """The schedule of one's own, and the strategy of one's own with the program that runs it."""
    chain, spread, program = (
        next(text for text in EXAMPLES if mark in text)
        for mark in ("AllReduce down a chain of all ranks", "class Spread(Strategy)", "from spread import Spread")
    )
    for name, text in (("chain.py", chain), ("spread.py", spread), ("try_spread.py", program)):
        (tmp_path / name).write_text(text)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT), *sys.path])}
    for name in ("chain.py", "try_spread.py"):
        done = subprocess.run(
            [sys.executable, name], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert f"```\n$ python {name}\n{done.stdout}```\n" in DOCS
