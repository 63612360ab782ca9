"""The timeline of an iteration, as Perfetto reads it: compute, transfers, the failure, detection and migration."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.training.iteration import run_iteration
from r2cc_simai.training.job import TrainingJob
from r2cc_simai.training.timeline import write_timeline

Maker = Callable[..., TrainingJob]
FAILURE_S = 0.03


@pytest.fixture
def events(make_job: Maker, tmp_path: Path) -> list[dict[str, Any]]:
    """Rank 0 and a rank of the second stage, while a NIC fails."""
    job = make_job(
        "h100x4",
        tensor_model_parallel_size=8,
        pipeline_model_parallel_size=2,
        global_batch_size=32,
        sequence_parallel=True,
    )
    timeline = parse_failures([f"server0.nic3@{FAILURE_S}"], job.cluster)
    run = run_iteration(job.cluster, job.ranks, parse_strategy("balance"), timeline, record=(0, 16))
    write_timeline(run, [nic.full_name for nic in job.cluster.nics], tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    found: list[dict[str, Any]] = content["traceEvents"]
    return found


def test_every_event_has_what_the_format_asks_for(events: list[dict[str, Any]]) -> None:
    """Trace Event Format: ph and pid; name, ts and dur of complete events, in microseconds."""
    for event in events:
        assert event["ph"] in ("X", "i", "M")
        assert isinstance(event["pid"], int)
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert event["ts"] >= 0
            assert event["name"]


def test_the_failure_its_detection_and_the_migration_are_there(events: list[dict[str, Any]]) -> None:
    """At the time of the failure, and 2.6 ms later (probes 2 ms, notice 0.1 ms, migration 0.5 ms)."""
    instants = [(round(e["ts"]), e["name"]) for e in events if e["ph"] == "i"]
    assert instants[0] == (FAILURE_S * 1e6, "server0.nic3 goes down")
    assert instants[1] == (FAILURE_S * 1e6 + 2600, "both ends know that server0.nic3 is down")


def test_lines_are_compute_communicators_and_peers(events: list[dict[str, Any]]) -> None:
    """One process a rank; one line for compute, for each communicator, and for each direction of a peer."""
    names = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == 1}
    assert "compute" in names
    assert any(name.startswith("tp ") for name in names)
    assert any(name.startswith("dp ") for name in names)
    assert {"to rank 16", "from rank 16"} <= names
    processes = [e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"]
    assert processes[0] == "network"
    assert processes[1].startswith("rank 0")


def test_nothing_overlaps_on_the_compute_line(events: list[dict[str, Any]]) -> None:
    """A GPU computes one thing at a time; a communicator moves one collective at a time."""
    lines: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X" and event["cat"] in ("compute", "collective"):
            lines.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    assert len(lines) >= 6
    for spans in lines.values():
        spans.sort()
        assert all(end <= start + 1e-6 for (_, end), (start, _) in pairwise(spans))
