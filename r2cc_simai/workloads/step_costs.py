"""What the blocks of a training step cost on one rank, and the bytes that it exchanges."""

from functools import cached_property, lru_cache

from r2cc_simai.workloads.blocks import Block, BlockRequest, Pass
from r2cc_simai.workloads.compute_times import ComputeTimes, block_cost
from r2cc_simai.workloads.layout import ParallelSizes
from r2cc_simai.workloads.megatron_options import MegatronOptions
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.segment import Cost

ACTIVATION_BYTES = 2
"""Of an activation or parameter in bf16."""
LOSS_BYTES = 4
"""Of a partial result of the loss (fp32)."""


class StepCosts:
    """Costs of blocks and sizes of messages of one micro-batch; resolved options."""

    def __init__(self, model: Model, options: MegatronOptions, sizes: ParallelSizes, times: ComputeTimes) -> None:
        self.model, self.options, self.sizes = model, options, sizes
        self._times = times
        self.block = lru_cache(maxsize=None)(self._block)

    def _block(self, block: Block, pass_: Pass) -> Cost:
        return self._cost(block, pass_, self.tokens, 0)

    def optimizer(self, parameters: int) -> Cost:
        """One optimizer step over this many parameters."""
        return self._cost("optimizer", "forward", 0, parameters)

    def _cost(self, block: Block, pass_: Pass, tokens: int, parameters: int) -> Cost:
        options, sizes = self.options, self.sizes
        request = BlockRequest(
            model=self.model,
            block=block,
            pass_=pass_,
            tokens=tokens,
            context=options.seq_length or 0,
            sequences=options.micro_batch_size,
            tp=sizes.tp,
            cp=sizes.cp,
            ep=sizes.ep,
            expert_tp=sizes.expert_tp,
            sequence_parallel=options.sequence_parallel,
            parameters=parameters,
            gradient_bytes=options.gradient_bytes,
        )
        cost = block_cost(self._times, request)
        return Cost(round(cost.seconds * 1e9), cost.flops, cost.bytes)

    @cached_property
    def tokens(self) -> int:
        """Tokens of a micro-batch that a tensor-parallel group works on."""
        return self.options.micro_batch_size * (self.options.seq_length or 0) // self.sizes.cp

    @cached_property
    def hidden_bytes(self) -> int:
        """Activations of those tokens between two layers, whole."""
        return self.tokens * self.model.hidden * ACTIVATION_BYTES

    @cached_property
    def shard_bytes(self) -> int:
        """The part of them that a rank holds between two layers."""
        return self.hidden_bytes // (self.sizes.tp if self.options.sequence_parallel else 1)

    def input_bytes(self, block: Block) -> int:
        """What a divided block's input takes, whole.

        Latent attention gathers the low-rank queries, keys and values: each rank projects its own tokens down.
        """
        latent = self.model.latent_attention
        if block != "attention" or latent is None:
            return self.hidden_bytes
        return self.tokens * (latent.q_lora_rank + latent.kv_lora_rank + latent.qk_rope_head_dim) * ACTIVATION_BYTES

    @cached_property
    def routed_bytes(self) -> int:
        """Copies of its tokens that a rank sends to the experts, its own experts included."""
        assert self.model.experts is not None
        return self.shard_bytes * self.model.experts.per_token

    @cached_property
    def key_value_bytes(self) -> int:
        """Keys and values of a rank's tokens and heads."""
        model, latent = self.model, self.model.latent_attention
        if latent:  # the ring carries them as attention reads them, after the up-projection
            width = model.heads * (latent.qk_head_dim + latent.v_head_dim)
        else:
            width = 2 * model.key_heads * model.head_width
        return self.tokens * width // self.sizes.tp * ACTIVATION_BYTES
