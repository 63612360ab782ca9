"""A block of a model as one rank computes it: the unit of compute in a trace and of the compute times."""

from dataclasses import dataclass
from typing import Literal, get_args

from r2cc_simai.workloads.models import Model

Block = Literal[
    "attention",  # norm, query/key/value, rotation, scores and values, output projection, residual
    "attention_core",  # scores and values alone: what selective recomputation repeats
    "mlp",  # norm, the two or three products, residual
    "router",  # of an expert layer, before the dispatch: norm, router, permutation, shared experts
    "experts",  # of an expert layer, after the dispatch: the experts of this rank
    "embedding",  # look-up of the input tokens
    "logits",  # final norm, output head and, in training, the loss
    "optimizer",  # one step of mixed-precision Adam
]
Pass = Literal["forward", "backward", "dgrad", "wgrad"]  # backward = dgrad + wgrad
Phase = Literal["train", "prefill", "decode"]

BLOCKS: tuple[Block, ...] = get_args(Block)
PASSES: tuple[Pass, ...] = get_args(Pass)
PHASES: tuple[Phase, ...] = get_args(Phase)


@dataclass(frozen=True)
class BlockRequest:
    """One block of one layer, as one rank of a tensor-parallel group computes it.

    Attributes:
        model: the model.
        block: which block.
        pass_: forward, the input gradients, the weight gradients, or both gradients.
        tokens: tokens that the rank's tensor-parallel group works on: micro-batch x sequence / cp in training and
            prefill, the number of sequences in decode. 0 only for the optimizer.
        context: keys that the last token of a sequence sees: the sequence length, whole even under context
            parallelism; in decode the number of tokens in the KV cache.
        sequences: sequences among the tokens (the micro-batch size; in decode equal to `tokens`).
        phase: training, prefill or decode.
        tp: tensor-parallel size.
        cp: context-parallel size; `tokens` are already divided by it, `context` is not.
        ep: expert-parallel size.
        expert_tp: tensor-parallel size of the experts; None is that of the rest.
        sequence_parallel: norms and residuals are divided over the tensor-parallel group too.
        parameters: parameters that the rank updates; the optimizer's only.
        gradient_bytes: bytes of one accumulated gradient (4: fp32, 2: bf16).
    """

    model: Model
    block: Block
    pass_: Pass = "forward"
    tokens: int = 0
    context: int = 0
    sequences: int = 1
    phase: Phase = "train"
    tp: int = 1
    cp: int = 1
    ep: int = 1
    expert_tp: int | None = None
    sequence_parallel: bool = False
    parameters: int = 0
    gradient_bytes: int = 4

    @property
    def keys_per_query(self) -> float:
        """Keys that a query sees on average, under a causal mask.

        The queries of a sequence are its last ones: query i of q sees context - q + i keys. A whole sequence makes
        context / 2 on average (balanced over context-parallel ranks), a decoded token sees all.
        """
        if self.phase == "decode":
            return float(self.context)
        queries = self.tokens * self.cp / max(1, self.sequences)
        return self.context - queries / 2

    @property
    def dense_tokens(self) -> float:
        """Tokens on which norms and residuals work: divided over the group with sequence parallelism."""
        return self.tokens / (self.tp if self.sequence_parallel else 1)
