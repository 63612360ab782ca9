"""GPUs: peak rates, memory, and the share of them that kernels reach, as YAML files describe them."""

import difflib
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from r2cc_simai.config import Strict, read_yaml, validated
from r2cc_simai.errors import InputError
from r2cc_simai.paths import clusters_dir

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class Efficiency(Strict):
    """Share of a peak that kernels of a kind reach.

    Attributes:
        gemm: of the tensor cores' peak, matrix products of a thousand rows and more.
        attention: of the tensor cores' peak, flash attention with a causal mask (FLOPs as executed).
        memory: of the memory bandwidth, whatever moves bytes.
        source: where the figures come from.
    """

    gemm: Share
    attention: Share
    memory: Share
    source: str


class Gpu(Strict):
    """A GPU.

    Attributes:
        name: as cluster files name it.
        aliases: shorter names.
        peak_tflops: dense peak of fp16/bf16 tensor cores, 10^12 FLOP/s.
        fp8_tflops: dense peak of fp8; None where it has none.
        memory_gbytes_per_s: memory bandwidth, 10^9 bytes/s.
        memory_gb: memory size, 10^9 bytes.
        kernel_floor_us: time of a kernel beyond what it computes and moves.
        efficiency: shares of the peaks that kernels reach.
        aiconfigurator_system: its name in aiconfigurator-core; None where that has no measured kernels of it.
        source: data sheet.
    """

    name: str
    aliases: tuple[str, ...] = ()
    peak_tflops: Positive
    fp8_tflops: Positive | None = None
    memory_gbytes_per_s: Positive
    memory_gb: Positive
    kernel_floor_us: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    efficiency: Efficiency
    aiconfigurator_system: str | None = None
    source: str
    note: str = ""

    @property
    def peak_flops(self) -> float:
        """FLOP/s, dense, fp16/bf16."""
        return self.peak_tflops * 1e12

    @property
    def memory_rate(self) -> float:
        """Bytes per second."""
        return self.memory_gbytes_per_s * 1e9

    @property
    def kernel_floor(self) -> float:
        """Seconds."""
        return self.kernel_floor_us * 1e-6


def gpus_dir() -> Path:
    """Folder of the shipped GPUs (YAML)."""
    return clusters_dir().parent / "gpus"


def gpu_names() -> list[str]:
    """Names of the shipped GPUs, sorted; aliases are left out."""
    return sorted(gpu.name for gpu in _shipped())


@lru_cache(maxsize=64)
def load_gpu(text: str) -> Gpu:
    """The GPU `text`: the name or alias of a shipped one in any case, or a YAML file.

    Raises:
        InputError: there is no such GPU or file, or the file is wrong.
    """
    path = Path(text)
    if path.suffix in (".yml", ".yaml") or path.is_file():
        return _read(path)
    known = {name.lower(): gpu for gpu in _shipped() for name in (gpu.name, *gpu.aliases)}
    if text.lower() in known:
        return known[text.lower()]
    near = difflib.get_close_matches(text.lower(), known, n=3, cutoff=0.5)
    hint = f"{' or '.join(near)} was meant?" if near else f"allowed: {', '.join(gpu_names())}"
    raise InputError(f"{text!r}: no such GPU; {hint} (or a .yml file)")


def _read(path: Path) -> Gpu:
    return validated(Gpu, read_yaml(path), str(path))


@lru_cache(maxsize=1)
def _shipped() -> tuple[Gpu, ...]:
    return tuple(_read(path) for path in sorted(gpus_dir().glob("*.yml")))
