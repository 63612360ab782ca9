"""One step of a serving engine on one pipeline stage, with the communication of tensor, pipeline and expert
parallelism where vLLM has it.

An AllReduce over the tensor-parallel group ends the embedding, each attention and each MLP. Between stages each rank
sends its part of the activations, and the receiving stage gathers the parts; models whose norms add the residual send
that too. The last stage gathers the logits of the sequences that get a token on all its ranks, and sends the tokens to
the first one, whose next step needs them (in vLLM they take the way through the scheduler). Experts within one replica
are summed like an MLP. Over several replicas either copies of the tokens travel to whole experts and back (AllToAll),
each rank routing its part of the tokens (as with DeepEP; vLLM's default backend gathers them instead); or all replicas
gather all tokens, compute a part of every expert, and scatter the sums.
Source: vLLM, vllm/model_executor/layers (linear.py, vocab_parallel_embedding.py, logits_processor.py, fused_moe/),
vllm/distributed/parallel_state.py, send_tensor_dict.
"""

from collections.abc import Sequence

from r2cc_simai.chakra.schema import CommType
from r2cc_simai.workloads.blocks import Block
from r2cc_simai.workloads.engine_batches import Batch, Step
from r2cc_simai.workloads.layout import NEXT_STAGE, PREVIOUS_STAGE
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.segment import ONE_BEFORE, SegmentBuilder
from r2cc_simai.workloads.serving_costs import TOKEN_BYTES, ServingCosts
from r2cc_simai.workloads.serving_layout import Layers

TAGS_OF_STEP = 3
"""Activations, residual, tokens."""
TOKEN_TAG = 2


def passed_tensors(model: Model) -> tuple[str, ...]:
    """What a stage sends to the next one."""
    return ("activation", "residual") if model.norm == "rmsnorm" else ("activation",)


class ServingStage:
    """Adds engine steps of one pipeline stage to segments.

    Args:
        costs: of the replicas that the stage belongs to.
        split: layers of each stage.
        stage: which one.
        tp: kind of the tensor-parallel groups' role.
        first_tag: tags from there on belong to the steps, TAGS_OF_STEP to each.
    """

    def __init__(
        self, costs: ServingCosts, split: Sequence[Layers], stage: int, tp: str = "tp", first_tag: int = 0
    ) -> None:
        self._costs, self._layers, self._tp, self._first_tag = costs, split[stage], tp, first_tag
        self._first, self._last, self._alone = stage == 0, stage == len(split) - 1, len(split) == 1

    def add(self, b: SegmentBuilder, step: Step) -> None:
        """One step."""
        batch, phase = step.batch, "decode" if step.batch.decoding else "prefill"
        if self._first:
            self._await_tokens(b, step, phase)
            self._compute(b, f"{phase}.embedding", "embedding", batch)
            self._sum(b, f"{phase}.embedding", batch.tokens)
        else:
            self._receive(b, step, phase)
        for layer in self._layers:
            self._layer(b, batch, f"{phase}.layer{layer}", layer)
        if self._last:
            self._sample(b, step, phase)
        else:
            self._send(b, step, phase)

    def _await_tokens(self, b: SegmentBuilder, step: Step, phase: str) -> None:
        if step.awaited and not self._alone:
            size, tag = step.awaited * TOKEN_BYTES, self._tag(step.before, TOKEN_TAG)
            b.wait(b.receive(f"{phase}.tokens.receive", PREVIOUS_STAGE, size, tag, (ONE_BEFORE,)))

    def _receive(self, b: SegmentBuilder, step: Step, phase: str) -> None:
        part = self._part_bytes(step.batch)
        tensors = passed_tensors(self._costs.model)
        for k, what in enumerate(tensors):
            b.wait(b.receive(f"{phase}.{what}.receive", PREVIOUS_STAGE, part, self._tag(step.number, k), (ONE_BEFORE,)))
        for what in tensors:
            b.collective(f"{phase}.{what}.gather", CommType.ALL_GATHER, self._tp, part)

    def _send(self, b: SegmentBuilder, step: Step, phase: str) -> None:
        for k, what in enumerate(passed_tensors(self._costs.model)):
            b.send(f"{phase}.{what}.send", NEXT_STAGE, self._part_bytes(step.batch), self._tag(step.number, k))

    def _part_bytes(self, batch: Batch) -> int:
        return self._costs.hidden_bytes(batch.tokens) // self._costs.sizes.tp

    def _tag(self, number: int, what: int) -> int:
        return self._first_tag + number * TAGS_OF_STEP + what

    def _layer(self, b: SegmentBuilder, batch: Batch, label: str, layer: int) -> None:
        b.compute(f"{label}.attention", self._costs.attention(batch.pieces))
        self._sum(b, f"{label}.attention", batch.tokens)
        if not self._costs.model.is_expert_layer(layer):
            self._compute(b, f"{label}.mlp", "mlp", batch)
            self._sum(b, f"{label}.mlp", batch.tokens)
            return
        self._compute(b, f"{label}.router", "router", batch)
        if self._costs.sizes.routes:
            self._routed_experts(b, batch, label)
        else:
            self._divided_experts(b, batch, label)

    def _routed_experts(self, b: SegmentBuilder, batch: Batch, label: str) -> None:
        """Copies of tokens to the ranks of their experts and back; then all ranks of a replica gather all tokens."""
        costs = self._costs
        b.collective(f"{label}.dispatch", CommType.ALL_TO_ALL, "ep", costs.routed_bytes(batch.tokens))
        self._compute(b, f"{label}.experts", "experts", batch)
        b.collective(f"{label}.combine", CommType.ALL_TO_ALL, "ep", costs.routed_bytes(batch.tokens))
        part = costs.hidden_bytes(costs.part(batch.tokens))
        b.collective(f"{label}.experts.gather", CommType.ALL_GATHER, self._tp, part)

    def _divided_experts(self, b: SegmentBuilder, batch: Batch, label: str) -> None:
        """Every rank of a replica, or of all, computes a part of what the experts make of all tokens."""
        size, dp = self._costs.hidden_bytes(batch.tokens), self._costs.sizes.dp
        if dp > 1:
            b.collective(f"{label}.dispatch", CommType.ALL_GATHER, "dp", size)
        self._compute(b, f"{label}.experts", "experts", batch)
        if dp > 1:
            b.collective(f"{label}.combine", CommType.REDUCE_SCATTER, "dp", dp * size)
        self._sum(b, f"{label}.experts", batch.tokens)

    def _sample(self, b: SegmentBuilder, step: Step, phase: str) -> None:
        sequences = step.batch.sampled
        if not sequences:
            return
        b.compute(f"{phase}.logits", self._costs.block("logits", sequences, decoding=step.batch.decoding))
        b.collective(f"{phase}.logits.gather", CommType.ALL_GATHER, self._tp, self._costs.logits_bytes(sequences))
        if step.returned and not self._alone:
            size = step.returned * TOKEN_BYTES
            b.send(f"{phase}.tokens.send", NEXT_STAGE, size, self._tag(step.number, TOKEN_TAG))

    def _compute(self, b: SegmentBuilder, name: str, block: Block, batch: Batch) -> None:
        b.compute(name, self._costs.block(block, batch.tokens, decoding=batch.decoding))

    def _sum(self, b: SegmentBuilder, name: str, tokens: int) -> None:
        b.collective(f"{name}.reduce", CommType.ALL_REDUCE, self._tp, self._costs.hidden_bytes(tokens))
