"""The roofline: max(FLOPs / (peak x share), bytes / (bandwidth x share)) + floor, for each kernel."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.errors import InputError, MissingComponentError
from r2cc_simai.workloads.blocks import BLOCKS, BlockRequest
from r2cc_simai.workloads.compute_times import block_cost, compute_times
from r2cc_simai.workloads.gpus import gpu_names, load_gpu
from r2cc_simai.workloads.kernel import Kernel, gemm
from r2cc_simai.workloads.kernels import block_kernels
from r2cc_simai.workloads.models import load_model
from r2cc_simai.workloads.roofline import Roofline

GPU = load_gpu("A100").model_copy(
    update={
        "peak_tflops": 100.0,
        "memory_gbytes_per_s": 1000.0,
        "kernel_floor_us": 2.0,
        "efficiency": load_gpu("A100").efficiency.model_copy(update={"gemm": 0.5, "attention": 0.25, "memory": 0.8}),
    }
)


@pytest.mark.parametrize(
    ("kernel", "seconds"),
    [
        (Kernel("compute-bound", "gemm", 10**12, 10**6), 1e12 / 50e12),
        (Kernel("memory-bound", "gemm", 10**9, 10**9), 1e9 / 800e9),
        (Kernel("attention", "attention", 10**12, 10**6), 1e12 / 25e12),
        (Kernel("attention backward", "attention", 10**12, 10**6, 1.25), 1.25e12 / 25e12),
        (Kernel("norm", "memory", 0, 10**9), 1e9 / 800e9),
        (Kernel("adam", "optimizer", 0, 10**9), 1e9 / 800e9),
        (Kernel("tiny", "memory", 0, 0), 0.0),
    ],
)
def test_kernel(kernel, seconds):
    """Peak 100 TFLOP/s x 0.5 (gemm) or 0.25 (attention), 1000 GB/s x 0.8, floor 2 us."""
    assert Roofline(GPU).kernel_seconds(kernel) == pytest.approx(seconds + 2e-6)
    assert Roofline(GPU, 0.5).kernel_seconds(kernel) == pytest.approx(2 * seconds + 2e-6)


@given(tokens=st.integers(1, 1 << 14), tp=st.sampled_from([1, 2, 4, 8]), block=st.sampled_from(BLOCKS))
def test_more_tokens_take_longer_and_no_less_than_the_peaks_allow(tokens, tp, block):
    """Monotone in tokens; at least FLOPs / peak and bytes / bandwidth."""
    request = BlockRequest(load_model("mixtral-8x7b"), block, "forward", tokens, 1 << 14, tp=tp, parameters=tokens)
    times = compute_times("roofline", "H100")
    cost = block_cost(times, request)
    more = block_cost(times, replace(request, tokens=2 * tokens, parameters=2 * tokens))
    assert cost.seconds <= more.seconds
    assert cost.seconds >= max(cost.flops / 989e12, cost.bytes / 3350e9)


@pytest.mark.parametrize("gpu", gpu_names())
def test_a_large_product_runs_at_the_stated_share(gpu):
    """8192^3: compute-bound on every GPU, at gemm x peak but for the floor."""
    spec = load_gpu(gpu)
    kernel = gemm("product", 8192, 8192, 8192)
    rate = kernel.flops / (Roofline(spec).kernel_seconds(kernel) - spec.kernel_floor)
    assert rate == pytest.approx(spec.efficiency.gemm * spec.peak_flops)


def test_cost_of_a_block():
    """Seconds of the times; FLOPs and bytes of the kernels."""
    request = BlockRequest(load_model("gpt3-13b"), "mlp", "forward", 2048, 2048, tp=8)
    cost = block_cost(Roofline(GPU), request)
    assert cost.seconds == Roofline(GPU).seconds(block_kernels(request))
    # two products of 2048 x 5120 x 20480 / 8
    assert cost.flops == 2 * 2 * 2048 * 5120 * 20480 // 8


def test_description_names_model_gpu_and_parameters():
    """One line, recorded in each trace."""
    line = compute_times("roofline", "A100-SXM4-80GB", mfu_scale=0.9).description
    assert line == (
        "roofline A100-SXM4-80GB: 312 TFLOP/s x 0.79 (gemm), x 0.53 (attention), 2039 GB/s x 0.65, "
        "4.05 us a kernel, all x 0.9"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("guess", "A100"), "'guess': no such source of compute times \\(allowed: roofline, csv, aiconfigurator\\)"),
        (("roofline", "abacus"), "'abacus': no such GPU"),
        (("csv", "A100"), "compute times from csv need a table: --compute-times FILE.csv"),
        (("roofline", "A100", None, 0.0), "MFU scale 0: a number above 0 is wanted"),
        (("roofline", "A100", None, float("nan")), "MFU scale nan: a number above 0 is wanted"),
    ],
)
def test_wrong_choice(arguments, message):
    """One line that says what is allowed."""
    with pytest.raises(InputError, match=f"^{message}"):
        compute_times(*arguments)


def test_absent_package(monkeypatch):
    """Without aiconfigurator-core: one line that says what to install, exit code 4."""
    monkeypatch.setitem(__import__("sys").modules, "aiconfigurator_core.sdk.perf_database", None)
    with pytest.raises(MissingComponentError, match="need the package aiconfigurator-core: pip install") as error:
        compute_times("aiconfigurator", "A100")
    assert error.value.exit_code == 4
