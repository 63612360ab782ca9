"""One GPU kernel as a roofline sees it: FLOPs, bytes, kind; and the kernels of its gradients."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gemm", "attention", "memory", "optimizer"]

ELEMENT = 2  # bytes of a weight or activation (bf16)

# The backward kernel of flash attention computes the scores again: 5 products where the gradients need 4 (Dao,
# arXiv 2307.08691, section 3.1.2), so it does 2.5 x the work of the forward kernel where 2 x is counted.
FLASH_BACKWARD_REPEATED = 1.25
# A fused element-wise kernel that reads x and writes y reads x and dy and writes dx in its backward pass.
MEMORY_BACKWARD = 1.5


@dataclass(frozen=True)
class Kernel:
    """A kernel.

    Attributes:
        name: what it computes.
        kind: which efficiency applies.
        flops: FLOPs of its matrix products, those of the model alone.
        bytes: read from and written to the GPU's memory.
        repeated: FLOPs executed for one that is counted.
        m, n, k: a product of m x k by k x n elements; 0 for other kernels.
        groups: matrices among which the m rows are divided (experts).
        accumulates: the product is added to what lies in memory, in the precision of the accumulated gradients.
    """

    name: str
    kind: Kind
    flops: int
    bytes: int
    repeated: float = 1.0
    m: int = 0
    n: int = 0
    k: int = 0
    groups: int = 1
    accumulates: bool = False


def gemm(name: str, m: float, n: float, k: float, groups: int = 1) -> Kernel:
    """Product of m x k activations by k x n weights, or by the weights of as many groups as the rows meet."""
    rows, columns, depth = round(m), round(n), round(k)
    moved = rows * depth + rows * columns + min(groups, max(1, rows)) * depth * columns
    return Kernel(name, "gemm", 2 * rows * columns * depth, ELEMENT * moved, m=rows, n=columns, k=depth, groups=groups)


def memory(name: str, elements: float) -> Kernel:
    """Element-wise kernel that reads and writes `elements` activations in all."""
    return Kernel(name, "memory", 0, round(ELEMENT * elements))


def input_gradient(kernel: Kernel) -> Kernel:
    """The kernel that computes the gradient of the kernel's input."""
    name = f"{kernel.name} dgrad"
    if kernel.kind == "gemm":
        return gemm(name, kernel.m, kernel.k, kernel.n, kernel.groups)
    if kernel.kind == "attention":
        return Kernel(name, "attention", 2 * kernel.flops, 2 * kernel.bytes, FLASH_BACKWARD_REPEATED)
    return Kernel(name, kernel.kind, 0, round(MEMORY_BACKWARD * kernel.bytes))


def weight_gradient(kernel: Kernel, gradient_bytes: int) -> Kernel:
    """The kernel that adds a product's weight gradient to the accumulated ones of `gradient_bytes` bytes each."""
    moved = ELEMENT * (kernel.m * kernel.n + kernel.m * kernel.k)
    accumulated = 2 * gradient_bytes * kernel.groups * kernel.n * kernel.k
    return Kernel(
        name=f"{kernel.name} wgrad",
        kind="gemm",
        flops=kernel.flops,
        bytes=moved + accumulated,
        m=kernel.n,
        n=kernel.k,
        k=kernel.m,
        accumulates=True,
    )
