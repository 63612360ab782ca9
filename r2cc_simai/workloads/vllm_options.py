"""Options of a vLLM deployment, named as vLLM names them, and what makes a combination impossible."""

import math
from typing import Annotated, Literal

from pydantic import Field

from r2cc_simai.config import Strict
from r2cc_simai.errors import InputError
from r2cc_simai.workloads.models import Model

Size = Annotated[int, Field(ge=1)]
ServingPhase = Literal["prefill", "decode", "mixed"]

DEFAULT_BATCH = 64
"""Sequences of each replica unless the user says how many."""


class VllmOptions(Strict):
    """What the user asks for; None takes a default that depends on the model or on the other options.

    Attributes:
        gpus: ranks of the whole deployment.
        tensor_parallel_size, pipeline_parallel_size: ranks of a replica.
        data_parallel_size: replicas; gpus / (tensor x pipeline parallel size).
        enable_expert_parallel: whole experts on each rank instead of a part of every expert.
        max_num_seqs: sequences that a replica works on at a time.
        max_num_batched_tokens: tokens of an engine step; longer prompts are cut in chunks.
        max_model_len: tokens of a sequence, at most; what the model was trained for by default.
        input_len, output_len: tokens of a prompt; tokens generated for it.
        num_prompts: prompts of the whole deployment, divided evenly over its replicas.
        batch_size: prompts of each replica, instead.
        phase: what the steps do: prompts only, one token for each running sequence, or both as they come
            (chunked prefill).
        iterations: engine steps of each batch in flight; until all is done by default.
        kv_transfer: disaggregated prefill: some replicas compute the prompts and send keys and values to the others.
        prefill_gpus: ranks of the prefill replicas; half of all by default.
    """

    gpus: Size
    tensor_parallel_size: Size = 1
    pipeline_parallel_size: Size = 1
    data_parallel_size: Size | None = None
    enable_expert_parallel: bool = False
    max_num_seqs: Size = 256
    max_num_batched_tokens: Size = 8192
    max_model_len: Size | None = None
    input_len: Size = 1024
    output_len: Size = 128
    num_prompts: Size | None = None
    batch_size: Size | None = None
    phase: ServingPhase | None = None
    iterations: Size | None = None
    kv_transfer: bool = False
    prefill_gpus: Size | None = None

    @property
    def replica_gpus(self) -> int:
        """Ranks of a replica."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def prefill_replicas(self) -> int:
        """Replicas that only compute prompts for others; 0 without disaggregation. Of resolved options."""
        return (self.prefill_gpus or 0) // self.replica_gpus if self.kv_transfer else 0

    @property
    def serving_replicas(self) -> int:
        """All other replicas."""
        return self.gpus // self.replica_gpus - self.prefill_replicas


def resolve(options: VllmOptions, model: Model) -> VllmOptions:
    """The options with every default filled in.

    Raises:
        InputError: they do not fit together or the model; one line that names the option and what would be right.
    """
    _check_ranks(options)
    _check_division(options, model)
    options = _with_replicas(options)
    _check_experts(options, model)
    options = _with_prompts(options)
    _check_lengths(options, model)
    return options.model_copy(update={"max_model_len": options.max_model_len or model.max_positions})


def _check_ranks(options: VllmOptions) -> None:
    each = options.replica_gpus
    if options.gpus % each:
        raise InputError(
            f"--gpus {options.gpus}: a multiple of tensor x pipeline parallel size = "
            f"{options.tensor_parallel_size} x {options.pipeline_parallel_size} = {each} is wanted"
        )
    replicas = options.gpus // each
    if options.data_parallel_size not in (None, replicas):
        raise InputError(
            f"--data-parallel-size {options.data_parallel_size}: {options.gpus} GPUs make {replicas} replicas of {each}"
        )


def _check_division(options: VllmOptions, model: Model) -> None:
    tp, pp = options.tensor_parallel_size, options.pipeline_parallel_size
    for what, count in (("attention heads", model.heads), ("columns of the MLP", model.ffn_hidden)):
        if count % tp:
            raise InputError(f"--tensor-parallel-size {tp}: does not divide the {count} {what} of {model.name}")
    if model.latent_attention is None and model.key_heads % tp and tp % model.key_heads:
        raise InputError(
            f"--tensor-parallel-size {tp}: a divisor or a multiple of the {model.key_heads} key/value heads of "
            f"{model.name} is wanted"
        )
    if pp > model.layers:
        raise InputError(f"--pipeline-parallel-size {pp}: {model.name} has {model.layers} layers; at most those")
    if model.experts is None and options.enable_expert_parallel:
        raise InputError(f"--enable-expert-parallel: {model.name} has no experts; leave it")


def _with_replicas(options: VllmOptions) -> VllmOptions:
    """Which replicas compute prompts for others."""
    each, replicas = options.replica_gpus, options.gpus // options.replica_gpus
    if not options.kv_transfer:
        if options.prefill_gpus is not None:
            raise InputError("--prefill-gpus: needs --kv-transfer")
        return options.model_copy(update={"data_parallel_size": replicas, "phase": options.phase or "decode"})
    if options.phase is not None:
        raise InputError(f"--phase {options.phase}: with --kv-transfer prompts are computed and decoded; leave it")
    first = options.prefill_gpus if options.prefill_gpus is not None else replicas // 2 * each
    if first % each or not 0 < first < options.gpus:
        raise InputError(
            f"--prefill-gpus {first}: a multiple of the {each} GPUs of a replica, above 0 and below --gpus "
            f"{options.gpus}, is wanted"
        )
    prefill, decode = first // each, (options.gpus - first) // each
    if max(prefill, decode) % min(prefill, decode):
        raise InputError(
            f"--prefill-gpus {first}: makes {prefill} prefill and {decode} decode replicas; "
            "one number has to be a multiple of the other"
        )
    return options.model_copy(update={"data_parallel_size": replicas, "prefill_gpus": first})


def _check_experts(options: VllmOptions, model: Model) -> None:
    experts, tp = model.experts, options.tensor_parallel_size
    if experts is None:
        return
    for replicas in filter(None, (options.serving_replicas, options.prefill_replicas)):
        what, count = ("columns of an expert", experts.ffn_hidden)
        if options.enable_expert_parallel:
            what, count = ("experts", experts.count)
        if count % (tp * replicas):
            raise InputError(
                f"--tensor-parallel-size {tp}: x {replicas} replicas = {tp * replicas} does not divide the {count} "
                f"{what} of {model.name}"
            )


def _with_prompts(options: VllmOptions) -> VllmOptions:
    """Prompts of the deployment and of each replica that serves them."""
    if options.num_prompts is not None and options.batch_size is not None:
        raise InputError("--num-prompts, --batch-size: one of the two is wanted")
    serving = options.serving_replicas
    total = options.num_prompts or (options.batch_size or min(DEFAULT_BATCH, options.max_num_seqs)) * serving
    unit = math.lcm(serving, options.prefill_replicas or 1)
    if total % unit:
        flag = f"--num-prompts {total}" if options.num_prompts else f"--batch-size {total // serving}"
        raise InputError(f"{flag}: {total} prompts do not divide over the replicas; a multiple of {unit} is wanted")
    return options.model_copy(update={"num_prompts": total, "batch_size": total // serving})


def _check_lengths(options: VllmOptions, model: Model) -> None:
    longest = options.max_model_len or model.max_positions
    if model.positions == "learned" and longest > model.max_positions:
        raise InputError(f"--max-model-len {longest}: {model.name} has {model.max_positions} positions; at most those")
    if options.input_len + options.output_len > longest:
        raise InputError(
            f"--input-len {options.input_len}, --output-len {options.output_len}: together at most --max-model-len "
            f"{longest} tokens"
        )
    if options.max_num_batched_tokens < options.max_num_seqs:
        raise InputError(
            f"--max-num-batched-tokens {options.max_num_batched_tokens}: at least --max-num-seqs "
            f"{options.max_num_seqs} is wanted, one token for each sequence"
        )
    if options.phase in ("prefill", "mixed"):
        return
    if (options.batch_size or 0) > options.max_num_seqs:
        raise InputError(
            f"--batch-size {options.batch_size}: a replica decodes at most --max-num-seqs {options.max_num_seqs}"
        )
    if options.output_len < 2:
        raise InputError("--output-len 1: prefill makes the first token; 2 or more are wanted to decode")
    if (options.iterations or 0) > options.output_len - 1:
        raise InputError(
            f"--iterations {options.iterations}: {options.output_len - 1} decode steps make --output-len "
            f"{options.output_len} tokens (prefill makes the first); at most those"
        )
