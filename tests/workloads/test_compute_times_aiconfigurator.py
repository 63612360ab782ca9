"""Compute times of aiconfigurator-core: what is asked of it (a stand-in), and its real tables where installed."""

import importlib.util
import sys
from dataclasses import replace
from enum import Enum
from types import ModuleType, SimpleNamespace

import pytest

from r2cc_simai.errors import InputError, MissingComponentError
from r2cc_simai.workloads.blocks import BlockRequest
from r2cc_simai.workloads.compute_times import compute_times
from r2cc_simai.workloads.kernels import block_kernels
from r2cc_simai.workloads.models import load_model

MODULE = "r2cc_simai.workloads.aiconfigurator_times"
INSTALLED = importlib.util.find_spec("aiconfigurator_core") is not None


class Precision(Enum):
    """The package's names of bf16."""

    bfloat16 = "bfloat16"


class NoDataError(RuntimeError):
    """What the package raises for shapes far from its data."""


class StandIn:
    """The part of the package that is used: products take 1 ms a 10^12 FLOPs, attention 2 ms a call."""

    def __init__(self, monkeypatch):
        self.asked = []
        self.database = SimpleNamespace(version="1.2.3")
        parts = {
            "perf_database": {"get_database": self.open},
            "engine": {"EngineHandle": SimpleNamespace(for_database=lambda _: self), "build_ops_json": list},
            "operations": {
                "GEMM": lambda *a: ("GEMM", *a[1:4]),
                "ContextAttention": lambda *a, **k: ("ContextAttention", *a[1:4], k),
                "GenerationAttention": lambda *a, **k: ("GenerationAttention", *a[1:4], k),
            },
            "common": dict.fromkeys(("GEMMQuantMode", "KVCacheQuantMode", "FMHAQuantMode"), Precision),
            "errors": {"PerfDataNotAvailableError": NoDataError},
        }
        for name, contents in parts.items():
            module = ModuleType(name)
            module.__dict__.update(contents)
            monkeypatch.setitem(sys.modules, f"aiconfigurator_core.sdk.{name}", module)
        monkeypatch.setattr(f"{MODULE}.version", lambda _: "0.0")

    def open(self, system, backend, version):
        """Open the tables of a GPU."""
        self.asked.append((system, backend, version))
        return self.database

    def evaluate_ops_json(self, ops, **shape):
        """Milliseconds of one operation; none for a dimension of 7."""
        ((kind, _, *sizes),) = ops
        self.asked.append((kind, *sizes, shape))
        if 7 in sizes:
            raise NoDataError("far from any data")
        if kind == "GEMM":
            n, k = sizes
            return [("product", 2 * shape["x"] * n * k / 1e12, 0.0, "silicon")]
        return [("attention", 2.0, 0.0, "silicon")]


@pytest.fixture
def package(monkeypatch):
    """Return the stand-in, installed."""
    return StandIn(monkeypatch)


def test_products_and_attention_are_measured(package):
    """Llama-2-7B, tp 2: QKV 2048 x 6144 x 4096, output 2048 x 4096 x 2048, and attention with 16 heads."""
    request = BlockRequest(load_model("llama2-7b"), "attention", "forward", 2048, 2048, tp=2)
    times = compute_times("aiconfigurator", "A100")
    roofline = compute_times("roofline", "A100")
    memory = roofline.seconds(kernel for kernel in block_kernels(request) if kernel.kind == "memory")
    products = 2 * 2048 * 4096 * (6144 + 2048) * 1e-15
    assert times.block_seconds(request) == pytest.approx(products + 2e-3 + memory)
    assert package.asked[0] == ("a100_sxm", "vllm", "current")
    head = {"head_size": 128}
    shape = {"is_context": True, "batch_size": 1, "s": 2048, "prefix": 0}
    assert ("ContextAttention", 16, 16, head, shape) in package.asked


def test_backward_attention_scales_with_the_flops(package):
    """5 products instead of 2: 2.5 x the forward kernel; the tables have no backward kernels."""
    request = BlockRequest(load_model("llama2-7b"), "attention_core", "dgrad", 2048, 2048, tp=2)
    assert compute_times("aiconfigurator", "H100").block_seconds(request) == pytest.approx(2.5 * 2e-3)
    assert package.asked[0] == ("h100_sxm", "vllm", "current")


def test_decode_asks_for_generation(package):
    """Batch 32 with 1,000 cached tokens."""
    request = BlockRequest(load_model("llama2-70b"), "attention_core", "forward", 32, 1000, 32, "decode", tp=8)
    assert compute_times("aiconfigurator", "H200").block_seconds(request) == pytest.approx(2e-3)
    assert package.asked[-1] == (
        "GenerationAttention", 8, 1, {"head_size": 128}, {"is_context": False, "batch_size": 32, "s": 1000}
    )  # fmt: skip


def test_prefill_of_a_chunk_names_what_came_before(package):
    """512 queries behind 1,536 cached tokens; with cp ranks each takes its part."""
    request = BlockRequest(load_model("llama2-7b"), "attention_core", "forward", 512, 2048, phase="prefill")
    times = compute_times("aiconfigurator", "B200")
    assert times.block_seconds(request) == pytest.approx(2e-3)
    assert package.asked[-1][-1] == {"is_context": True, "batch_size": 1, "s": 512, "prefix": 1536}
    assert times.block_seconds(replace(request, cp=4)) == pytest.approx(2e-3 / 4)
    assert package.asked[-1][-1] == {"is_context": True, "batch_size": 1, "s": 2048, "prefix": 0}


def test_experts_are_one_product_each(package):
    """Mixtral, ep 2: 4 experts with 2048 x 2 / 4 tokens each."""
    request = BlockRequest(load_model("mixtral-8x7b"), "experts", "forward", 2048, 2048, ep=2)
    compute_times("aiconfigurator", "A100").block_seconds(request)
    products = [(asked[1:3], asked[3]["x"]) for asked in package.asked if asked[0] == "GEMM"]
    assert products == [((28672, 4096), 1024), ((4096, 14336), 1024)]


def test_shapes_without_data_are_timed_by_the_roofline(package):
    """A head of 7 columns, far from any data."""
    model = load_model("llama2-7b").model_copy(update={"vocab": 7})
    request = BlockRequest(model, "logits", "forward", 2048, 2048)
    times = compute_times("aiconfigurator", "A100")
    assert times.block_seconds(request) == compute_times("roofline", "A100").block_seconds(request)
    assert package.asked[-1][0] == "GEMM"


def test_description(package):
    """Package and version, tables and version, and the roofline for the rest."""
    line = compute_times("aiconfigurator", "A100").description
    roofline = compute_times("roofline", "A100").description
    assert line == f"aiconfigurator-core 0.0 (a100_sxm, vllm {package.database.version}); what it lacks: {roofline}"


def test_gpu_without_tables(package):
    """The package has none of the V100S."""
    with pytest.raises(InputError, match=r"^aiconfigurator-core has no measured kernels of V100S-PCIE-32GB; use"):
        compute_times("aiconfigurator", "V100S")
    package.database = None
    with pytest.raises(InputError, match="has no measured kernels of A100"):
        compute_times("aiconfigurator", "A100")


@pytest.mark.usefixtures("package")
def test_another_interface(monkeypatch):
    """A release that lacks what is used: one line with the release, exit code 4."""
    monkeypatch.delattr(sys.modules["aiconfigurator_core.sdk.perf_database"], "get_database")
    with pytest.raises(
        MissingComponentError, match=r"^aiconfigurator-core 0\.0: cannot open A100-SXM4-80GB: "
    ) as error:
        compute_times("aiconfigurator", "A100")
    assert error.value.exit_code == 4


@pytest.mark.skipif(not INSTALLED, reason="aiconfigurator-core is not installed")
@pytest.mark.parametrize("gpu", ["A100", "H100", "H200", "B200"])
@pytest.mark.parametrize("name", ["gpt3-13b", "gpt3-175b", "llama2-7b", "llama3.1-405b"])
@pytest.mark.parametrize(("phase", "tokens"), [("train", 2048), ("decode", 32)])
def test_roofline_against_measured_products(gpu, name, phase, tokens):
    """The roofline's MLP lies within 20% of the measured kernels, compute-bound and memory-bound."""
    sequences = 1 if phase == "train" else tokens
    request = BlockRequest(load_model(name), "mlp", "forward", tokens, 2048, sequences, phase, tp=8)
    measured = compute_times("aiconfigurator", gpu).block_seconds(request)
    assert compute_times("roofline", gpu).block_seconds(request) == pytest.approx(measured, rel=0.2)
