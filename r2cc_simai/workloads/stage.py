"""The segments of one pipeline stage: forward and backward passes of its model chunks, and the end of the iteration."""

from collections.abc import Iterator

from r2cc_simai.chakra.schema import CommType
from r2cc_simai.workloads.context_ring import ring_tags
from r2cc_simai.workloads.gradients import GradientBuffer, OverlappedGather, OverlappedReduce, gradient_buffers
from r2cc_simai.workloads.layers import Hook, Layers, no_hook
from r2cc_simai.workloads.layout import NEXT_STAGE, PREVIOUS_STAGE
from r2cc_simai.workloads.segment import ONE_BEFORE, PENDING, Names, Segment, SegmentBuilder
from r2cc_simai.workloads.split import Chunk
from r2cc_simai.workloads.step_costs import LOSS_BYTES, StepCosts
from r2cc_simai.workloads.tensors import Tensor, embedding_tensors, layer_tensors, logits_tensors

LOSS_REDUCTIONS = ("maximum", "target", "sum")
"""AllReduces of the loss over a divided vocabulary (Megatron-LM, tensor_parallel/cross_entropy.py)."""
NORM_BYTES = 4
"""The squared norm of a rank's gradients (fp32)."""


class Stage:
    """Builds the segments of stage `stage`; `split` are the layers of [stage][chunk]."""

    def __init__(
        self, costs: StepCosts, split: tuple[tuple[Chunk, ...], ...], stage: int, roles: tuple[str, ...]
    ) -> None:
        self._costs, self._stage, self._roles = costs, stage, roles
        self._chunks = split[stage]
        self._pp, self._virtual = len(split), len(split) * len(self._chunks)
        self.names = Names()
        self._layers = Layers(costs, first_tag=2 * self._virtual)
        self.tensors = tuple(self._chunk_tensors(chunk) for chunk in range(len(self._chunks)))
        self.buffers = tuple(self._buffers(chunk) for chunk in range(len(self._chunks)))

    @property
    def parameters(self) -> int:
        """That a rank of this stage holds."""
        return sum(tensor.parameters for chunk in self.tensors for tensor in chunk)

    @property
    def tag_stride(self) -> int:
        """Tags of one micro-batch; the same for all stages."""
        rings = self._costs.model.layers * ring_tags(self._costs.sizes.cp) if self._costs.sizes.cp > 1 else 0
        return 2 * self._virtual + rings

    def forward(self, chunk: int, *, first: bool) -> Segment:
        """One micro-batch forward through a chunk; `first`: it gathers the parameters where that overlaps."""
        gathers = first and self._costs.options.overlap_param_gather
        before: Hook = OverlappedGather(self.buffers[chunk]) if gathers else no_hook
        b = SegmentBuilder(self.names, self._roles)
        virtual = self._virtual_stage(chunk)
        self._receive(b, "activation", PREVIOUS_STAGE, virtual > 0, 2 * virtual - 2)
        if virtual == 0:
            before(b, -1, "embedding")
            self._embedding_forward(b)
        for layer in self._chunks[chunk]:
            self._layers.forward(b, layer, before)
        if virtual == self._virtual - 1:
            before(b, -1, "logits")
            self._head_forward(b)
        else:
            b.send("activation.send", NEXT_STAGE, self._costs.shard_bytes, 2 * virtual)
        return b.build()

    def backward(self, chunk: int, *, last: bool) -> Segment:
        """One micro-batch backward through a chunk; `last`: it starts the sums of gradients where they overlap."""
        sums = last and self._costs.options.overlap_grad_reduce
        ready: Hook = OverlappedReduce(self.buffers[chunk]) if sums else no_hook
        b = SegmentBuilder(self.names, self._roles)
        virtual = self._virtual_stage(chunk)
        self._receive(b, "gradient", NEXT_STAGE, virtual < self._virtual - 1, 2 * virtual + 1)
        if virtual == self._virtual - 1:
            self._head_backward(b, ready)
        for layer in reversed(self._chunks[chunk]):
            self._layers.backward(b, layer, ready)
        if virtual == 0:
            self._embedding_backward(b, ready)
        else:
            b.send("gradient.send", PREVIOUS_STAGE, self._costs.shard_bytes, 2 * virtual - 1)
        return b.build()

    def update(self) -> Segment:
        """The end of the iteration: what is left of the gradients' sums, the optimizer step, new parameters."""
        b = SegmentBuilder(self.names, self._roles)
        options = self._costs.options
        buffers = [buffer for chunk in self.buffers for buffer in chunk]
        if options.overlap_grad_reduce:
            b.wait((PENDING,))
        else:
            for buffer in buffers:
                for k in range(len(buffer.buckets)):
                    b.stream = buffer.reduce(b, k) or b.stream
        self._finish_gradients(b)
        b.compute("optimizer", self._costs.optimizer(sum(buffer.updated for buffer in buffers)))
        if options.use_distributed_optimizer and not options.overlap_param_gather:
            for buffer in buffers:
                for k in reversed(range(len(buffer.buckets))):
                    b.stream = buffer.gather(b, k) or b.stream
        return b.build()

    def _finish_gradients(self, b: SegmentBuilder) -> None:
        """Gradients that not only replicas share (Megatron-LM, distributed/finalize_model_grads.py), and their norm."""
        options = self._costs.options
        tensors = [tensor for chunk in self.tensors for tensor in chunk]
        if options.sequence_parallel:
            shared = sum(tensor.parameters for tensor in tensors if tensor.division == "replicated")
            b.collective("norm_gradients.reduce", CommType.ALL_REDUCE, "tp", shared * options.gradient_bytes)
        tied = sum(tensor.parameters for tensor in tensors if tensor.tied)
        if tied:
            b.collective("embedding_gradients.reduce", CommType.ALL_REDUCE, "embedding", tied * options.gradient_bytes)
        everyone = "world" if options.use_distributed_optimizer else "model"
        b.collective("gradient_norm.reduce", CommType.ALL_REDUCE, everyone, NORM_BYTES)

    def _virtual_stage(self, chunk: int) -> int:
        return chunk * self._pp + self._stage

    def _receive(self, b: SegmentBuilder, what: str, peer: int, wanted: bool, tag: int) -> None:
        if wanted:
            b.wait(b.receive(f"{what}.receive", peer, self._costs.shard_bytes, tag, (ONE_BEFORE,)))

    def _embedding_forward(self, b: SegmentBuilder) -> None:
        """Each rank looks up its part of the vocabulary; with learned positions all have the whole sum."""
        costs = self._costs
        b.compute("embedding.forward", costs.block("embedding", "forward"))
        if costs.options.sequence_parallel and costs.model.positions == "learned":
            b.collective("embedding.forward.reduce", CommType.ALL_REDUCE, "tp", costs.hidden_bytes)
        else:
            self._layers.leave(b, "embedding.forward")

    def _embedding_backward(self, b: SegmentBuilder, ready: Hook) -> None:
        self._layers.return_gradient(b, "embedding.backward")
        b.compute("embedding.backward", self._costs.block("embedding", "wgrad"))
        ready(b, -1, "embedding")

    def _head_forward(self, b: SegmentBuilder) -> None:
        costs = self._costs
        self._layers.enter(b, "logits.forward", "logits")
        b.compute("logits.forward", costs.block("logits", "forward"))
        for what in LOSS_REDUCTIONS:
            b.collective(f"loss.{what}.reduce", CommType.ALL_REDUCE, "tp", costs.tokens * LOSS_BYTES)

    def _head_backward(self, b: SegmentBuilder, ready: Hook) -> None:
        self._layers.block_backward(b, -1, "logits", "logits.backward", ready, gather=False)

    def _head_tensors(self) -> Iterator[Tensor]:
        return logits_tensors(self._costs.model, self._costs.sizes)

    def _chunk_tensors(self, chunk: int) -> tuple[Tensor, ...]:
        model, sizes = self._costs.model, self._costs.sizes
        virtual = self._virtual_stage(chunk)
        tensors = list(embedding_tensors(model, sizes)) if virtual == 0 else []
        for layer in self._chunks[chunk]:
            tensors += layer_tensors(model, layer, sizes)
        if virtual == self._virtual - 1:
            tensors += self._head_tensors()
        return tuple(tensors)

    def _buffers(self, chunk: int) -> tuple[GradientBuffer, ...]:
        critical = self._stage == 0 and chunk == 0
        return gradient_buffers(chunk, self.tensors[chunk], self._costs.options, self._costs.sizes, critical=critical)
