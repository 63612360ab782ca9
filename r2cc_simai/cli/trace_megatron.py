"""`r2cc-simai trace megatron`: one iteration of a Megatron-LM training job as Chakra traces."""

from typing import Annotated

import typer

from r2cc_simai.cli.trace_options import Compute, Fallback, Fold, Force, GpuName, MfuScale, Name, Output, Times

RECOMPUTE = ("none", "selective", "full")
CONTEXT_COMM = ("p2p", "all_gather")


def megatron(
    model: Annotated[str, typer.Option("--model", help="A shipped model, or a .yml file.")],
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="Ranks of the job.")],
    output: Output,
    tensor: Annotated[int, typer.Option("--tensor-model-parallel-size", min=1)] = 1,
    pipeline: Annotated[int, typer.Option("--pipeline-model-parallel-size", min=1)] = 1,
    context: Annotated[int, typer.Option("--context-parallel-size", min=1)] = 1,
    expert: Annotated[int, typer.Option("--expert-model-parallel-size", min=1)] = 1,
    expert_tensor: Annotated[
        int | None,
        typer.Option("--expert-tensor-parallel-size", min=1, help="Default: the tensor-model-parallel size."),
    ] = None,
    sequence_parallel: Annotated[bool, typer.Option("--sequence-parallel")] = False,
    cp_comm_type: Annotated[
        str, typer.Option("--cp-comm-type", metavar="TYPE", help="Keys and values: p2p (a ring) or all_gather.")
    ] = "p2p",
    chunk_layers: Annotated[
        int | None,
        typer.Option("--num-layers-per-virtual-pipeline-stage", min=1, help="Interleaved schedule."),
    ] = None,
    account_embedding: Annotated[
        bool, typer.Option("--account-for-embedding-in-pipeline-split", help="First stage: one layer less.")
    ] = False,
    account_loss: Annotated[
        bool, typer.Option("--account-for-loss-in-pipeline-split", help="Last stage: one layer less.")
    ] = False,
    first_layers: Annotated[int | None, typer.Option("--decoder-first-pipeline-num-layers", min=1)] = None,
    last_layers: Annotated[int | None, typer.Option("--decoder-last-pipeline-num-layers", min=1)] = None,
    distributed_optimizer: Annotated[bool, typer.Option("--use-distributed-optimizer")] = False,
    overlap_grad_reduce: Annotated[bool, typer.Option("--overlap-grad-reduce")] = False,
    overlap_param_gather: Annotated[bool, typer.Option("--overlap-param-gather")] = False,
    micro_batch: Annotated[int, typer.Option("--micro-batch-size", min=1, help="Sequences.")] = 1,
    global_batch: Annotated[
        int | None,
        typer.Option("--global-batch-size", min=1, help="Sequences. Default: about 3 Mi tokens, all stages kept busy."),
    ] = None,
    seq_length: Annotated[
        int | None, typer.Option("--seq-length", min=1, help="Default: what the model takes, at most 4096.")
    ] = None,
    recompute: Annotated[
        str, typer.Option("--recompute-granularity", metavar="WHAT", help="none, selective or full.")
    ] = "none",
    fp32_gradients: Annotated[
        bool,
        typer.Option("--accumulate-allreduce-grads-in-fp32/--grad-reduce-in-bf16", help="4 or 2 bytes a gradient."),
    ] = True,
    bucket: Annotated[
        int | None,
        typer.Option("--ddp-bucket-size", min=1, help="Parameters. Default: 40M, or 1M a replica if that is more."),
    ] = None,
    gpu: GpuName = "A100-SXM4-80GB",
    compute: Compute = None,
    times: Times = None,
    fallback: Fallback = False,
    mfu_scale: MfuScale = 1.0,
    fold: Fold = False,
    name: Name = None,
    force: Force = False,
) -> None:
    """Write one training iteration of every rank as Chakra traces, with communicator groups and a manifest.

    Options are named as in Megatron-LM. What the nodes add up to is checked against closed forms.
    """
    from r2cc_simai.cli import trace_output
    from r2cc_simai.config import validated
    from r2cc_simai.workloads.megatron import generate
    from r2cc_simai.workloads.megatron_options import MegatronOptions
    from r2cc_simai.workloads.models import load_model

    trace_output.one_of("--recompute-granularity", recompute, RECOMPUTE)
    trace_output.one_of("--cp-comm-type", cp_comm_type, CONTEXT_COMM)
    options = validated(
        MegatronOptions,
        {
            "gpus": gpus,
            "tensor_model_parallel_size": tensor,
            "pipeline_model_parallel_size": pipeline,
            "context_parallel_size": context,
            "expert_model_parallel_size": expert,
            "expert_tensor_parallel_size": expert_tensor,
            "sequence_parallel": sequence_parallel,
            "cp_comm_type": cp_comm_type,
            "num_layers_per_virtual_pipeline_stage": chunk_layers,
            "account_for_embedding_in_pipeline_split": account_embedding,
            "account_for_loss_in_pipeline_split": account_loss,
            "decoder_first_pipeline_num_layers": first_layers,
            "decoder_last_pipeline_num_layers": last_layers,
            "use_distributed_optimizer": distributed_optimizer,
            "overlap_grad_reduce": overlap_grad_reduce,
            "overlap_param_gather": overlap_param_gather,
            "micro_batch_size": micro_batch,
            "global_batch_size": global_batch,
            "seq_length": seq_length,
            "recompute_granularity": recompute,
            "accumulate_allreduce_grads_in_fp32": fp32_gradients,
            "ddp_bucket_size": bucket,
        },
        "trace megatron",
    )
    chosen = load_model(model)
    source = trace_output.compute_times(compute, gpu, times, mfu_scale=mfu_scale, fallback=fallback)
    workload = generate(trace_output.trace_name(name, chosen.name), chosen, options, source)
    trace_output.write(workload, output, fold=fold, force=force)
