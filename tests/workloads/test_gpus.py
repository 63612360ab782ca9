"""GPU files: data-sheet figures, names that cluster files use, and the one line for a name that nobody knows."""

import pytest

from r2cc_simai.cluster.load import load_cluster, preset_names
from r2cc_simai.errors import InputError
from r2cc_simai.workloads.gpus import gpu_names, load_gpu

# NVIDIA's data sheets: dense fp16/bf16 TFLOP/s, fp8 TFLOP/s, GB/s, GB.
DATA_SHEETS = {
    "V100S": (130, None, 1134, 32),
    "A100": (312, None, 2039, 80),
    "H100": (989, 1979, 3350, 80),
    "H800": (989, 1979, 3350, 80),
    "H200": (989, 1979, 4800, 141),
    "B200": (2250, 4500, 8000, 180),
}


@pytest.mark.parametrize(("name", "figures"), DATA_SHEETS.items())
def test_data_sheet(name, figures):
    """Peaks, bandwidth and memory are those of the data sheet; every GPU names its sources."""
    gpu = load_gpu(name)
    assert (gpu.peak_tflops, gpu.fp8_tflops, gpu.memory_gbytes_per_s, gpu.memory_gb) == figures
    assert gpu.source
    assert gpu.efficiency.source


def test_units():
    """Inside: FLOP/s, bytes/s, seconds."""
    gpu = load_gpu("A100")
    assert (gpu.peak_flops, gpu.memory_rate) == (312e12, 2039e9)
    assert gpu.kernel_floor == pytest.approx(gpu.kernel_floor_us * 1e-6)


def test_every_shipped_gpu_is_checked():
    """No GPU file without figures above."""
    assert {load_gpu(name).name for name in DATA_SHEETS} == set(gpu_names())


PRESET_GPUS = {name: load_cluster(name).spec.server.gpus.model for name in preset_names()}


@pytest.mark.parametrize("model", sorted({model for model in PRESET_GPUS.values() if model}))
def test_gpus_of_the_cluster_presets_are_known(model):
    """A preset that names its GPU names one that has compute times."""
    assert load_gpu(model).name == model


def test_names_in_any_case():
    """`h100`, `H100` and the full name are one GPU."""
    assert load_gpu("h100") == load_gpu("H100") == load_gpu("H100-SXM5-80GB")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("H100X", "'H100X': no such GPU; h100 or .* was meant\\? \\(or a .yml file\\)"),
        ("abacus", "'abacus': no such GPU; allowed: A100-SXM4-80GB, "),
    ],
)
def test_unknown_gpu(text, message):
    """One line with close names, or all."""
    with pytest.raises(InputError, match=f"^{message}") as error:
        load_gpu(text)
    assert "\n" not in str(error.value)


def test_efficiency_above_one_is_refused(tmp_path):
    """A share of a peak is at most 1; the line names file and key."""
    path = tmp_path / "mine.yml"
    path.write_text(
        "name: mine\npeak_tflops: 1\nmemory_gbytes_per_s: 1\nmemory_gb: 1\nkernel_floor_us: 1\nsource: me\n"
        "efficiency: {gemm: 1.5, attention: 0.5, memory: 0.5, source: me}\n"
    )
    with pytest.raises(InputError, match=f"^{path}: efficiency.gemm: .*less than or equal to 1, got 1.5"):
        load_gpu(str(path))
