"""Collectives beside AllReduce, and trees, in sweeps, comparisons and the calibration."""

import pytest
import yaml

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.engine.run import run_schedule
from r2cc_simai.errors import InputError
from r2cc_simai.runners.calibrate import HealthyTimes, Point
from r2cc_simai.runners.scenario import load_scenario
from r2cc_simai.runners.sweep import run_case
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.ideal import Ideal

BLOCK = {
    "scenario": "others",
    "clusters": ["h100"],
    "sizes": ["64MiB"],
    "failures": ["server0.nic3@0"],
    "strategies": ["balance"],
}


def scenario(folder, **keys):
    path = folder / "others.yml"
    path.write_text(yaml.safe_dump({"title": "Others", "blocks": [BLOCK | keys]}))
    return load_scenario(str(path))[1]


def test_a_scenario_names_its_collective_and_root(tmp_path):
    for op, root in (("reduce", 3), ("alltoall", 0)):
        (case,) = scenario(tmp_path, collective=op, root=root).cases()
        rows, _ = run_case(case)
        assert {row.workload for row in rows} == {"all_to_all" if op == "alltoall" else op}
        assert all(row.bound is None or row.simulated >= row.bound for row in rows if row.metric == "time")


def test_an_unknown_collective_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"collective: scan: no collective that is known .allowed: all_reduce, all_g"):
        scenario(tmp_path, collective="scan")


def test_the_calibration_chooses_between_ring_and_tree_as_a_run_does():
    """Times of the fitted model are those of `ideal`, for values of the latencies at which the choice differs."""
    cluster = load_cluster("h100x4")
    sizes = [2**10, 2**22, 2**24, 2**28]
    model = HealthyTimes(cluster, [Point(size, 1.0, judged=True) for size in sizes])
    for step_us in (0.0, 5.0, 50.0):
        transport = cluster.spec.transport.model_copy(update={"step_latency_us": step_us})
        other = type(cluster)("other", cluster.spec.model_copy(update={"transport": transport}))
        for size, time_s in zip(sizes, model.times(other.spec), strict=True):
            plan = Ideal().plan(Request("all_reduce", tuple(range(cluster.n_ranks)), size), View.healthy(other))
            exact = run_schedule(other, plan.schedule, plan.binding).elapsed_s
            assert time_s == pytest.approx(exact, rel=1e-9)
