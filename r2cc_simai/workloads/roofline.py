"""Compute times from a roofline: the longer of computing and moving bytes, and a floor for each kernel."""

from collections.abc import Iterable
from dataclasses import dataclass

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.blocks import BlockRequest
from r2cc_simai.workloads.gpus import Gpu
from r2cc_simai.workloads.kernel import Kernel
from r2cc_simai.workloads.kernels import block_kernels


@dataclass(frozen=True)
class Roofline:
    """max(FLOPs / (peak x efficiency), bytes / (bandwidth x efficiency)) + floor, for each kernel.

    Source of the form: Williams et al., "Roofline", CACM 52(4), 2009. `mfu_scale` multiplies all efficiencies: one
    number that fits the model to a measured throughput.

    Raises:
        InputError: a scale that is not above zero.
    """

    gpu: Gpu
    mfu_scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.mfu_scale < float("inf"):
            raise InputError(f"MFU scale {self.mfu_scale:g}: a number above 0 is wanted")

    @property
    def description(self) -> str:
        """GPU and efficiencies."""
        e, scale = self.gpu.efficiency, self.mfu_scale
        scaled = "" if scale == 1 else f", all x {scale:.4g}"
        return (
            f"roofline {self.gpu.name}: {self.gpu.peak_tflops:g} TFLOP/s x {e.gemm:g} (gemm), x {e.attention:g} "
            f"(attention), {self.gpu.memory_gbytes_per_s:g} GB/s x {e.memory:g}, "
            f"{self.gpu.kernel_floor_us:g} us a kernel{scaled}"
        )

    def block_seconds(self, request: BlockRequest) -> float:
        """Seconds of a block's pass on one rank."""
        return self.seconds(block_kernels(request))

    def seconds(self, kernels: Iterable[Kernel]) -> float:
        """Seconds of kernels that run one after another."""
        return sum(map(self.kernel_seconds, kernels))

    def kernel_seconds(self, kernel: Kernel) -> float:
        """Seconds of one kernel."""
        efficiency = self.gpu.efficiency
        share = efficiency.attention if kernel.kind == "attention" else efficiency.gemm
        computing = kernel.flops * kernel.repeated / (self.gpu.peak_flops * share * self.mfu_scale)
        return max(computing, self.moving_seconds(kernel)) + self.gpu.kernel_floor

    def moving_seconds(self, kernel: Kernel) -> float:
        """Seconds in which the kernel's bytes pass the memory."""
        return kernel.bytes / (self.gpu.memory_rate * self.gpu.efficiency.memory * self.mfu_scale)
