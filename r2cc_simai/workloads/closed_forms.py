"""What one training iteration adds up to, by formulas over the options and the model alone.

Symbols: m micro-batches; S ranks of a pipeline stage; T tokens of a micro-batch on a tensor-parallel group; H = 2 T h
bytes of their activations; R bytes of the token copies that a rank routes; K bytes of its keys and values; f forward
passes of a layer (2 with full recomputation); c those of the attention core; q virtual stages; g bytes of a gradient.
Sources: Narayanan et al., arXiv 2104.04473, section 3; Korthikanti et al., arXiv 2205.05198, section 4.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from r2cc_simai.workloads.buckets import padded
from r2cc_simai.workloads.layout import ParallelSizes
from r2cc_simai.workloads.megatron_options import MegatronOptions
from r2cc_simai.workloads.model_math import LayerKind, LayerParameters, parameters, rank_layer_parameters
from r2cc_simai.workloads.models import Model

Total = tuple[str, str, int]
"""Group kind, operation, bytes of all ranks."""


@dataclass(frozen=True)
class Job:
    """What the formulas speak of; `model` has its vocabulary padded."""

    model: Model
    options: MegatronOptions
    sizes: ParallelSizes
    chunks: int
    """Model chunks of a stage."""

    @property
    def m(self) -> int:
        return (self.options.global_batch_size or 0) // (self.options.micro_batch_size * self.sizes.dp)

    @property
    def T(self) -> int:
        return self.options.micro_batch_size * (self.options.seq_length or 0) // self.sizes.cp

    @property
    def H(self) -> int:
        return 2 * self.T * self.model.hidden

    @property
    def f(self) -> int:
        return 2 if self.options.recompute_granularity == "full" else 1

    @property
    def c(self) -> int:
        return 1 if self.options.recompute_granularity == "none" else 2

    @property
    def g(self) -> int:
        return 4 if self.options.accumulate_allreduce_grads_in_fp32 else 2

    @property
    def tokens(self) -> int:
        return (self.options.global_batch_size or 0) * (self.options.seq_length or 0)

    @property
    def passes(self) -> int:
        """m S: how often all ranks together run a layer forward."""
        return self.m * self.sizes.stage_ranks


def activation_traffic(job: Job) -> Iterator[Total]:
    """Bytes that micro-batches cause; pairs may repeat."""
    if job.sizes.tp > 1:
        yield from _tensor_parallel(job)
    if job.sizes.cp > 1:
        yield from _context_parallel(job)
    if job.model.experts:
        yield from _experts(job)
    q = job.sizes.pp * job.chunks
    if q > 1:
        shard = job.H // (job.sizes.tp if job.options.sequence_parallel else 1)
        yield "pp", "SEND", job.passes * 2 * (q - 1) * shard


def _tensor_parallel(job: Job) -> Iterator[Total]:
    model, f, H, tp = job.model, job.f, job.H, job.sizes.tp
    yield "tp", "ALL_REDUCE", job.passes * 3 * 4 * job.T  # the loss
    latent = model.latent_attention
    narrow = latent.q_lora_rank + latent.kv_lora_rank + latent.qk_rope_head_dim if latent else model.hidden
    H_in = 2 * job.T * narrow  # what attention gathers, and its gradient
    if not job.options.sequence_parallel:
        yield "tp", "ALL_REDUCE", job.passes * (model.layers * ((2 * f + 1) * H + H_in) + 2 * H)  # embedding, logits
        return
    shared = bool(model.experts and model.experts.shared)
    mlps = model.layers - (0 if shared else model.expert_layers)
    learned = model.positions == "learned"
    # f AllGathers forward; backward that of the output's gradient and that of the input. Embedding 1, logits 2.
    inputs, outputs = model.layers * (H_in // tp) + mlps * (H // tp), (model.layers + mlps) * (H // tp)
    yield "tp", "ALL_GATHER", job.passes * ((f + 1) * inputs + outputs + 3 * (H // tp))
    summed = model.layers * H_in + mlps * H + f * (model.layers + mlps) * H
    yield "tp", "REDUCE_SCATTER", job.passes * (summed + (1 if learned else 2) * H)
    if learned:
        yield "tp", "ALL_REDUCE", job.passes * H


def _context_parallel(job: Job) -> Iterator[Total]:
    model, cp = job.model, job.sizes.cp
    latent = model.latent_attention
    width = latent.qk_head_dim + latent.v_head_dim if latent else 2 * model.head_width
    heads = model.heads if latent else model.key_heads
    K = 2 * job.T * heads * width // job.sizes.tp
    layers = job.passes * model.layers
    if job.options.cp_comm_type == "all_gather":
        yield "cp", "ALL_GATHER", layers * (job.c + 1) * K
        yield "cp", "REDUCE_SCATTER", layers * K * cp
    else:
        yield "cp", "SEND", layers * (job.c + 2) * (cp - 1) * K


def _experts(job: Job) -> Iterator[Total]:
    assert job.model.experts is not None
    R = job.H // job.sizes.tp * job.model.experts.per_token
    layers, both = job.passes * job.model.expert_layers, job.f + 1
    if job.sizes.ep > 1:
        yield "ep", "ALL_TO_ALL", layers * 2 * both * R
    if job.sizes.expert_tp > 1:
        yield "expert_tp", "ALL_GATHER", layers * both * R
        yield "expert_tp", "REDUCE_SCATTER", layers * both * R * job.sizes.expert_tp


def _layers(job: Job, tp: int) -> list[tuple[int, LayerParameters]]:
    """How many layers of each kind there are, and what a rank holds of one; the experts as the job divides them."""
    model, sizes = job.model, job.sizes
    counts: dict[LayerKind, int] = {"dense": model.layers - model.expert_layers, "expert": model.expert_layers}
    return [
        (count, rank_layer_parameters(model, kind, tp, sizes.ep, sizes.expert_tp))
        for kind, count in counts.items()
        if count
    ]


def rank_parameters(job: Job) -> tuple[int, int]:
    """Dense and expert parameters of one rank of each stage, summed over the stages."""
    model, sizes = job.model, job.sizes
    layers = _layers(job, sizes.tp)
    dense = sum(count * layer.replicated for count, layer in layers)
    experts = sum(count * layer.experts for count, layer in layers)
    whole = parameters(model)
    tables = whole.embedding // sizes.tp * (1 if model.tied_embeddings and sizes.pp == 1 else 2)
    norm = model.hidden * (2 if model.norm == "layernorm" else 1)
    return dense + tables + whole.positions + norm, experts


def gradient_traffic(job: Job, buckets: Sequence[tuple[str, int]]) -> Iterator[Total]:
    """Bytes that end the iteration.

    Args:
        job: the job.
        buckets: group kind and parameters of every bucket of one rank of each stage; only how the distributed
            optimizer rounds them up depends on it.
    """
    sizes, S = job.sizes, job.sizes.stage_ranks
    dense, experts = rank_parameters(job)
    for kind, count in (("dp_cp" if sizes.cp > 1 else "dp", dense), ("expert_dp", experts)):
        replicas = sizes.group_size(kind)
        if replicas == 1 or not count:
            continue
        if not job.options.use_distributed_optimizer:
            yield kind, "ALL_REDUCE", S * count * job.g
            continue
        rounded = count + sum(padded(bucket, replicas) - bucket for name, bucket in buckets if name == kind)
        yield kind, "REDUCE_SCATTER", S * rounded * job.g
        yield kind, "ALL_GATHER", S * rounded // replicas * 2
    if job.options.sequence_parallel:
        yield "tp", "ALL_REDUCE", S * _whole_on_each(job) * job.g
    if job.model.tied_embeddings and sizes.pp > 1:
        yield "embedding", "ALL_REDUCE", 2 * S * job.model.vocab // sizes.tp * job.model.hidden * job.g
    everyone = "world" if job.options.use_distributed_optimizer else "model"
    if sizes.group_size(everyone) > 1:
        yield everyone, "ALL_REDUCE", sizes.ranks * 4


def _whole_on_each(job: Job) -> int:
    """Parameters that every tensor-parallel rank holds whole: what P(tp) = P0 / tp + whole leaves over.

    With P(1) and P(t) the parameters of a rank, whole = (t P(t) - P(1)) / (t - 1); the position table sees all tokens
    and is left out.
    """
    model, t = job.model, job.sizes.tp
    held = {tp: sum(count * layer.replicated for count, layer in _layers(job, tp)) for tp in (1, t)}
    return (t * held[t] - held[1]) // (t - 1) + model.hidden * (2 if model.norm == "layernorm" else 1)


def training_flops(job: Job) -> float:
    """FLOPs of one iteration: 6 N + attention a token, nothing recomputed.

    N: parameters that a token passes through, the input tables left out. Attention: 6 s x width of keys and values of
    all heads a layer, of which causality leaves half (Chowdhery et al., arXiv 2204.02311, appendix B, counts it whole).
    """
    model, latent = job.model, job.model.latent_attention
    counted = parameters(model)
    N = counted.active - counted.positions - (0 if model.tied_embeddings else counted.embedding)
    width = model.heads * (latent.qk_head_dim + latent.v_head_dim if latent else 2 * model.head_width)
    attention = 6 * model.layers * (job.options.seq_length or 0) * width / 2
    return job.tokens * (6 * N + attention)
