"""A Megatron-LM training job as a workload: one iteration of every rank.

    options = MegatronOptions(gpus=1024, tensor_model_parallel_size=8, pipeline_model_parallel_size=8)
    workload = generate("gpt3-175b", load_model("gpt3-175b"), options, compute_times("roofline", "A100-SXM4-80GB"))

All ranks of a pipeline stage do the same, so there is one program for each stage. Messages between stages hold up
nothing but the pass that needs them, as with Megatron-LM's overlapped point-to-point communication.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from r2cc_simai import __version__
from r2cc_simai.workloads.assemble import Instance, assemble
from r2cc_simai.workloads.compute_times import ComputeTimes
from r2cc_simai.workloads.layout import (
    GroupTable,
    ParallelSizes,
    group_table,
    peer_table,
    replica_of_rank,
    stage_of_rank,
)
from r2cc_simai.workloads.manifest import GradientBucket, Manifest
from r2cc_simai.workloads.megatron_checks import check_manifest
from r2cc_simai.workloads.megatron_options import MegatronOptions, check, parallel_sizes, resolve
from r2cc_simai.workloads.model_math import padded_vocab
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.pipeline import schedule
from r2cc_simai.workloads.program import Program, Workload
from r2cc_simai.workloads.split import Chunk, split_layers
from r2cc_simai.workloads.stage import Stage
from r2cc_simai.workloads.step_costs import StepCosts
from r2cc_simai.workloads.tensors import Tensor
from r2cc_simai.workloads.traffic import count_traffic

GENERATOR = "megatron"


def generate(name: str, model: Model, options: MegatronOptions, times: ComputeTimes) -> Workload:
    """One training iteration of all ranks.

    Args:
        name: of the workload.
        model: what is trained; its vocabulary is padded as Megatron-LM pads it.
        options: as the user gave them.
        times: durations of compute nodes.

    Raises:
        InputError: the options do not fit together or the model, or `times` lacks a block.
    """
    options = resolve(options, model)
    check(options, model)
    split = split_layers(options, model.layers)
    sizes = parallel_sizes(options)
    padded = model.model_copy(update={"vocab": padded_vocab(model, sizes.tp)})
    costs = StepCosts(padded, options, sizes, times)
    table = group_table(sizes, group_kinds(padded, options, sizes))
    stages = [Stage(costs, split, stage, table.roles) for stage in range(sizes.pp)]
    microbatches = microbatches_of(options, sizes)
    programs, recomputed = zip(
        *(_program(stage, k, sizes.pp, microbatches) for k, stage in enumerate(stages)), strict=True
    )
    workload = Workload(
        name=name,
        programs=programs,
        rank_class=stage_of_rank(sizes),
        groups=table.groups,
        group_kind=table.kinds,
        rank_groups=table.rank_groups,
        rank_peers=peer_table(sizes),
        replica=replica_of_rank(sizes),
        manifest=_manifest(model, options, times, sizes, split, table, stages, programs, recomputed),
    )
    checked = workload.manifest.model_copy(update={"checks": tuple(check_manifest(workload))})
    return replace(workload, manifest=checked)


def microbatches_of(options: MegatronOptions, sizes: ParallelSizes) -> int:
    """Micro-batches that each replica works on in an iteration."""
    return (options.global_batch_size or 0) // (options.micro_batch_size * sizes.dp)


def group_kinds(model: Model, options: MegatronOptions, sizes: ParallelSizes) -> list[str]:
    """Kinds of groups that the job communicates in."""
    kinds = ["tp", "dp_cp" if sizes.cp > 1 else "dp"]
    if options.cp_comm_type == "all_gather":
        kinds.append("cp")
    if model.experts:
        kinds += ["ep", "expert_tp", "expert_dp"]
    if model.tied_embeddings:
        kinds.append("embedding")
    return [*kinds, "world" if options.use_distributed_optimizer else "model"]


def _program(stage: Stage, number: int, pp: int, microbatches: int) -> tuple[Program, int]:
    """The program of a stage, and how many FLOPs of it are recomputation."""
    chunks = len(stage.tensors)
    first = [stage.forward(chunk, first=True) for chunk in range(chunks)]
    forward = [stage.forward(chunk, first=False) for chunk in range(chunks)]
    backward = [stage.backward(chunk, last=False) for chunk in range(chunks)]
    last = [stage.backward(chunk, last=True) for chunk in range(chunks)]
    instances = []
    for step in schedule(pp, number, microbatches, chunks):
        if step.forward:
            segment = (forward if step.microbatch else first)[step.chunk]
        else:
            segment = (last if step.microbatch == microbatches - 1 else backward)[step.chunk]
        instances.append(Instance(segment, step.microbatch * stage.tag_stride))
    instances.append(Instance(stage.update()))
    recomputed = sum(instance.segment.recomputed_ops for instance in instances)
    return assemble(tuple(stage.names.known), instances), recomputed


def _manifest(
    model: Model,
    options: MegatronOptions,
    times: ComputeTimes,
    sizes: ParallelSizes,
    split: Sequence[Sequence[Chunk]],
    table: GroupTable,
    stages: Sequence[Stage],
    programs: Sequence[Program],
    recomputed: Sequence[int],
) -> Manifest:
    ranks = np.full(sizes.pp, sizes.stage_ranks)
    flops = sum(int(program.num_ops.sum()) for program in programs) * sizes.stage_ranks
    return Manifest(
        version=__version__,
        generator=GENERATOR,
        model=model.model_dump(mode="json"),
        options=options.model_dump(mode="json"),
        compute_times=times.description,
        layout={
            "ranks": sizes.ranks,
            "tp": sizes.tp,
            "cp": sizes.cp,
            "dp": sizes.dp,
            "pp": sizes.pp,
            "ep": sizes.ep,
            "expert_tp": sizes.expert_tp,
            "expert_dp": sizes.expert_dp,
            "chunks": len(split[0]),
            "microbatches": microbatches_of(options, sizes),
            "vocab": padded_vocab(model, sizes.tp),
        },
        classes=tuple(_class_name(k, chunks) for k, chunks in enumerate(split)),
        parameters=sum(_whole(tensor, sizes) for stage in stages for chunk in stage.tensors for tensor in chunk)
        - _copies(stages[-1].tensors, sizes),
        parameters_per_rank=tuple(stage.parameters for stage in stages),
        buckets=tuple(
            GradientBucket(rank_class=k, group_kind=buffer.kind, parameters=bucket.parameters)
            for k, stage in enumerate(stages)
            for chunk in stage.buffers
            for buffer in chunk
            for bucket in buffer.buckets
        ),
        flops=flops,
        model_flops=flops - sum(recomputed) * sizes.stage_ranks,
        tokens=(options.global_batch_size or 0) * (options.seq_length or 0),
        traffic=count_traffic(programs, table.roles, ranks),
    )


def _class_name(stage: int, chunks: Sequence[Chunk]) -> str:
    spans = ", ".join(f"{c[0]}-{c[-1]}" if len(c) > 1 else str(c[0]) for c in chunks if len(c))
    return f"stage {stage} (layers {spans or 'none'})"


def _whole(tensor: Tensor, sizes: ParallelSizes) -> int:
    """Parameters of a tensor over all ranks that share it."""
    shares = {"tp": sizes.tp, "expert": sizes.ep * sizes.expert_tp}
    return tensor.parameters * shares.get(tensor.division, 1)


def _copies(last: Sequence[Sequence[Tensor]], sizes: ParallelSizes) -> int:
    """Parameters of the last stage that the first one holds too."""
    if sizes.pp == 1:
        return 0
    return sum(_whole(tensor, sizes) for chunk in last for tensor in chunk if tensor.tied)
