"""The manifest: what it says of a workload, and that its checks can fail."""

from dataclasses import replace

import numpy as np
import pytest

from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.workloads.manifest import Check, Manifest
from r2cc_simai.workloads.megatron_checks import check_manifest

JOB = {
    "gpus": 8,
    "tensor_model_parallel_size": 2,
    "pipeline_model_parallel_size": 2,
    "sequence_parallel": True,
    "global_batch_size": 4,
}


@pytest.fixture(scope="module")
def workload(megatron_job):
    """Return a job of two stages."""
    return megatron_job("gpt", **JOB)


def wrong(workload):
    """Names of the closed forms that do not hold, those of FLOPs left out: norms count in a model that small."""
    return {check.name for check in check_manifest(workload) if not check.ok and not check.name.startswith("FLOPs")}


def test_it_comes_back_from_json(workload):
    text = workload.manifest.model_dump_json()
    assert Manifest.model_validate_json(text) == workload.manifest


def test_it_says_what_the_trace_was_made_of(workload):
    manifest = workload.manifest
    assert manifest.generator == "megatron"
    assert manifest.model["name"] == "gpt"
    assert manifest.options["tensor_model_parallel_size"] == 2
    assert manifest.compute_times == "one second a pass of a block"
    assert (manifest.layout["dp"], manifest.layout["microbatches"]) == (2, 2)
    assert manifest.classes == ("stage 0 (layers 0-3)", "stage 1 (layers 4-7)")
    assert manifest.tokens == 4 * 128
    assert manifest.flops_per_token == manifest.flops / 512


def test_parameters_of_a_rank(workload):
    """gpt of 8 layers, h = 256, f = 512, vocabulary padded to 1024, 4096 positions; tensor size 2, two stages.

    A layer holds, of what is divided, (4 h^2 + 2 h f + 3 h + f) / 2, and whole 2 h (biases) and 4 h (norms). The first
    stage adds half the embedding and all positions, the last one half the embedding again and a norm.
    """
    h, f = 256, 512
    layer = (4 * h * h + 2 * h * f + 3 * h + f) // 2 + 6 * h
    table = 1024 * h // 2
    assert workload.manifest.parameters_per_rank == (4 * layer + table + 4096 * h, 4 * layer + table + 2 * h)


def test_traffic_is_the_sum_over_nodes(workload):
    for entry in workload.manifest.traffic:
        if entry.group_kind not in ("tp", "dp"):
            continue
        for k, program in enumerate(workload.programs):
            rank = int(np.flatnonzero(workload.rank_class == k)[0])
            roles = [workload.group_kind[g] if g >= 0 else "" for g in workload.rank_groups[rank]]
            at = (program.group == roles.index(entry.group_kind)) & (program.comm_type == CommType[entry.comm_type])
            assert entry.class_bytes[k] == program.bytes[at].sum()
            assert entry.class_count[k] == at.sum()
    assert all(entry.total_bytes == 4 * sum(entry.class_bytes) for entry in workload.manifest.traffic)


def test_all_closed_forms_hold(workload):
    assert wrong(workload) == set()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (NodeType.COMM_COLL, "bytes, tp ALL_GATHER"),
        (NodeType.COMM_SEND, "bytes, pp SEND"),
    ],
)
def test_a_byte_more_is_noticed(workload, kind, name):
    """The check counts nodes; it does not trust what the generator wrote down."""
    program = workload.programs[0]
    sizes = program.bytes.copy()
    at = np.flatnonzero(program.kind == kind)
    gathers = at[np.isin(program.comm_type[at], (CommType.ALL_GATHER, -1))]
    sizes[gathers[0]] += 1
    spoilt = replace(workload, programs=(replace(program, bytes=sizes), *workload.programs[1:]))
    assert wrong(spoilt) == {name}


def test_a_missing_parameter_is_noticed(workload):
    spoilt = workload.manifest.model_copy(update={"parameters": workload.manifest.parameters - 1})
    assert wrong(replace(workload, manifest=spoilt)) == {"parameters, padded vocabulary"}


@pytest.mark.parametrize(
    ("trace", "tolerance", "ok"), [(100, 0, True), (101, 0, False), (101, 0.01, True), (98, 0.01, False)]
)
def test_a_check_holds_within_its_tolerance(trace, tolerance, ok):
    assert Check(name="x", formula=100, trace=trace, tolerance=tolerance).ok is ok
