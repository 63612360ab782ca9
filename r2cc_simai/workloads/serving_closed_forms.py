"""What the steps of a serving engine add up to, by formulas over sizes, model and load alone.

Symbols: R replicas; W tokens that one works on; Z tokens that one samples; K pairs of a new token and a key that it
sees; h, V, L hidden size, padded vocabulary, layers; e expert layers; q stages; n tensors passed between stages.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from r2cc_simai.workloads.engine_batches import Step
from r2cc_simai.workloads.model_math import LayerKind, LayerParameters, rank_layer_parameters
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.serving_layout import ServingSizes

Total = tuple[str, str, int]
"""Group kind, operation, bytes of all ranks."""


@dataclass(frozen=True)
class Load:
    """What one replica works on."""

    W: int
    Z: int
    parts: int
    """Sum over steps of the tokens that one tensor-parallel rank routes, ceil(tokens / tp)."""
    returned: int
    """Sampled tokens that another step of the same engine needs."""
    pairs: float
    """K."""
    decoded_pairs: float
    """The part of these that belongs to decoded tokens."""
    prompt_tokens: int
    generated: int
    """Tokens that decode steps made; the first one of a prompt belongs to its prefill."""
    routed: tuple[int, ...]
    """Tokens of each step."""


def load_of(steps: Iterable[Step], tp: int) -> Load:
    """The load of a replica, from what its engines schedule."""
    found = list(steps)
    pieces = [piece for step in found for piece in step.batch.pieces]
    seen = [(p.sequences * p.tokens * (p.context - (0 if p.decoding else p.tokens / 2)), p.decoding) for p in pieces]
    return Load(
        W=sum(step.batch.tokens for step in found),
        Z=sum(step.batch.sampled for step in found),
        parts=sum(-(-step.batch.tokens // tp) for step in found),
        returned=sum(step.returned for step in found),
        pairs=sum(k for k, _ in seen),
        decoded_pairs=sum(k for k, decoding in seen if decoding),
        prompt_tokens=sum(p.sequences * p.tokens for p in pieces if not p.decoding),
        generated=sum(p.sequences for p in pieces if p.decoding),
        routed=tuple(step.batch.tokens for step in found),
    )


def serving_traffic(model: Model, sizes: ServingSizes, load: Load, tp_kind: str = "tp") -> Iterator[Total]:
    """Bytes of all ranks; pairs may repeat. `model` has its vocabulary padded.

    AllReduce: embedding, attention, MLP, or experts that do not travel: (1 + L + L - e') H a rank, H = 2 W h.
    """
    R, tp, q = sizes.dp, sizes.tp, sizes.pp
    H, e = 2 * load.W * model.hidden, model.expert_layers
    n = 2 if model.norm == "rmsnorm" else 1
    if tp > 1:
        yield tp_kind, "ALL_REDUCE", R * tp * H * (1 + 2 * model.layers - (e if sizes.routes else 0))
        yield tp_kind, "ALL_GATHER", R * (load.Z * model.vocab * 2 + (q - 1) * n * H)
        if sizes.routes:
            yield tp_kind, "ALL_GATHER", R * tp * e * 2 * load.parts * model.hidden
    if q > 1:
        yield "pp", "SEND", R * ((q - 1) * n * H + tp * 4 * load.returned)
    if model.experts and sizes.dp > 1:
        if sizes.routes:
            copies = 2 * load.parts * model.hidden * model.experts.per_token
            yield "ep", "ALL_TO_ALL", R * tp * e * 2 * copies
        else:
            yield "dp", "ALL_GATHER", R * tp * e * H
            yield "dp", "REDUCE_SCATTER", R * tp * e * R * H


def cached_bytes_per_token(model: Model, tp: int) -> int:
    """Keys and values of a token in all layers, over the ranks of a replica.

    2 x 2 bytes x layers x key/value heads x head width; heads are repeated where there are fewer than ranks, latent
    keys on every rank (DeepSeek-V2, arXiv 2405.04434, section 2.1.2).
    """
    latent = model.latent_attention
    if latent:
        return 2 * model.layers * (latent.kv_lora_rank + latent.qk_rope_head_dim) * tp
    return 2 * 2 * model.layers * max(model.key_heads, tp) * model.head_width


def serving_flops(model: Model, sizes: ServingSizes, load: Load) -> float:
    """FLOPs of all replicas: 2 N a token, 2 V h a sampled token, and attention over the context.

    N: parameters of the layers that a token passes through. Attention: 2 K (width of keys + width of values) a layer.
    Besides, what several ranks of a group compute: routers, the low ranks of latent
    attention, and key/value heads where there are fewer than ranks.
    """
    heads, latent = model.heads, model.latent_attention
    N = sum(count * (layer.replicated + _active(model, layer)) for count, layer in _layers(model))
    dense = 2 * (N * load.W + model.vocab * model.hidden * load.Z) + 2 * load.W * _repeated(model, sizes)
    if latent is None:
        attention = 2 * load.pairs * heads * 2 * model.head_width
    else:
        decoded = 2 * latent.kv_lora_rank + latent.qk_rope_head_dim
        attention = 2 * heads * load.decoded_pairs * decoded
        attention += 2 * heads * (load.pairs - load.decoded_pairs) * (latent.qk_head_dim + latent.v_head_dim)
    return sizes.dp * (dense + model.layers * attention + _rounding(model, sizes, load))


def _layers(model: Model) -> list[tuple[int, LayerParameters]]:
    counts: dict[LayerKind, int] = {"dense": model.layers - model.expert_layers, "expert": model.expert_layers}
    return [(count, rank_layer_parameters(model, kind)) for kind, count in counts.items() if count]


def _active(model: Model, layer: LayerParameters) -> int:
    """Parameters of the routed experts that a token visits."""
    return layer.experts * model.experts.per_token // model.experts.count if model.experts else 0


def _repeated(model: Model, sizes: ServingSizes) -> int:
    """Weights by which more than one rank of a tensor-parallel group multiplies the same tokens, but for the first."""
    latent, tp, found = model.latent_attention, sizes.tp, 0
    if latent:
        low = latent.q_lora_rank + latent.kv_lora_rank + latent.qk_rope_head_dim
        found += model.layers * model.hidden * low * (tp - 1)
    else:
        found += model.layers * model.hidden * 2 * model.head_width * (max(model.key_heads, tp) - model.key_heads)
    if model.experts and not sizes.routes:
        found += model.expert_layers * model.hidden * model.experts.count * (tp - 1)
    return found


def _rounding(model: Model, sizes: ServingSizes, load: Load) -> float:
    """FLOPs of expert layers beyond an even share: each rank works on whole tokens and copies of tokens."""
    experts, tp = model.experts, sizes.tp
    if experts is None:
        return 0.0
    each = 2 * (3 if model.gated_mlp else 2) * model.hidden * experts.ffn_hidden
    if sizes.routes:
        padding = tp * load.parts - load.W
        return (
            model.expert_layers
            * padding
            * (each * (experts.per_token + experts.shared) + 2 * model.hidden * experts.count)
        )
    even = [tokens * experts.per_token * sizes.expert_tp / tp for tokens in load.routed]
    return model.expert_layers * tp / sizes.expert_tp * each * sum(round(share) - share for share in even)
