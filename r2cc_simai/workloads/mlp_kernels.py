"""Kernels of the MLP block and of expert layers, forward."""

from r2cc_simai.workloads.blocks import BlockRequest
from r2cc_simai.workloads.kernel import Kernel, gemm, memory
from r2cc_simai.workloads.model_math import experts_of


def mlp_kernels(request: BlockRequest) -> list[Kernel]:
    """Norm, two products (three matrices when gated) with the activation between them, residual."""
    t, h = request.dense_tokens, request.model.hidden
    inner = request.model.ffn_hidden / request.tp
    return [
        memory("mlp norm", 2 * t * h),
        *_products(request, "mlp", request.tokens, inner),
        memory("mlp residual", 3 * t * h),
    ]


def router_kernels(request: BlockRequest) -> list[Kernel]:
    """What an expert layer computes before its dispatch: norm, router, copies of the tokens, shared experts."""
    experts, h = experts_of(request.model), request.model.hidden
    t = request.dense_tokens
    shared = experts.shared * experts.ffn_hidden / request.tp
    return [
        memory("mlp norm", 2 * t * h),
        gemm("router", t, experts.count, h),
        memory("top-k", 4 * t * experts.count),
        memory("permutation", 2 * t * experts.per_token * h),
        *(_products(request, "shared experts", request.tokens, shared) if shared else []),
    ]


def expert_kernels(request: BlockRequest) -> list[Kernel]:
    """What an expert layer computes after its dispatch: the experts of this rank, the weighted sum, residual.

    Routing is balanced, so a rank receives as many copies as it sends: tokens x top-k, with tokens those of its
    tensor-parallel group, or its part of them where the experts are divided over fewer ranks than the rest.
    """
    experts, h = experts_of(request.model), request.model.hidden
    expert_tp = request.expert_tp or request.tp
    routed = request.tokens * experts.per_token * expert_tp / request.tp
    local = max(1, experts.count // request.ep)
    return [
        *_products(request, "experts", routed, experts.ffn_hidden / expert_tp, local),
        memory("weighted sum", request.dense_tokens * h * (experts.per_token + 1)),
        memory("mlp residual", 3 * request.dense_tokens * h),
    ]


def _products(request: BlockRequest, name: str, tokens: float, inner: float, groups: int = 1) -> list[Kernel]:
    h, gates = request.model.hidden, 2 if request.model.gated_mlp else 1
    return [
        gemm(f"{name} up-projection", tokens, gates * inner, h, groups),
        memory(f"{name} activation", tokens * inner * (gates + 1)),
        gemm(f"{name} down-projection", tokens, h, inner, groups),
    ]
