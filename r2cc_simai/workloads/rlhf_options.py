"""Options of a PPO job, and what makes a combination impossible."""

from typing import Annotated, Literal

from pydantic import Field

from r2cc_simai.config import Strict
from r2cc_simai.errors import InputError
from r2cc_simai.workloads.megatron_options import MegatronOptions, Recompute
from r2cc_simai.workloads.megatron_options import check as check_megatron
from r2cc_simai.workloads.megatron_options import resolve as resolve_megatron
from r2cc_simai.workloads.models import Model

Size = Annotated[int, Field(ge=1)]
WeightSync = Literal["all_gather", "broadcast"]


class RlhfOptions(Strict):
    """What the user asks for. All models are on all GPUs, and the phases run one after the other.

    Attributes:
        gpus: ranks of the job.
        actor_model, critic_model, reward_model: names; the reference model is a copy of the actor.
        tensor_model_parallel_size, pipeline_model_parallel_size: layout of training and of the forward passes.
        generation_tensor_parallel_size, generation_pipeline_parallel_size: layout of the generation engine; the first
            divides the training's, the second is 1 or the training's.
        rollout_batch_size: prompts of an iteration, with one response each.
        prompt_length, response_length: tokens; all responses have the full length.
        generation_batches: batches, one after the other, in which each engine generates its responses.
        max_num_batched_tokens: tokens of an engine step while it works on prompts.
        ppo_mini_batch_size: sequences of an optimizer step.
        ppo_epochs: how often the rollout is trained on.
        micro_batch_size: sequences of a micro-batch, in training and in the forward passes.
        recompute_granularity: what the backward pass computes again.
        overlap_grad_reduce: gradients are summed beside the backward pass.
        accumulate_allreduce_grads_in_fp32: gradients take 4 bytes, else 2.
        weight_sync: how the engine gets the new weights: each rank gathers the parts that it lacks, or rank 0
            gathers and broadcasts layer by layer.
    """

    gpus: Size = 64
    actor_model: str = "llama2-7b"
    critic_model: str = "llama2-7b"
    reward_model: str = "llama2-7b"
    tensor_model_parallel_size: Size = 8
    pipeline_model_parallel_size: Size = 1
    generation_tensor_parallel_size: Size = 2
    generation_pipeline_parallel_size: Size = 1
    rollout_batch_size: Size = 512
    prompt_length: Size = 512
    response_length: Annotated[int, Field(ge=2)] = 512
    generation_batches: Size = 1
    max_num_batched_tokens: Size = 8192
    ppo_mini_batch_size: Size = 128
    ppo_epochs: Size = 1
    micro_batch_size: Size = 4
    recompute_granularity: Recompute = "none"
    overlap_grad_reduce: bool = True
    accumulate_allreduce_grads_in_fp32: bool = True
    weight_sync: WeightSync = "all_gather"

    @property
    def sequence(self) -> int:
        """Tokens of a prompt with its response."""
        return self.prompt_length + self.response_length

    @property
    def replicas(self) -> int:
        """Data-parallel replicas of training."""
        return self.gpus // (self.tensor_model_parallel_size * self.pipeline_model_parallel_size)

    @property
    def engines(self) -> int:
        """Replicas of the generation engine."""
        return self.gpus // (self.generation_tensor_parallel_size * self.generation_pipeline_parallel_size)

    @property
    def gathered(self) -> int:
        """Tensor-parallel parts of training that make one of generation."""
        return self.tensor_model_parallel_size // self.generation_tensor_parallel_size

    @property
    def optimizer_steps(self) -> int:
        """Of each of the two models in an iteration."""
        return self.ppo_epochs * self.rollout_batch_size // self.ppo_mini_batch_size

    def megatron(self, sequences: int) -> MegatronOptions:
        """Options of a training step, or forward pass, over so many sequences."""
        return MegatronOptions(
            gpus=self.gpus,
            tensor_model_parallel_size=self.tensor_model_parallel_size,
            pipeline_model_parallel_size=self.pipeline_model_parallel_size,
            micro_batch_size=self.micro_batch_size,
            global_batch_size=sequences,
            seq_length=self.sequence,
            recompute_granularity=self.recompute_granularity,
            overlap_grad_reduce=self.overlap_grad_reduce,
            accumulate_allreduce_grads_in_fp32=self.accumulate_allreduce_grads_in_fp32,
        )


def check(options: RlhfOptions, models: dict[str, Model]) -> None:
    """Refuses what does not fit together; `models` by role, "actor", "critic" and "reward".

    Raises:
        InputError: one line that names the option and what would be right.
    """
    _check_batches(options)
    for role, model in models.items():
        _check_model(options, role, model)
    _check_generation(options)


def _check_model(options: RlhfOptions, role: str, model: Model) -> None:
    if model.experts:
        raise InputError(f"--{role}-model {model.name}: has experts; a dense model is wanted")
    if options.sequence > model.max_positions:
        raise InputError(
            f"--prompt-length {options.prompt_length}, --response-length {options.response_length}: together at "
            f"most the {model.max_positions} positions of {model.name}"
        )
    if model.layers % options.pipeline_model_parallel_size:
        raise InputError(
            f"--pipeline-model-parallel-size {options.pipeline_model_parallel_size}: does not divide the "
            f"{model.layers} layers of {model.name}"
        )
    check_megatron(resolve_megatron(options.megatron(options.ppo_mini_batch_size), model), model)


def _check_batches(options: RlhfOptions) -> None:
    rollout, mini = options.rollout_batch_size, options.ppo_mini_batch_size
    parts = options.tensor_model_parallel_size * options.pipeline_model_parallel_size
    if options.gpus % parts:
        raise InputError(
            f"--gpus {options.gpus}: a multiple of tensor x pipeline model parallel size = {parts} is wanted"
        )
    if rollout % mini:
        raise InputError(f"--ppo-mini-batch-size {mini}: does not divide --rollout-batch-size {rollout}")
    unit = options.replicas * options.micro_batch_size
    if mini % unit:
        raise InputError(
            f"--ppo-mini-batch-size {mini}: a multiple of replicas x --micro-batch-size = {options.replicas} x "
            f"{options.micro_batch_size} = {unit} is wanted"
        )
    if rollout % options.gpus:
        raise InputError(f"--rollout-batch-size {rollout}: a multiple of --gpus {options.gpus} is wanted")


def _check_generation(options: RlhfOptions) -> None:
    tp, pp = options.generation_tensor_parallel_size, options.generation_pipeline_parallel_size
    wanted_tp, wanted_pp = options.tensor_model_parallel_size, options.pipeline_model_parallel_size
    if wanted_tp % tp:
        raise InputError(
            f"--generation-tensor-parallel-size {tp}: a divisor of --tensor-model-parallel-size {wanted_tp} is wanted"
        )
    if pp not in (1, wanted_pp):
        allowed = " or ".join(map(str, sorted({1, wanted_pp})))
        raise InputError(f"--generation-pipeline-parallel-size {pp}: {allowed}, as in training, is wanted")
    batches = options.engines * options.generation_batches
    if options.rollout_batch_size % batches:
        raise InputError(
            f"--rollout-batch-size {options.rollout_batch_size}: a multiple of engines x --generation-batches = "
            f"{options.engines} x {options.generation_batches} = {batches} is wanted"
        )
    if options.max_num_batched_tokens < options.rollout_batch_size // batches:
        raise InputError(
            f"--max-num-batched-tokens {options.max_num_batched_tokens}: at least one for each of the "
            f"{options.rollout_batch_size // batches} sequences of an engine is wanted"
        )
    if options.weight_sync == "broadcast" and wanted_pp > 1:
        raise InputError(
            "--weight-sync broadcast: rank 0 has to hold all layers; all_gather or "
            "--pipeline-model-parallel-size 1 is wanted"
        )
