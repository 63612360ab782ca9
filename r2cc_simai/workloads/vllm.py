"""A vLLM deployment as a workload: engine steps of every rank.

    options = VllmOptions(gpus=16, tensor_parallel_size=16)
    workload = generate("llama3.1-405b", load_model("llama3.1-405b"), options, compute_times("roofline", "H100"))

All ranks of a pipeline stage do the same, so there is one program for each stage, with disaggregated prefill one for
each stage of both kinds of replicas. The engines behind a pipeline take turns, as many as it has stages.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from r2cc_simai import __version__
from r2cc_simai.workloads.assemble import Instance, assemble
from r2cc_simai.workloads.compute_times import ComputeTimes
from r2cc_simai.workloads.engine_batches import Step
from r2cc_simai.workloads.kv_transfer import KvTransfer
from r2cc_simai.workloads.layout import GroupTable
from r2cc_simai.workloads.manifest import Manifest
from r2cc_simai.workloads.model_math import parameters
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.program import Int, Program, Workload
from r2cc_simai.workloads.segment import Names, Segment, SegmentBuilder
from r2cc_simai.workloads.serving_costs import ServingCosts, padded_vocab
from r2cc_simai.workloads.serving_layout import (
    Layers,
    group_kinds,
    serving_groups,
    stage_layers,
    stage_peers,
)
from r2cc_simai.workloads.serving_parameters import rank_parameters
from r2cc_simai.workloads.serving_stage import ServingStage
from r2cc_simai.workloads.traffic import count_traffic
from r2cc_simai.workloads.vllm_checks import check_manifest
from r2cc_simai.workloads.vllm_options import VllmOptions, resolve
from r2cc_simai.workloads.vllm_pools import Pool, pools_of, tokens_of

GENERATOR = "vllm"
FIRST_PARTNER = 2
"""Peer role of the first replica that keys and values go to or come from; before it the next and previous stage."""


def generate(name: str, model: Model, options: VllmOptions, times: ComputeTimes) -> Workload:
    """Engine steps of all ranks.

    Args:
        name: of the workload.
        model: what is served; its vocabulary is padded as vLLM pads it.
        options: as the user gave them.
        times: durations of compute nodes.

    Raises:
        InputError: the options do not fit together or the model, or `times` lacks a block.
    """
    options = resolve(options, model)
    pools = pools_of(options)
    split = stage_layers(model.layers, options.pipeline_parallel_size)
    grids = [pool.grid for pool in pools]
    kinds = dict.fromkeys(kind for pool in pools for kind in group_kinds(pool.sizes, model.experts is not None))
    table = serving_groups(options.gpus, grids, tuple(kinds))
    transfer = _transfer(options)
    programs = tuple(
        _program(pool, ServingCosts(model, pool.sizes, times), split, stage, table.roles, transfer, replica)
        for pool in pools
        for replica in range(kinds_of_replicas(pool, transfer))
        for stage in range(len(split))
    )
    workload = Workload(
        name=name,
        programs=programs,
        rank_class=_classes(pools, transfer),
        groups=table.groups,
        group_kind=table.kinds,
        rank_groups=table.rank_groups,
        rank_peers=_peers(grids, transfer),
        replica=_replicas(grids, transfer),
        manifest=_manifest(model, options, times, pools, split, table, transfer, programs),
    )
    checked = workload.manifest.model_copy(update={"checks": tuple(check_manifest(workload, pools))})
    return replace(workload, manifest=checked)


def _transfer(options: VllmOptions) -> KvTransfer | None:
    if not options.kv_transfer:
        return None
    return KvTransfer(options.prefill_replicas, options.serving_replicas, FIRST_PARTNER)


def _program(
    pool: Pool,
    costs: ServingCosts,
    split: Sequence[Layers],
    stage: int,
    roles: tuple[str, ...],
    transfer: KvTransfer | None,
    replica: int,
) -> Program:
    """The program of a stage of a replica."""
    names = Names()
    engine = ServingStage(costs, split, stage)
    size = costs.cached_bytes(pool.input_len, len(split[stage]))
    instances = [Instance(_step(engine, pool, step, names, roles, transfer, size, replica)) for step in pool.steps]
    return assemble(tuple(names.known), instances)


def _step(
    engine: ServingStage,
    pool: Pool,
    step: Step,
    names: Names,
    roles: tuple[str, ...],
    transfer: KvTransfer | None,
    size: int,
    replica: int,
) -> Segment:
    b = SegmentBuilder(names, roles)
    if transfer and pool.phase == "decode" and step.before < 0:
        transfer.receive(b, pool.sequences[step.engine], size, replica)
    engine.add(b, step)
    if transfer and pool.phase == "prefill":
        transfer.send(b, step.batch.prompts, size, replica)
    return b.build()


def kinds_of_replicas(pool: Pool, transfer: KvTransfer | None) -> int:
    """Replicas of a pool, one after the other, that run different programs."""
    return transfer.partners_of[pool.phase] if transfer else 1


def _classes(pools: Sequence[Pool], transfer: KvTransfer | None) -> Int:
    """Number of each rank's program."""
    parts: list[Int] = []
    first = 0
    for pool in pools:
        replicas, stages, tp = pool.grid.shape
        kinds = kinds_of_replicas(pool, transfer)
        parts.append(np.tile(np.repeat(first + np.arange(kinds * stages), tp), replicas // kinds))
        first += kinds * stages
    return np.concatenate(parts)


def _peers(grids: Sequence[Int], transfer: KvTransfer | None) -> Int:
    """Next and previous stage of each rank, and its partners in other replicas."""
    around = [np.stack([peer.ravel() for peer in stage_peers(grid)], axis=1) for grid in grids]
    table = np.concatenate(around)
    return np.hstack((table, transfer.peers(*grids))) if transfer else table


def _peer_kinds(transfer: KvTransfer | None) -> tuple[str, ...]:
    return "pp", "pp", *(["kv"] * max(transfer.partners) if transfer else [])


def _replicas(grids: Sequence[Int], transfer: KvTransfer | None) -> Int:
    """Replica of each rank; those that exchange keys and values count as one."""
    count = sum(len(grid) for grid in grids)
    number = transfer.linked() if transfer else np.arange(count)
    return np.repeat(number, grids[0][0].size)


def _manifest(
    model: Model,
    options: VllmOptions,
    times: ComputeTimes,
    pools: tuple[Pool, ...],
    split: Sequence[Layers],
    table: GroupTable,
    transfer: KvTransfer | None,
    programs: Sequence[Program],
) -> Manifest:
    classes = [
        (pool, replica, layers)
        for pool in pools
        for replica in range(kinds_of_replicas(pool, transfer))
        for layers in split
    ]
    ranks = np.array([pool.sizes.dp * pool.sizes.tp // kinds_of_replicas(pool, transfer) for pool, _, _ in classes])
    tokens, which = tokens_of(pools)
    flops = sum(int(program.num_ops.sum()) * int(count) for program, count in zip(programs, ranks, strict=True))
    first = pools[0].sizes
    padded = model.model_copy(update={"vocab": padded_vocab(model.vocab, first.tp)})
    return Manifest(
        version=__version__,
        generator=GENERATOR,
        model=model.model_dump(mode="json"),
        options=options.model_dump(mode="json"),
        compute_times=times.description,
        layout={
            "ranks": options.gpus,
            "tp": first.tp,
            "pp": first.pp,
            "dp": options.serving_replicas,
            "prefill_dp": options.prefill_replicas,
            "ep": pools[-1].sizes.ep,
            "vocab": padded.vocab,
            "steps": sum(len(pool.steps) for pool in pools),
        },
        classes=tuple(_class_name(*one) for one in classes),
        parameters=parameters(padded).total,
        parameters_per_rank=tuple(rank_parameters(padded, pool.sizes, layers) for pool, _, layers in classes),
        flops=flops,
        model_flops=flops,
        tokens=tokens,
        tokens_are=which,
        traffic=count_traffic(programs, table.roles, ranks, _peer_kinds(transfer)),
    )


def _class_name(pool: Pool, replica: int, layers: Layers) -> str:
    return f"{pool.phase} replica {replica}, layers {layers[0]}-{layers[-1]}"
