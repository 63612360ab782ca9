"""What one PPO iteration adds up to, by formulas over the options and the models alone.

Symbols: S ranks of a pipeline stage; m micro-batches of the rollout; H = 2 T h bytes of a micro-batch's activations;
q stages; v = V / tp rows of a rank's output head. A model with a scalar head lacks what the output head costs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from r2cc_simai.workloads.closed_forms import (
    Job,
    Total,
    activation_traffic,
    gradient_traffic,
    rank_parameters,
    training_flops,
)
from r2cc_simai.workloads.layout import ParallelSizes
from r2cc_simai.workloads.megatron_options import parallel_sizes
from r2cc_simai.workloads.megatron_options import resolve as resolve_megatron
from r2cc_simai.workloads.model_math import padded_vocab
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.rlhf_options import RlhfOptions


@dataclass(frozen=True)
class Trained:
    """A model in training's layout; `job` works on the whole rollout once."""

    job: Job
    scalar: bool
    """It ends in a scalar for each token."""

    @property
    def head(self) -> int:
        """Parameters of the output head that a rank would hold."""
        return self.job.model.vocab // self.job.sizes.tp * self.job.model.hidden


def trained(model: Model, options: RlhfOptions, *, scalar: bool) -> Trained:
    """A model of the job; one with a scalar head has no tied one."""
    megatron = options.megatron(options.rollout_batch_size)
    sizes = parallel_sizes(megatron)
    update: dict[str, object] = {"vocab": padded_vocab(model, sizes.tp)}
    padded = model.model_copy(update=update | ({"tied_embeddings": False} if scalar else {}))
    return Trained(Job(padded, resolve_megatron(megatron, padded), sizes, 1), scalar)


def forward_traffic(model: Trained) -> Iterator[Total]:
    """A forward pass over the rollout: AllReduces of embedding, attention and MLPs, and three of each token's loss."""
    job, sizes = model.job, model.job.sizes
    if sizes.tp > 1:
        loss = 0 if model.scalar else 3 * 4 * job.T
        yield "tp", "ALL_REDUCE", job.passes * ((1 + 2 * job.model.layers) * job.H + loss)
    if sizes.pp > 1:
        yield "pp", "SEND", job.passes * (sizes.pp - 1) * job.H


def training_traffic(model: Trained, epochs: int, optimizer_steps: int) -> Iterator[Total]:
    """Forward and backward passes, and a sum of gradients for each optimizer step."""
    job, sizes = model.job, model.job.sizes
    for kind, comm, size in activation_traffic(job):
        yield kind, comm, epochs * size
    for kind, comm, size in gradient_traffic(job, ()):
        yield kind, comm, optimizer_steps * size
    if not model.scalar:
        return
    if sizes.tp > 1:  # neither loss nor gradient of the head's input is summed
        yield "tp", "ALL_REDUCE", -epochs * job.passes * (3 * 4 * job.T + job.H)
    if sizes.dp > 1:
        yield "dp", "ALL_REDUCE", -optimizer_steps * sizes.stage_ranks * (model.head - job.model.hidden) * job.g


def shared_traffic(options: RlhfOptions, sizes: ParallelSizes) -> Iterator[Total]:
    """Tokens of all sequences, and three numbers for the advantages."""
    if sizes.ranks > 1:
        yield "world", "ALL_GATHER", options.rollout_batch_size * options.sequence * 4
        yield "world", "ALL_REDUCE", sizes.ranks * 3 * 4


def weight_traffic(actor: Trained, options: RlhfOptions) -> Iterator[Total]:
    """The actor's weights to its engine, two bytes each.

    A rank holds P parameters, D of them of divided tensors. Summed over stages: it gathers D (times all stages where
    the engine has one), and before that the stages' layers, the ends padded to the larger.
    """
    job, sizes = actor.job, actor.job.sizes
    held, _ = rank_parameters(job)
    divided, ends = _divided(actor)
    if options.weight_sync == "broadcast":
        if sizes.tp > 1:
            yield "tp", "ALL_GATHER", sizes.ranks * 2 * divided
        if sizes.ranks > 1:
            yield "world", "BROADCAST", sizes.ranks * 2 * (divided * (sizes.tp - 1) + held)
        return
    joined = sizes.pp > 1 and options.generation_pipeline_parallel_size == 1
    if joined:
        layers = held - sum(ends)
        yield "weights_pp", "ALL_GATHER", sizes.stage_ranks * 2 * (layers + sizes.pp * max(ends))
    if options.gathered > 1:
        yield "weights_tp", "ALL_GATHER", sizes.stage_ranks * 2 * divided * (sizes.pp if joined else 1)


def _divided(actor: Trained) -> tuple[int, tuple[int, int]]:
    """Parameters of divided tensors of a rank, over all stages, and what the first and last stage hold outside layers.

    With P(t) parameters of a rank at tensor-parallel size t: P(1) - P(t) = D(1) (1 - 1 / t), D(t) = D(1) / t; for
    t = 1 all weights count, but for norms, and biases of row-parallel layers.
    """
    model, sizes = actor.job.model, actor.job.sizes
    norm = model.hidden * (2 if model.norm == "layernorm" else 1)
    copies = 1 if model.tied_embeddings and sizes.pp == 1 else 2
    positions = model.max_positions * model.hidden if model.positions == "learned" else 0
    ends = (actor.head + positions, norm + actor.head * (copies - 1))
    if sizes.pp == 1:
        ends = (sum(ends), 0)
    whole = model.layers * (2 * norm + (2 * model.hidden if model.biases else 0)) + norm + positions
    if model.latent_attention:
        latent = model.latent_attention
        low = latent.q_lora_rank + latent.kv_lora_rank
        whole += model.layers * (model.hidden * (low + latent.qk_rope_head_dim) + low)
    held, _ = rank_parameters(actor.job)
    return held - whole, ends


def all_traffic(options: RlhfOptions, models: dict[str, Model]) -> Counter[tuple[str, str]]:
    """Bytes of all phases but the generation, by group kind and operation."""
    actor = trained(models["actor"], options, scalar=False)
    critic, reward = (trained(models[role], options, scalar=True) for role in ("critic", "reward"))
    found: Counter[tuple[str, str]] = Counter()
    sources: Sequence[Iterator[Total]] = (
        *(forward_traffic(model) for model in (reward, actor, critic)),
        *(training_traffic(model, options.ppo_epochs, options.optimizer_steps) for model in (actor, critic)),
        shared_traffic(options, actor.job.sizes),
        weight_traffic(actor, options),
    )
    for source in sources:
        for kind, comm, size in source:
            found[kind, comm] += size
    return found


def all_flops(options: RlhfOptions, models: dict[str, Model]) -> float:
    """FLOPs of all phases but the generation: 2 N + attention a token forward, three times as much in training."""
    actor = trained(models["actor"], options, scalar=False)
    critic, reward = (trained(models[role], options, scalar=True) for role in ("critic", "reward"))
    forward = [_training(model) / 3 for model in (reward, actor, critic)]
    return sum(forward) + options.ppo_epochs * (_training(actor) + _training(critic))


def _training(model: Trained) -> float:
    """FLOPs of one epoch; the low ranks of latent attention are computed on every tensor-parallel rank."""
    job, shape, latent = model.job, model.job.model, model.job.model.latent_attention
    head = shape.vocab * shape.hidden if model.scalar else 0
    low = latent.q_lora_rank + latent.kv_lora_rank + latent.qk_rope_head_dim if latent else 0
    repeated = (job.sizes.tp - 1) * shape.layers * shape.hidden * low
    return training_flops(job) + 6 * job.tokens * (repeated - head)
