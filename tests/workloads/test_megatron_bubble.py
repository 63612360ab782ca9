"""Time of an iteration where communication is free: the pipeline's bubble.

Narayanan et al., arXiv 2104.04473, section 2.2: with m micro-batches, p stages and v chunks a stage, the time lost is
(p - 1) / m of the ideal time, and (p - 1) / (m v) with the interleaved schedule.
"""

import pytest

LAYERS = 8
PASSES = 2 * 3
"""Seconds of a layer: two blocks, each forward, input gradients and weight gradients."""


def lost_share(workload, run_workload):
    """What the iteration takes beyond the work of a stage, as a share of that work."""
    busy = {program.duration_ns.sum() * 1e-9 for program in workload.programs}
    assert len(busy) == 1  # all stages have the same work
    return max(run_workload(workload)) / busy.pop() - 1


@pytest.mark.parametrize(("p", "m"), [(2, 2), (2, 8), (4, 4), (4, 16), (8, 8), (8, 3)])
def test_1f1b_loses_p_minus_1_of_m(megatron_job, run_workload, p, m):
    workload = megatron_job(gpus=p, pipeline_model_parallel_size=p, global_batch_size=m)
    assert lost_share(workload, run_workload) == pytest.approx((p - 1) / m, abs=1e-9)
    assert max(run_workload(workload)) == pytest.approx((m + p - 1) * LAYERS // p * PASSES)


@pytest.mark.parametrize(("p", "m", "v"), [(2, 2, 2), (2, 8, 2), (2, 8, 4), (4, 4, 2), (4, 16, 2)])
def test_interleaved_loses_p_minus_1_of_m_v(megatron_job, run_workload, p, m, v):
    workload = megatron_job(
        gpus=p,
        pipeline_model_parallel_size=p,
        num_layers_per_virtual_pipeline_stage=LAYERS // p // v,
        global_batch_size=m,
    )
    assert lost_share(workload, run_workload) == pytest.approx((p - 1) / (m * v), abs=1e-9)


def test_no_bubble_without_stages(megatron_job, run_workload):
    assert lost_share(megatron_job(gpus=2, global_batch_size=4), run_workload) == pytest.approx(0, abs=1e-12)
