"""Options of a Megatron-LM training job, named as Megatron-LM names them, and what makes a combination impossible."""

from typing import Annotated, Literal

from pydantic import Field

from r2cc_simai.config import Strict
from r2cc_simai.errors import InputError
from r2cc_simai.workloads.layout import ParallelSizes
from r2cc_simai.workloads.models import Model

Size = Annotated[int, Field(ge=1)]
Recompute = Literal["none", "selective", "full"]
ContextComm = Literal["p2p", "all_gather"]

BATCH_TOKENS = 3 * 2**20
"""Tokens of an iteration by default: GPT-3's 1,536 sequences of 2,048."""
LONGEST_BY_DEFAULT = 4096
MOST_MICROBATCHES_BY_DEFAULT = 2048
MOST_MICROBATCHES = 65_536
MOST_GPUS = 2**20
"""What a trace can sensibly hold; the memory for it grows with both."""


class MegatronOptions(Strict):
    """What the user asks for; None takes a default that depends on the model or on the other options.

    Attributes:
        gpus: ranks of the job.
        tensor_model_parallel_size, pipeline_model_parallel_size, context_parallel_size: dimensions of the layout.
        expert_model_parallel_size: ranks that share the experts of a layer.
        expert_tensor_parallel_size: tensor parallelism within an expert; that of the rest by default.
        sequence_parallel: norms and residuals are divided over the tensor-parallel group.
        cp_comm_type: how context parallelism gets keys and values: a ring, or one AllGather.
        num_layers_per_virtual_pipeline_stage: layers of a model chunk; the interleaved schedule.
        account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split: the first and the last stage
            have one layer less.
        decoder_first_pipeline_num_layers, decoder_last_pipeline_num_layers: layers of those stages.
        use_distributed_optimizer: optimizer states are divided over the replicas.
        overlap_grad_reduce: a bucket of gradients is reduced as soon as the backward pass has produced it.
        overlap_param_gather: parameters are gathered during the next forward pass.
        micro_batch_size, global_batch_size: sequences of a micro-batch; sequences of an iteration.
        seq_length: tokens of a sequence.
        recompute_granularity: what the backward pass computes again.
        accumulate_allreduce_grads_in_fp32: gradients take 4 bytes, else 2.
        ddp_bucket_size: parameters of a gradient bucket.
    """

    gpus: Size
    tensor_model_parallel_size: Size = 1
    pipeline_model_parallel_size: Size = 1
    context_parallel_size: Size = 1
    expert_model_parallel_size: Size = 1
    expert_tensor_parallel_size: Size | None = None
    sequence_parallel: bool = False
    cp_comm_type: ContextComm = "p2p"
    num_layers_per_virtual_pipeline_stage: Size | None = None
    account_for_embedding_in_pipeline_split: bool = False
    account_for_loss_in_pipeline_split: bool = False
    decoder_first_pipeline_num_layers: Size | None = None
    decoder_last_pipeline_num_layers: Size | None = None
    use_distributed_optimizer: bool = False
    overlap_grad_reduce: bool = False
    overlap_param_gather: bool = False
    micro_batch_size: Size = 1
    global_batch_size: Size | None = None
    seq_length: Size | None = None
    recompute_granularity: Recompute = "none"
    accumulate_allreduce_grads_in_fp32: bool = True
    ddp_bucket_size: Size | None = None

    @property
    def gradient_bytes(self) -> int:
        """Bytes of one gradient on the network."""
        return 4 if self.accumulate_allreduce_grads_in_fp32 else 2


def resolve(options: MegatronOptions, model: Model) -> MegatronOptions:
    """The options with every default filled in.

    Raises:
        InputError: the GPUs cannot be divided as wanted, so that no default batch exists.
    """
    sizes = parallel_sizes(options)
    sequence = options.seq_length or min(model.max_positions, LONGEST_BY_DEFAULT)
    unit = options.micro_batch_size * sizes.dp
    turn = unit * sizes.pp  # so many sequences keep every stage busy, and suit the interleaved schedule
    turns = max(1, min(BATCH_TOKENS // sequence // turn, MOST_MICROBATCHES_BY_DEFAULT // sizes.pp))
    return options.model_copy(
        update={
            "expert_tensor_parallel_size": sizes.expert_tp,
            "global_batch_size": options.global_batch_size or turns * turn,
            "seq_length": sequence,
            "sequence_parallel": options.sequence_parallel and sizes.tp > 1,  # as Megatron-LM does
        }
    )


def parallel_sizes(options: MegatronOptions) -> ParallelSizes:
    """The layout that the options ask for.

    Raises:
        InputError: the GPUs or the experts' ranks cannot be divided so.
    """
    tp, pp, cp = (
        options.tensor_model_parallel_size,
        options.pipeline_model_parallel_size,
        options.context_parallel_size,
    )
    if options.gpus > MOST_GPUS:
        raise InputError(f"--gpus {options.gpus}: at most {MOST_GPUS}")
    if options.gpus % (tp * pp * cp):
        raise InputError(
            f"--gpus {options.gpus}: a multiple of tensor x pipeline x context parallel size = "
            f"{tp} x {pp} x {cp} = {tp * pp * cp} is wanted"
        )
    stage, ep = options.gpus // pp, options.expert_model_parallel_size
    expert_tp = options.expert_tensor_parallel_size or tp
    if stage % expert_tp:
        raise InputError(
            f"--expert-tensor-parallel-size {expert_tp}: does not divide the {stage} ranks of a pipeline stage; "
            f"allowed: {_divisors(stage)}"
        )
    if stage % (expert_tp * ep):
        raise InputError(
            f"--expert-model-parallel-size {ep}: the {stage} ranks of a pipeline stage are not divisible by expert "
            f"tensor x expert parallel size = {expert_tp} x {ep}; allowed: {_divisors(stage // expert_tp)}"
        )
    return ParallelSizes(tp=tp, cp=cp, dp=stage // tp // cp, pp=pp, ep=ep, expert_tp=expert_tp)


def check(options: MegatronOptions, model: Model) -> None:
    """Refuses what Megatron-LM refuses, or what this model cannot be divided into; takes resolved options.

    Raises:
        InputError: one line that names the option and what would be right.
    """
    sizes = parallel_sizes(options)
    _check_tensor(model, sizes)
    _check_experts(options, model, sizes)
    _check_sequence(options, model, sizes)
    _check_batch(options, sizes)
    if options.overlap_param_gather and not (options.use_distributed_optimizer and options.overlap_grad_reduce):
        raise InputError("--overlap-param-gather: needs --use-distributed-optimizer and --overlap-grad-reduce")


def _check_tensor(model: Model, sizes: ParallelSizes) -> None:
    flag = f"--tensor-model-parallel-size {sizes.tp}"
    for what, count in (
        ("attention heads", model.heads),
        ("key/value heads", model.key_heads),
        ("columns of the MLP", model.ffn_hidden),
    ):
        if count % sizes.tp:
            raise InputError(f"{flag}: does not divide the {count} {what} of {model.name}; allowed: {_divisors(count)}")


def _check_experts(options: MegatronOptions, model: Model, sizes: ParallelSizes) -> None:
    experts = model.experts
    if experts is None:
        if sizes.ep > 1:
            raise InputError(f"--expert-model-parallel-size {sizes.ep}: {model.name} has no experts; 1 is wanted")
        if sizes.expert_tp != sizes.tp:
            raise InputError(f"--expert-tensor-parallel-size {sizes.expert_tp}: {model.name} has no experts; leave it")
        return
    if experts.count % sizes.ep:
        raise InputError(
            f"--expert-model-parallel-size {sizes.ep}: does not divide the {experts.count} experts of {model.name}; "
            f"allowed: {_divisors(experts.count)}"
        )
    if experts.ffn_hidden % sizes.expert_tp:
        raise InputError(
            f"--expert-tensor-parallel-size {sizes.expert_tp}: does not divide the {experts.ffn_hidden} columns of an "
            f"expert of {model.name}"
        )
    if sizes.tp > 1 and not options.sequence_parallel:
        raise InputError("--tensor-model-parallel-size: experts with tensor parallelism need --sequence-parallel")


def _check_sequence(options: MegatronOptions, model: Model, sizes: ParallelSizes) -> None:
    sequence = options.seq_length or 0
    if model.positions == "learned" and sequence > model.max_positions:
        raise InputError(f"--seq-length {sequence}: {model.name} has {model.max_positions} positions; at most those")
    halves = 2 * sizes.cp if sizes.cp > 1 else 1  # each rank takes one early and one late part, for equal work
    parts = halves * (sizes.tp if options.sequence_parallel else 1)
    if sequence % parts:
        raise InputError(
            f"--seq-length {sequence}: a multiple of {parts} is wanted "
            "(2 x context parallel size, x tensor parallel size with --sequence-parallel)"
        )


def _check_batch(options: MegatronOptions, sizes: ParallelSizes) -> None:
    batch, unit = options.global_batch_size or 0, options.micro_batch_size * sizes.dp
    if batch % unit:
        raise InputError(
            f"--global-batch-size {batch}: a multiple of micro-batch size x data parallel size = "
            f"{options.micro_batch_size} x {sizes.dp} = {unit} is wanted"
        )
    if batch // unit > MOST_MICROBATCHES:
        raise InputError(
            f"--global-batch-size {batch}: makes {batch // unit} micro-batches; at most {MOST_MICROBATCHES} are written"
        )
    if options.num_layers_per_virtual_pipeline_stage is None:
        return
    if sizes.pp < 2:
        raise InputError("--num-layers-per-virtual-pipeline-stage: needs --pipeline-model-parallel-size 2 or more")
    if batch // unit % sizes.pp:
        raise InputError(
            f"--global-batch-size {batch}: gives {batch // unit} micro-batches; the interleaved schedule wants a "
            f"multiple of the pipeline size {sizes.pp} (a batch that is a multiple of {unit * sizes.pp})"
        )


def _divisors(count: int) -> str:
    found = [d for d in range(1, count + 1) if count % d == 0]
    return ", ".join(map(str, found if len(found) <= 12 else [*found[:12], "..."]))
