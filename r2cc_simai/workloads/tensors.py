"""The parameter tensors that one rank holds, in the order in which Megatron-Core registers them.

The order decides how gradients fill buckets. Source: Megatron-LM, megatron/core/models/gpt/gpt_model.py,
megatron/core/transformer (attention.py, multi_latent_attention.py, mlp.py, moe/).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from r2cc_simai.workloads.blocks import Block
from r2cc_simai.workloads.layout import ParallelSizes
from r2cc_simai.workloads.model_math import experts_of
from r2cc_simai.workloads.models import Model

Division = Literal["tp", "replicated", "positions", "expert"]
"""tp: over the tensor-parallel ranks; replicated: whole on each of them, and under sequence parallelism each sees a
part of the tokens only; positions: whole, and each sees all tokens even then; expert: over expert-parallel ranks."""

Site = tuple[int, Block]
"""Layer (from 0; -1 outside of the layers) and block: the gradients of a site's tensors are ready together."""


@dataclass(frozen=True)
class Tensor:
    """One parameter tensor."""

    site: Site
    parameters: int
    """That this rank holds."""
    division: Division
    tied: bool = False
    """The word embedding where another pipeline stage holds a copy of it."""


def layer_tensors(model: Model, layer: int, sizes: ParallelSizes) -> Iterator[Tensor]:
    """Tensors of one transformer layer."""
    for division, parameters in _latent(model, sizes.tp) if model.latent_attention else _attention(model, sizes.tp):
        yield Tensor((layer, "attention"), parameters, division)
    if not model.is_expert_layer(layer):
        for division, parameters in (*_norm(model), *_mlp(model, model.ffn_hidden, sizes.tp)):
            yield Tensor((layer, "mlp"), parameters, division)
        return
    experts = experts_of(model)
    yield from (Tensor((layer, "router"), parameters, division) for division, parameters in _norm(model))
    yield Tensor((layer, "router"), experts.count * (model.hidden + experts.score_bias), "replicated")
    local = experts.count // sizes.ep
    for _, parameters in _mlp(model, experts.ffn_hidden, sizes.expert_tp):
        yield from (Tensor((layer, "experts"), parameters, "expert") for _ in range(local))
    if experts.shared:
        for division, parameters in _mlp(model, experts.ffn_hidden * experts.shared, sizes.tp):
            yield Tensor((layer, "router"), parameters, division)


def embedding_tensors(model: Model, sizes: ParallelSizes) -> Iterator[Tensor]:
    """Tensors of the first stage in front of its layers."""
    tied = model.tied_embeddings and sizes.pp > 1
    yield Tensor((-1, "embedding"), model.vocab // sizes.tp * model.hidden, "tp", tied)
    if model.positions == "learned":
        yield Tensor((-1, "embedding"), model.max_positions * model.hidden, "positions")


def logits_tensors(model: Model, sizes: ParallelSizes) -> Iterator[Tensor]:
    """Tensors of the last stage behind its layers; a tied head is held once where the stage has the embedding too."""
    yield from (Tensor((-1, "logits"), parameters, division) for division, parameters in _norm(model))
    if not model.tied_embeddings or sizes.pp > 1:
        yield Tensor((-1, "logits"), model.vocab // sizes.tp * model.hidden, "tp", model.tied_embeddings)


Part = tuple[Division, int]


def _norm(model: Model) -> list[Part]:
    return [("replicated", model.hidden)] * (2 if model.norm == "layernorm" else 1)


def _column(model: Model, inputs: int, outputs: int, tp: int) -> list[Part]:
    """A linear layer whose outputs are divided."""
    bias: list[Part] = [("tp", outputs // tp)] if model.biases else []
    return [("tp", inputs * outputs // tp), *bias]


def _row(model: Model, inputs: int, outputs: int, tp: int) -> list[Part]:
    """A linear layer whose inputs are divided; every rank has its bias."""
    bias: list[Part] = [("replicated", outputs)] if model.biases else []
    return [("tp", inputs * outputs // tp), *bias]


def _attention(model: Model, tp: int) -> list[Part]:
    width = model.heads * model.head_width
    both = width + 2 * model.key_heads * model.head_width
    return [*_norm(model), *_row(model, width, model.hidden, tp), *_column(model, model.hidden, both, tp)]


def _latent(model: Model, tp: int) -> list[Part]:
    latent = model.latent_attention
    assert latent is not None
    key_value = latent.kv_lora_rank + latent.qk_rope_head_dim
    return [
        *_norm(model),
        ("tp", model.heads * latent.v_head_dim * model.hidden // tp),
        ("replicated", model.hidden * latent.q_lora_rank),
        ("tp", latent.q_lora_rank * model.heads * latent.qk_head_dim // tp),
        ("replicated", model.hidden * key_value),
        ("tp", latent.kv_lora_rank * model.heads * (latent.qk_nope_head_dim + latent.v_head_dim) // tp),
        ("replicated", latent.q_lora_rank),
        ("replicated", latent.kv_lora_rank),
    ]


def _mlp(model: Model, inner: int, tp: int) -> list[Part]:
    first = inner * (2 if model.gated_mlp else 1)
    return [*_column(model, model.hidden, first, tp), *_row(model, inner, model.hidden, tp)]
