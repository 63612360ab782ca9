"""Compute times from the measured kernels of the optional package aiconfigurator-core."""

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from r2cc_simai.errors import InputError, MissingComponentError
from r2cc_simai.workloads.attention_kernels import attention_core
from r2cc_simai.workloads.blocks import BlockRequest
from r2cc_simai.workloads.kernel import Kernel
from r2cc_simai.workloads.kernels import block_kernels
from r2cc_simai.workloads.model_math import kv_heads_per_rank
from r2cc_simai.workloads.roofline import Roofline

PACKAGE = "aiconfigurator-core"
BACKEND = "vllm"  # its dense products are torch's, which training calls too
_MILLISECOND = 1e-3


class AiconfiguratorTimes:
    """Matrix products and attention as measured on the GPU (bf16), interpolated by aiconfigurator-core.

    Expert products count as one product for each expert. A backward attention kernel takes the measured forward time
    x the ratio of FLOPs. What the tables lack is timed by the roofline: element-wise kernels, the optimizer, latent
    attention, and shapes far from any that was measured.

    Args:
        roofline: the GPU, and the times of what the tables lack.

    Raises:
        MissingComponentError: the package is not installed, or its interface is another one.
        InputError: it has no table of the GPU.
    """

    def __init__(self, roofline: Roofline) -> None:
        self.roofline = roofline
        self._tables = _Tables.open(roofline)

    @property
    def description(self) -> str:
        """Package, version, tables, and the roofline for the rest."""
        return f"{self._tables.name}; what it lacks: {self.roofline.description}"

    def block_seconds(self, request: BlockRequest) -> float:
        """Seconds of a block's pass on one rank."""
        return sum(self._kernel_seconds(kernel, request) for kernel in block_kernels(request))

    def _kernel_seconds(self, kernel: Kernel, request: BlockRequest) -> float:
        measured = None
        if kernel.kind == "gemm":
            rows = max(1, kernel.m // kernel.groups)
            one = self._tables.product(rows, kernel.n, kernel.k)
            measured = None if one is None else one * min(kernel.groups, max(1, kernel.m))
        elif kernel.kind == "attention" and request.model.latent_attention is None:
            forward = attention_core(replace(request, pass_="forward"))
            one = self._tables.attention(request)
            measured = None if one is None else one * kernel.flops * kernel.repeated / forward.flops
        if measured is None:
            return self.roofline.kernel_seconds(kernel)
        # The measured products write a bf16 result; the sum over micro-batches is in more and larger bytes.
        return max(measured, self.roofline.moving_seconds(kernel)) if kernel.accumulates else measured


@dataclass
class _Tables:
    """The measured kernels of one GPU; None where they cannot answer."""

    name: str
    database: Any

    @classmethod
    def open(cls, roofline: Roofline) -> "_Tables":
        try:
            installed = version(PACKAGE)
            databases = import_module("aiconfigurator_core.sdk.perf_database")
        except (PackageNotFoundError, ImportError):
            raise MissingComponentError(
                f"compute times from aiconfigurator need the package {PACKAGE}: pip install {PACKAGE}"
            ) from None
        gpu = roofline.gpu
        if gpu.aiconfigurator_system is None:
            raise InputError(f"{PACKAGE} has no measured kernels of {gpu.name}; use the roofline or a table")
        try:
            database = databases.get_database(gpu.aiconfigurator_system, BACKEND, "current")
        except (AttributeError, TypeError, ValueError) as error:
            raise MissingComponentError(f"{PACKAGE} {installed}: cannot open {gpu.name}: {error}") from None
        if database is None:
            raise InputError(f"{PACKAGE} {installed} has no measured kernels of {gpu.name}; use the roofline")
        release = f"{gpu.aiconfigurator_system}, {BACKEND} {database.version}"
        return cls(f"{PACKAGE} {installed} ({release})", database)

    def product(self, m: int, n: int, k: int) -> float | None:
        """Seconds of an m x k by k x n product."""
        key = (m, n, k)
        if key not in self._products:
            op = self._operations.GEMM("product", 1, n, k, self._common.GEMMQuantMode.bfloat16)
            self._products[key] = self._evaluate(op, is_context=True, batch_size=1, s=m, x=m)
        return self._products[key]

    def attention(self, request: BlockRequest) -> float | None:
        """Seconds of the forward attention kernel of a rank."""
        model = request.model
        heads, kv_heads = max(1, model.heads // request.tp), kv_heads_per_rank(model, request.tp)
        kind = self._common
        cache = kind.KVCacheQuantMode.bfloat16
        width = model.head_width
        if request.phase == "decode":
            op = self._operations.GenerationAttention("attention", 1, heads, kv_heads, cache, head_size=width)
            return self._evaluate(op, is_context=False, batch_size=request.tokens, s=request.context)
        queries = request.tokens * request.cp // max(1, request.sequences)
        op = self._operations.ContextAttention(
            "attention", 1, heads, kv_heads, cache, kind.FMHAQuantMode.bfloat16, head_size=width
        )
        earlier = request.context - queries
        whole = self._evaluate(op, is_context=True, batch_size=request.sequences, s=queries, prefix=earlier)
        return None if whole is None else whole / request.cp

    def _evaluate(self, op: Any, **shape: Any) -> float | None:
        try:
            answer = self._handle.evaluate_ops_json(self._engine.build_ops_json([op]), **shape)
        except self._absent:
            return None
        milliseconds = float(answer[0][1])
        return milliseconds * _MILLISECOND

    @cached_property
    def _products(self) -> dict[tuple[int, int, int], float | None]:
        return {}

    @cached_property
    def _engine(self) -> Any:
        return import_module("aiconfigurator_core.sdk.engine")

    @cached_property
    def _handle(self) -> Any:
        return self._engine.EngineHandle.for_database(self.database)

    @cached_property
    def _operations(self) -> Any:
        return import_module("aiconfigurator_core.sdk.operations")

    @cached_property
    def _common(self) -> Any:
        return import_module("aiconfigurator_core.sdk.common")

    @cached_property
    def _absent(self) -> type[Exception]:
        absent: type[Exception] = import_module("aiconfigurator_core.sdk.errors").PerfDataNotAvailableError
        return absent
