"""Reinforcement learning from human feedback (PPO) as a workload: one iteration of every rank.

    models = {role: load_model("llama2-7b") for role in ("actor", "critic", "reward")}
    workload = generate("rlhf", models, RlhfOptions(gpus=64), compute_times("roofline", "A100-SXM4-80GB"))

All models are on all GPUs, and the phases run one after the other. All ranks of a pipeline stage of training do the
same, so there is one program for each stage.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from r2cc_simai import __version__
from r2cc_simai.workloads.compute_times import ComputeTimes
from r2cc_simai.workloads.engine_batches import Requests, Step, engine_batches, pipelined, virtual_engines
from r2cc_simai.workloads.layout import GroupTable, ParallelSizes, peer_table, replica_of_rank, stage_of_rank
from r2cc_simai.workloads.manifest import Manifest
from r2cc_simai.workloads.megatron_options import parallel_sizes
from r2cc_simai.workloads.megatron_options import resolve as resolve_megatron
from r2cc_simai.workloads.model_math import padded_vocab, parameters
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.ppo_iteration import Iteration, StageModels
from r2cc_simai.workloads.program import Program, Workload
from r2cc_simai.workloads.rlhf_checks import check_manifest
from r2cc_simai.workloads.rlhf_layout import GENERATION_TP, rlhf_groups
from r2cc_simai.workloads.rlhf_options import RlhfOptions, check
from r2cc_simai.workloads.serving_costs import ServingCosts
from r2cc_simai.workloads.serving_layout import ServingSizes, stage_layers
from r2cc_simai.workloads.serving_stage import ServingStage
from r2cc_simai.workloads.split import split_layers
from r2cc_simai.workloads.stage import Stage
from r2cc_simai.workloads.step_costs import StepCosts
from r2cc_simai.workloads.traffic import count_traffic
from r2cc_simai.workloads.value_stage import ValueStage, with_value_head
from r2cc_simai.workloads.weight_sync import parts

GENERATOR = "rlhf"
Roles = dict[str, Model]
"""Models by their roles: "actor", "critic", "reward"; the reference model is a copy of the actor."""


def generate(name: str, models: Roles, options: RlhfOptions, times: ComputeTimes) -> Workload:
    """One PPO iteration of all ranks.

    Args:
        name: of the workload.
        models: by role; vocabularies are padded as Megatron-LM and vLLM pad them.
        options: as the user gave them.
        times: durations of compute nodes.

    Raises:
        InputError: the options do not fit together or the models, or `times` lacks a block.
    """
    check(options, models)
    job = _Job(models, options, times)
    programs, recomputed = zip(*(job.program(stage) for stage in range(job.sizes.pp)), strict=True)
    workload = Workload(
        name=name,
        programs=programs,
        rank_class=stage_of_rank(job.sizes),
        groups=job.table.groups,
        group_kind=job.table.kinds,
        rank_groups=job.table.rank_groups,
        rank_peers=peer_table(job.sizes),
        replica=replica_of_rank(job.sizes),
        manifest=_manifest(job, programs, sum(recomputed) * job.sizes.stage_ranks),
    )
    checks = check_manifest(workload, job.engine_sizes, job.steps)
    return replace(workload, manifest=workload.manifest.model_copy(update={"checks": tuple(checks)}))


def engine_steps(options: RlhfOptions) -> tuple[Step, ...]:
    """What each engine computes for one batch of responses."""
    sequences = options.rollout_batch_size // (options.engines * options.generation_batches)
    engines = virtual_engines(sequences, options.generation_pipeline_parallel_size, sequences)
    lengths = options.prompt_length, options.response_length
    return pipelined(
        [
            engine_batches(Requests(*lengths, at_a_time, options.max_num_batched_tokens), numbers)
            for numbers, at_a_time in engines
        ]
    )


class _Job:
    """Models, layout and groups of a job."""

    def __init__(self, models: Roles, options: RlhfOptions, times: ComputeTimes) -> None:
        self.options, self.times, self.models = options, times, models
        self.sizes: ParallelSizes = parallel_sizes(options.megatron(options.rollout_batch_size))
        self.engine_sizes = ServingSizes(
            tp=options.generation_tensor_parallel_size,
            pp=options.generation_pipeline_parallel_size,
            dp=options.engines,
        )
        self.steps = engine_steps(options)
        self.table: GroupTable = rlhf_groups(options, self.sizes, models["actor"].tied_embeddings)
        self._engine_costs = ServingCosts(models["actor"], self.engine_sizes, times)
        actor, critic, reward = (
            self._costs(models["actor"]),
            self._costs(with_value_head(models["critic"])),
            self._costs(with_value_head(models["reward"])),
        )
        stages = range(self.sizes.pp)
        self._forward: list[dict[str, Stage]] = [
            {
                "reward": self._stage(ValueStage, reward, stage),
                "reference": self._stage(Stage, actor, stage),
                "values": self._stage(ValueStage, critic, stage),
            }
            for stage in stages
        ]
        self.training: list[dict[str, Stage]] = [
            {"actor": self._stage(Stage, actor, stage), "critic": self._stage(ValueStage, critic, stage)}
            for stage in stages
        ]
        self.weights = parts([training["actor"].tensors[0] for training in self.training])

    def program(self, stage: int) -> tuple[Program, int]:
        """The program of a stage of training, and FLOPs of it that are recomputation."""
        split = stage_layers(self.models["actor"].layers, self.engine_sizes.pp)
        engine = ServingStage(self._engine_costs, split, stage if len(split) > 1 else 0, GENERATION_TP)
        models = StageModels(engine, self._forward[stage], self.training[stage])
        return Iteration(self.options, self.steps, self.weights, self.table.roles).program(models, stage)

    def held(self, stage: int) -> int:
        """Parameters of all models that a rank of a stage of training holds; those of the engine are not counted."""
        forward = self._forward[stage]
        models = (forward["reward"], forward["reference"], *self.training[stage].values())
        return sum(model.parameters for model in models)

    def _costs(self, model: Model) -> StepCosts:
        padded = model.model_copy(update={"vocab": padded_vocab(model, self.sizes.tp)})
        megatron = resolve_megatron(self.options.megatron(self.options.ppo_mini_batch_size), padded)
        return StepCosts(padded, megatron, self.sizes, self.times)

    def _stage(self, kind: type[Stage], costs: StepCosts, stage: int) -> Stage:
        return kind(costs, split_layers(costs.options, costs.model.layers), stage, self.table.roles)


def _manifest(job: _Job, programs: Sequence[Program], recomputed: int) -> Manifest:
    sizes, options = job.sizes, job.options
    flops = sum(int(program.num_ops.sum()) for program in programs) * sizes.stage_ranks
    actor = job.models["actor"]
    vocab = padded_vocab(actor, sizes.tp)
    return Manifest(
        version=__version__,
        generator=GENERATOR,
        model={role: model.model_dump(mode="json") for role, model in job.models.items()},
        options=options.model_dump(mode="json"),
        compute_times=job.times.description,
        layout={
            "ranks": sizes.ranks,
            "tp": sizes.tp,
            "pp": sizes.pp,
            "dp": sizes.dp,
            "generation_tp": job.engine_sizes.tp,
            "generation_pp": job.engine_sizes.pp,
            "engines": job.engine_sizes.dp,
            "engine_steps": len(job.steps) * options.generation_batches,
            "optimizer_steps": options.optimizer_steps,
            "vocab": vocab,
        },
        classes=tuple(f"stage {stage}" for stage in range(sizes.pp)),
        parameters=parameters(actor, vocab).total,
        parameters_per_rank=tuple(job.held(stage) for stage in range(sizes.pp)),
        flops=flops,
        model_flops=flops - recomputed,
        tokens=options.rollout_batch_size * options.sequence,
        tokens_are="of prompts and responses",
        traffic=count_traffic(programs, job.table.roles, np.full(sizes.pp, sizes.stage_ranks)),
    )
