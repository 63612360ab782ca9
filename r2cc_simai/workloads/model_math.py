"""Closed forms of a model: parameters by part, parameters that a rank holds, FLOPs of a token."""

from dataclasses import dataclass
from math import ceil
from typing import Literal

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.models import Experts, LatentAttention, Model

LayerKind = Literal["dense", "expert"]


@dataclass(frozen=True)
class LayerParameters:
    """Parameters of one layer, by part; of an expert layer `experts` holds all routed ones."""

    attention: int
    mlp: int  # dense layers
    router: int
    shared_experts: int
    experts: int
    norms: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.attention + self.mlp + self.router + self.shared_experts + self.experts + self.norms

    @property
    def replicated(self) -> int:
        """All but the routed experts: what data-parallel replicas of a layer have in common."""
        return self.total - self.experts


@dataclass(frozen=True)
class Parameters:
    """Parameters of a model, by part.

    `active` counts what one token passes through: of the routed experts the top-k ones, everything else whole.
    """

    embedding: int
    positions: int
    attention: int
    mlp: int
    router: int
    shared_experts: int
    experts: int
    norms: int
    head: int  # 0 where it is tied to the embedding
    total: int
    active: int


def layer_kind(model: Model, layer: int) -> LayerKind:
    """Kind of layer `layer`, counted from 0."""
    return "expert" if model.is_expert_layer(layer) else "dense"


def layer_parameters(model: Model, kind: LayerKind) -> LayerParameters:
    """Parameters of one layer of a kind.

    Raises:
        InputError: the model has no expert layers.
    """
    return rank_layer_parameters(model, kind)


def rank_layer_parameters(
    model: Model, kind: LayerKind, tp: int = 1, ep: int = 1, expert_tp: int | None = None
) -> LayerParameters:
    """Parameters of one layer that one rank holds.

    Column-parallel weights and biases, row-parallel weights, and experts are divided; norms, the router, biases of
    row-parallel layers and the low-rank projections of latent attention are on every rank of the group. Where there
    are fewer key/value heads than ranks, ranks share them.

    Args:
        model: the model.
        kind: dense or expert layer.
        tp: tensor-parallel size.
        ep: expert-parallel size.
        expert_tp: tensor-parallel size of the experts; None is `tp`.

    Raises:
        InputError: the model has no expert layers.
    """
    norm = norm_parameters(model)
    attention, inner_norms = _attention(model, tp)
    if kind == "dense":
        mlp = mlp_parameters(model, model.ffn_hidden, tp)
        return LayerParameters(attention, mlp, 0, 0, 0, 2 * norm + inner_norms)
    experts = experts_of(model)
    each = mlp_parameters(model, experts.ffn_hidden, expert_tp or tp)
    shared = mlp_parameters(model, experts.ffn_hidden * experts.shared, tp) if experts.shared else 0
    router = experts.count * (model.hidden + experts.score_bias)
    return LayerParameters(attention, 0, router, shared, experts.count // ep * each, 2 * norm + inner_norms)


def parameters(model: Model, vocab: int | None = None) -> Parameters:
    """Parameters of the whole model; `vocab` replaces the model's own (padded vocabularies)."""
    dense = layer_parameters(model, "dense")
    layers = [(model.layers - model.expert_layers, dense)]
    if model.experts:
        layers.append((model.expert_layers, layer_parameters(model, "expert")))

    def over_layers(part: str) -> int:
        return sum(int(count * getattr(layer, part)) for count, layer in layers)

    table = (vocab or model.vocab) * model.hidden
    positions = model.max_positions * model.hidden if model.positions == "learned" else 0
    head = 0 if model.tied_embeddings else table
    total = table + positions + head + norm_parameters(model) + over_layers("total")
    experts = over_layers("experts")
    idle = experts - experts * model.experts.per_token // model.experts.count if model.experts else 0
    return Parameters(
        embedding=table,
        positions=positions,
        attention=over_layers("attention"),
        mlp=over_layers("mlp"),
        router=over_layers("router"),
        shared_experts=over_layers("shared_experts"),
        experts=experts,
        norms=over_layers("norms") + norm_parameters(model),
        head=head,
        total=total,
        active=total - idle,
    )


def padded_vocab(model: Model, tp: int, divisor: int = 128) -> int:
    """Rows of the embedding that `tp` ranks share: a multiple of divisor x tp, as Megatron-LM pads."""
    multiple = divisor * tp
    return ceil(model.vocab / multiple) * multiple


def norm_parameters(model: Model) -> int:
    """Parameters of one norm over the hidden size."""
    return model.hidden * (2 if model.norm == "layernorm" else 1)


def mlp_parameters(model: Model, ffn_hidden: int, tp: int = 1) -> int:
    """Parameters of an MLP of inner width `ffn_hidden` that one of `tp` ranks holds."""
    inner = ffn_hidden // tp
    weights = (3 if model.gated_mlp else 2) * model.hidden * inner
    biases = (2 if model.gated_mlp else 1) * inner + model.hidden
    return weights + (biases if model.biases else 0)


def kv_heads_per_rank(model: Model, tp: int) -> int:
    """Key/value heads of a rank; at least one, which ranks share where there are fewer heads than ranks."""
    return max(1, model.key_heads // tp)


def matmul_parameters(model: Model) -> int:
    """Weights that multiply each token: active linear layers with the output head; no table look-up, bias or norm."""
    layers = [("dense", model.layers - model.expert_layers), ("expert", model.expert_layers)]
    total = model.vocab * model.hidden
    for kind, count in layers:
        if count:
            total += count * (attention_weights(model) + _mlp_weights(model, kind == "expert"))
    return total


def flops_forward(model: Model, seq: int, causal: bool = True) -> float:
    """FLOPs of one token's forward pass, averaged over a sequence of `seq` tokens.

    Two per weight that multiplies, and for scores and values 2 x 2 x seq x width of all heads for each layer; half of
    that with `causal`, since on average a token sees half of the sequence (what flash attention computes). Narayanan
    et al. (arXiv 2104.04473, appendix) and 12 L H s (PaLM, arXiv 2204.02311, appendix B) count it whole. Element-wise
    work is not counted.
    """
    latent = model.latent_attention
    width = model.heads * ((latent.qk_head_dim + latent.v_head_dim) if latent else 2 * model.head_width)
    scores_and_values = 2 * seq * width * model.layers
    return 2 * matmul_parameters(model) + scores_and_values / (2 if causal else 1)


def flops_training(model: Model, seq: int, causal: bool = True) -> float:
    """FLOPs of one token's forward and backward pass: three times the forward pass; nothing is recomputed."""
    return 3 * flops_forward(model, seq, causal)


def attention_weights(model: Model) -> int:
    """Weights of the linear layers of attention, biases and norms left out."""
    latent = model.latent_attention
    if latent:
        return _latent_low_rank(model, latent) + _latent_up(model, latent)
    heads = 2 * model.heads + 2 * model.key_heads
    return model.hidden * heads * model.head_width


def experts_of(model: Model) -> Experts:
    """The model's experts section.

    Raises:
        InputError: it has none.
    """
    if model.experts is None:
        raise InputError(f"{model.name}: has no expert layers; use a mixture-of-experts model")
    return model.experts


def _mlp_weights(model: Model, expert: bool) -> int:
    matrices = 3 if model.gated_mlp else 2
    if not expert:
        return matrices * model.hidden * model.ffn_hidden
    experts = experts_of(model)
    visited = experts.per_token + experts.shared
    return matrices * model.hidden * experts.ffn_hidden * visited + model.hidden * experts.count


def _attention(model: Model, tp: int) -> tuple[int, int]:
    """Parameters of attention on one of `tp` ranks, and those of the norms inside it."""
    latent = model.latent_attention
    if latent:
        weights = _latent_low_rank(model, latent) + _latent_up(model, latent) // tp
        return weights, latent.q_lora_rank + latent.kv_lora_rank
    query = model.heads * model.head_width // tp
    key_value = 2 * kv_heads_per_rank(model, tp) * model.head_width
    weights = model.hidden * (2 * query + key_value)
    return weights + (query + key_value + model.hidden if model.biases else 0), 0


def _latent_low_rank(model: Model, latent: LatentAttention) -> int:
    """Projections into the low ranks."""
    return model.hidden * (latent.q_lora_rank + latent.kv_lora_rank + latent.qk_rope_head_dim)


def _latent_up(model: Model, latent: LatentAttention) -> int:
    """Projections from the low ranks to the heads, and the output projection."""
    queries = latent.q_lora_rank * latent.qk_head_dim
    keys_values = latent.kv_lora_rank * (latent.qk_nope_head_dim + latent.v_head_dim)
    return model.heads * (queries + keys_values + latent.v_head_dim * model.hidden)
