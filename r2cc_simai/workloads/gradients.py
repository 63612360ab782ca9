"""How the gradients of a model chunk are summed over its replicas, and how updated parameters come back.

Without the distributed optimizer each bucket is one AllReduce. With it a bucket's gradients are reduce-scattered, each
replica updates its shard, and the bf16 parameters are gathered. As in Megatron-LM a chunk has one bucket unless
gradients overlap with the backward pass and it is the first chunk of the first stage: elsewhere the reduction is not
on the critical path. Source: Megatron-LM, megatron/core/distributed/distributed_data_parallel.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from r2cc_simai.chakra.schema import CommType
from r2cc_simai.workloads.blocks import Block
from r2cc_simai.workloads.buckets import Bucket, default_bucket_size, fill_buckets, padded
from r2cc_simai.workloads.layout import ParallelSizes
from r2cc_simai.workloads.megatron_options import MegatronOptions
from r2cc_simai.workloads.segment import SegmentBuilder
from r2cc_simai.workloads.step_costs import ACTIVATION_BYTES
from r2cc_simai.workloads.tensors import Site, Tensor


@dataclass(frozen=True)
class GradientBuffer:
    """Gradients of one chunk that the same ranks hold replicas of: the dense ones, or those of experts."""

    name: str
    kind: str
    """Kind of group that sums them."""
    replicas: int
    tensors: tuple[Tensor, ...]
    """In the order of the backward pass."""
    buckets: tuple[Bucket, ...]
    distributed: bool
    gradient_bytes: int

    @property
    def parameters(self) -> int:
        """That this rank holds."""
        return sum(bucket.parameters for bucket in self.buckets)

    @property
    def updated(self) -> int:
        """Parameters that this rank's optimizer updates."""
        if not self.distributed:
            return self.parameters
        return sum(padded(bucket.parameters, self.replicas) // self.replicas for bucket in self.buckets)

    def sites(self, bucket: Bucket) -> set[Site]:
        """Where the gradients of a bucket come from."""
        return {tensor.site for tensor in self.tensors[bucket.first : bucket.stop]}

    def reduce(self, b: SegmentBuilder, k: int) -> tuple[int, ...]:
        """Starts the sum of bucket `k`; returns what to wait for."""
        parameters = self.buckets[k].parameters
        if not self.distributed:
            size = parameters * self.gradient_bytes
            return b.start(f"{self.name}.bucket{k}.reduce", CommType.ALL_REDUCE, self.kind, size)
        size = padded(parameters, self.replicas) * self.gradient_bytes
        return b.start(f"{self.name}.bucket{k}.scatter", CommType.REDUCE_SCATTER, self.kind, size)

    def gather(self, b: SegmentBuilder, k: int, after: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Starts the gathering of bucket `k`'s parameters; returns what to wait for."""
        shard = padded(self.buckets[k].parameters, self.replicas) // self.replicas * ACTIVATION_BYTES
        return b.start(f"{self.name}.bucket{k}.gather", CommType.ALL_GATHER, self.kind, shard, after)


def gradient_buffers(
    chunk: int, tensors: Sequence[Tensor], options: MegatronOptions, sizes: ParallelSizes, *, critical: bool
) -> tuple[GradientBuffer, ...]:
    """The buffers of a chunk; empty ones are left out.

    Args:
        chunk: its number on the stage, for names.
        tensors: its parameters in the order of registration.
        options: resolved options.
        sizes: the layout.
        critical: its reduction is cut in buckets where it overlaps.
    """
    dense_kind = "dp_cp" if sizes.cp > 1 else "dp"
    buffers = []
    for name, kind, expert in (("gradients", dense_kind, False), ("expert_gradients", "expert_dp", True)):
        mine = tuple(tensor for tensor in reversed(tensors) if (tensor.division == "expert") == expert)
        if not mine:
            continue
        replicas = sizes.group_size(kind)
        limit = options.ddp_bucket_size or default_bucket_size(replicas)
        alone = [tensor.tied and options.use_distributed_optimizer for tensor in mine]
        sliced = critical and options.overlap_grad_reduce
        buckets = fill_buckets([tensor.parameters for tensor in mine], limit if sliced else None, alone)
        buffers.append(
            GradientBuffer(
                f"chunk{chunk}.{name}",
                kind,
                replicas,
                mine,
                buckets,
                options.use_distributed_optimizer,
                options.gradient_bytes,
            )
        )
    return tuple(buffers)


class OverlappedReduce:
    """Hook of the last backward pass of a chunk: starts a bucket's sum when all its gradients are there."""

    def __init__(self, buffers: Sequence[GradientBuffer]) -> None:
        self._missing = [
            (buffer, k, buffer.sites(bucket)) for buffer in buffers for k, bucket in enumerate(buffer.buckets)
        ]

    def __call__(self, b: SegmentBuilder, layer: int, block: Block) -> None:
        for buffer, k, sites in self._missing:
            if (layer, block) in sites:
                sites.remove((layer, block))
                if not sites:
                    b.leave_pending(buffer.reduce(b, k))


class OverlappedGather:
    """Hook of the first forward pass of a chunk: a block waits for its parameters.

    The buckets of a buffer are gathered in the order of the forward pass, one ahead of the one in use.
    """

    def __init__(self, buffers: Sequence[GradientBuffer]) -> None:
        self._lanes = [_GatherLane(buffer) for buffer in buffers]

    def __call__(self, b: SegmentBuilder, layer: int, block: Block) -> None:
        for lane in self._lanes:
            lane.need(b, (layer, block))


class _GatherLane:
    def __init__(self, buffer: GradientBuffer) -> None:
        self._buffer = buffer
        self._sites = [buffer.sites(bucket) for bucket in buffer.buckets]
        self._next = len(buffer.buckets) - 1  # the last bucket of the backward pass is the first of the forward pass
        self._ahead: tuple[int, ...] = ()
        self._waited = len(buffer.buckets)

    def need(self, b: SegmentBuilder, site: Site) -> None:
        """Waits for all buckets that hold tensors of the site."""
        wanted = min((k for k, sites in enumerate(self._sites) if site in sites), default=self._waited)
        while self._waited > wanted:
            if self._next == self._waited - 1:
                self._start(b)
            coming = self._ahead
            b.wait(coming)
            self._waited -= 1
            if self._next >= 0:
                self._start(b)

    def _start(self, b: SegmentBuilder) -> None:
        self._ahead = self._buffer.gather(b, self._next, self._ahead)
        self._next -= 1
