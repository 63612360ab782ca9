"""How long a block of a model takes on a GPU: the interface that generators use.

    from r2cc_simai.workloads.blocks import BlockRequest
    from r2cc_simai.workloads.compute_times import block_cost, compute_times
    from r2cc_simai.workloads.models import load_model

    times = compute_times("roofline", gpu="A100-SXM4-80GB")         # or "csv" with table=Path, or "aiconfigurator"
    request = BlockRequest(load_model("gpt3-13b"), "mlp", "forward", tokens=2048, context=2048, tp=8)
    times.block_seconds(request)                                    # seconds
    times.description                                               # one line, recorded in each trace
    block_cost(times, request)                                      # seconds, FLOPs and memory bytes of the node

Which blocks, passes and phases there are: `r2cc_simai.workloads.blocks`. The kernels behind a block:
`r2cc_simai.workloads.kernels.block_kernels`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.blocks import BlockRequest
from r2cc_simai.workloads.gpus import load_gpu
from r2cc_simai.workloads.kernels import block_kernels

Source = Literal["roofline", "csv", "aiconfigurator"]
SOURCES: tuple[Source, ...] = get_args(Source)


class ComputeTimes(Protocol):
    """A model of compute times."""

    @property
    def description(self) -> str:
        """One line for the trace: which model of compute times, which GPU, with which parameters."""

    def block_seconds(self, request: BlockRequest) -> float:
        """Seconds that one rank takes for the block.

        Raises:
            InputError: this source of times does not know the block.
        """


@dataclass(frozen=True)
class BlockCost:
    """What a compute node of a trace records."""

    seconds: float
    flops: int  # model FLOPs: what recomputing kernels repeat is not counted
    bytes: int  # moved to and from the GPU's memory


def block_cost(times: ComputeTimes, request: BlockRequest) -> BlockCost:
    """Seconds by `times`, FLOPs and bytes by the block's kernels."""
    kernels = block_kernels(request)
    return BlockCost(
        seconds=times.block_seconds(request),
        flops=sum(kernel.flops for kernel in kernels),
        bytes=sum(kernel.bytes for kernel in kernels),
    )


def compute_times(
    source: str, gpu: str, table: Path | None = None, mfu_scale: float = 1.0, fallback: bool = False
) -> ComputeTimes:
    """The compute times that a user asks for.

    Args:
        source: `roofline`, `csv` (times of `table`, exact rows; with `fallback` the roofline where a row is
            missing), or `aiconfigurator` (needs the package aiconfigurator-core).
        gpu: GPU model, as `load_gpu` takes it.
        table: CSV of measured times.
        mfu_scale: the roofline's efficiencies are multiplied by it (calibration).
        fallback: with a table, use the roofline for blocks that it lacks instead of refusing.

    Raises:
        InputError: an unknown source or GPU, or a table that is absent or wrong.
        MissingComponentError: aiconfigurator-core is not installed.
    """
    from r2cc_simai.workloads.roofline import Roofline

    roofline = Roofline(load_gpu(gpu), mfu_scale)
    if source == "roofline":
        return roofline
    if source == "csv":
        from r2cc_simai.workloads.measured_times import MeasuredTimes

        if table is None:
            raise InputError("compute times from csv need a table: --compute-times FILE.csv")
        return MeasuredTimes(table, roofline, fallback)
    if source == "aiconfigurator":
        from r2cc_simai.workloads.aiconfigurator_times import AiconfiguratorTimes

        return AiconfiguratorTimes(roofline)
    raise InputError(f"{source!r}: no such source of compute times (allowed: {', '.join(SOURCES)})")
