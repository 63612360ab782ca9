"""Kernels of the attention block: grouped-query attention and multi-head latent attention, forward."""

from r2cc_simai.workloads.blocks import BlockRequest
from r2cc_simai.workloads.kernel import ELEMENT, Kernel, gemm, memory
from r2cc_simai.workloads.model_math import kv_heads_per_rank
from r2cc_simai.workloads.models import LatentAttention


def attention_kernels(request: BlockRequest) -> list[Kernel]:
    """Norm, projections, rotation, scores and values, output projection, residual; t tokens, h hidden, tp ranks."""
    h = request.model.hidden
    inner = _latent_products if request.model.latent_attention else _grouped_query_products
    return [
        memory("attention norm", 2 * request.dense_tokens * h),
        *inner(request),
        memory("attention residual", 3 * request.dense_tokens * h),
    ]


def attention_core(request: BlockRequest) -> Kernel:
    """Scores and values, as flash attention computes them.

    FLOPs: 2 x queries x keys x (key width + value width) x heads / tp. Bytes: queries and outputs, and once the keys
    and values of all sequences; in decode these are the KV cache, 2 x 2 x kv_heads x head_dim / tp bytes a token.
    """
    model, latent = request.model, request.model.latent_attention
    heads = model.heads / request.tp
    keys = request.sequences * request.context
    if latent is None:
        key_width = value_width = float(model.head_width)
        cached = 2.0 * kv_heads_per_rank(model, request.tp) * model.head_width
    elif request.phase == "decode":
        # The up-projections are absorbed into queries and outputs (DeepSeek-V2, arXiv 2405.04434, section 2.1.2):
        # every head reads the same compressed keys, which are their own values.
        key_width, value_width = float(latent.kv_lora_rank + latent.qk_rope_head_dim), float(latent.kv_lora_rank)
        cached = key_width
    else:
        key_width, value_width = float(latent.qk_head_dim), float(latent.v_head_dim)
        cached = heads * (key_width + value_width)
    flops = 2 * request.tokens * request.keys_per_query * heads * (key_width + value_width)
    moved = request.tokens * heads * (key_width + value_width) + keys * cached
    return Kernel("attention core", "attention", round(flops), round(ELEMENT * moved))


def _grouped_query_products(request: BlockRequest) -> list[Kernel]:
    model, t = request.model, request.tokens
    width = model.head_width
    queries = model.heads * width / request.tp
    keys = kv_heads_per_rank(model, request.tp) * width
    rotation = [memory("rotary embedding", 2 * t * (queries + keys))] if model.positions == "rope" else []
    return [
        gemm("qkv projection", t, queries + 2 * keys, model.hidden),
        *rotation,
        attention_core(request),
        gemm("output projection", t, model.hidden, queries),
    ]


def _latent_products(request: BlockRequest) -> list[Kernel]:
    model, t = request.model, request.tokens
    latent = model.latent_attention
    assert latent is not None
    heads = model.heads / request.tp
    down = latent.q_lora_rank + latent.kv_lora_rank + latent.qk_rope_head_dim
    return [
        gemm("latent down-projection", request.dense_tokens, down, model.hidden),
        memory("latent norm", 2 * request.dense_tokens * (latent.q_lora_rank + latent.kv_lora_rank)),
        gemm("query up-projection", t, heads * latent.qk_head_dim, latent.q_lora_rank),
        *_key_value_up(request, latent, heads),
        memory("rotary embedding", 2 * t * (heads + 1) * latent.qk_rope_head_dim),
        attention_core(request),
        gemm("output projection", t, model.hidden, heads * latent.v_head_dim),
    ]


def _key_value_up(request: BlockRequest, latent: LatentAttention, heads: float) -> list[Kernel]:
    """Keys and values of the heads from the latent ones; absorbed, and so one product on each side, in decode."""
    t, rank = request.tokens, latent.kv_lora_rank
    if request.phase == "decode":
        return [
            gemm("absorbed key projection", t, heads * latent.qk_nope_head_dim, rank),
            gemm("absorbed value projection", t, heads * latent.v_head_dim, rank),
        ]
    return [gemm("key/value up-projection", t, heads * (latent.qk_nope_head_dim + latent.v_head_dim), rank)]
