"""What the blocks of an engine step cost on one rank, and the bytes that it exchanges."""

import math
from collections.abc import Iterable
from functools import lru_cache

from r2cc_simai.workloads.blocks import Block, BlockRequest
from r2cc_simai.workloads.compute_times import ComputeTimes, block_cost
from r2cc_simai.workloads.engine_batches import Piece
from r2cc_simai.workloads.model_math import kv_heads_per_rank
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.segment import Cost
from r2cc_simai.workloads.serving_layout import ServingSizes
from r2cc_simai.workloads.step_costs import ACTIVATION_BYTES

TOKEN_BYTES = 4
"""Of a token's number (int32)."""
VOCAB_PADDING = 64
"""vLLM pads the vocabulary to a multiple of this (vocab_parallel_embedding.py)."""


def padded_vocab(vocab: int, tp: int) -> int:
    """Rows of the embedding that `tp` ranks share."""
    unit = math.lcm(VOCAB_PADDING, tp)
    return -(-vocab // unit) * unit


class ServingCosts:
    """Costs of blocks and sizes of messages of one batch; the model's vocabulary is padded."""

    def __init__(self, model: Model, sizes: ServingSizes, times: ComputeTimes) -> None:
        self.model = model.model_copy(update={"vocab": padded_vocab(model.vocab, sizes.tp)})
        self.sizes = sizes
        self._times = times
        self._cost = lru_cache(maxsize=None)(self._uncached)
        self.attention = lru_cache(maxsize=256)(self._attention)

    def block(self, block: Block, tokens: int, *, decoding: bool) -> Cost:
        """A block whose time does not depend on the context. Where copies of tokens travel to the experts, each rank
        of a tensor-parallel group routes its part of the tokens."""
        return self._cost(block, tokens, 0, tokens, decoding)

    def _attention(self, pieces: tuple[Piece, ...]) -> Cost:
        """Attention of a layer. The projections of a mixed batch are one product; the rest is done piece by piece."""
        if len(pieces) == 1:
            return self._piece("attention", pieces[0])
        sequences = sum(piece.sequences for piece in pieces)
        tokens = sum(piece.sequences * piece.tokens for piece in pieces)
        context = max(piece.context for piece in pieces)
        whole, core = (
            self._cost(block, tokens, context, sequences, False) for block in ("attention", "attention_core")
        )
        return _total((whole - core, *(self._piece("attention_core", piece) for piece in pieces)))

    def _piece(self, block: Block, piece: Piece) -> Cost:
        return self._cost(block, piece.sequences * piece.tokens, piece.context, piece.sequences, piece.decoding)

    def _uncached(self, block: Block, tokens: int, context: int, sequences: int, decoding: bool) -> Cost:
        sizes = self.sizes
        divided = block in ("router", "experts") and sizes.routes
        request = BlockRequest(
            model=self.model,
            block=block,
            tokens=self.part(tokens) if divided else tokens,
            context=context,
            sequences=sequences,
            phase="decode" if decoding else "prefill",
            tp=1 if divided else sizes.tp,
            ep=sizes.ep,
            expert_tp=sizes.expert_tp,
        )
        cost = block_cost(self._times, request)
        return Cost(round(cost.seconds * 1e9), cost.flops, cost.bytes)

    def part(self, tokens: int) -> int:
        """Tokens of a batch that each rank of a tensor-parallel group routes; the last ones are padding."""
        return -(-tokens // self.sizes.tp)

    def hidden_bytes(self, tokens: int) -> int:
        """Activations of tokens between two layers."""
        return tokens * self.model.hidden * ACTIVATION_BYTES

    def routed_bytes(self, tokens: int) -> int:
        """Copies of its part of the tokens that a rank sends to the experts, its own included."""
        assert self.model.experts is not None
        return self.hidden_bytes(self.part(tokens)) * self.model.experts.per_token

    def logits_bytes(self, sequences: int) -> int:
        """A rank's part of the logits of the last tokens of sequences."""
        return sequences * self.model.vocab // self.sizes.tp * ACTIVATION_BYTES

    def cached_bytes(self, tokens: int, layers: int) -> int:
        """Keys and values of tokens in this many layers that one rank holds; latent ones are whole on each rank."""
        model, latent = self.model, self.model.latent_attention
        if latent:
            width = latent.kv_lora_rank + latent.qk_rope_head_dim
        else:
            width = 2 * kv_heads_per_rank(model, self.sizes.tp) * model.head_width
        return layers * tokens * width * ACTIVATION_BYTES


def _total(costs: Iterable[Cost]) -> Cost:
    found = list(costs)
    return Cost(
        sum(cost.duration_ns for cost in found), sum(cost.flops for cost in found), sum(cost.bytes for cost in found)
    )
