"""`r2cc-simai trace vllm`: engine steps of a vLLM deployment as Chakra traces."""

from typing import Annotated

import typer

from r2cc_simai.cli.trace_options import Compute, Fallback, Fold, Force, GpuName, MfuScale, Name, Output, Times

PHASES = ("prefill", "decode", "mixed")


def vllm(
    model: Annotated[str, typer.Option("--model", help="A shipped model, or a .yml file.")],
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="Ranks of the whole deployment.")],
    output: Output,
    tensor: Annotated[int, typer.Option("--tensor-parallel-size", min=1, help="May exceed a server's GPUs.")] = 1,
    pipeline: Annotated[int, typer.Option("--pipeline-parallel-size", min=1)] = 1,
    data: Annotated[
        int | None,
        typer.Option("--data-parallel-size", min=1, help="Replicas. Default: gpus / (tensor x pipeline)."),
    ] = None,
    expert_parallel: Annotated[
        bool, typer.Option("--enable-expert-parallel", help="Whole experts on each rank, AllToAll between replicas.")
    ] = False,
    max_seqs: Annotated[int, typer.Option("--max-num-seqs", min=1, help="Running sequences of a replica.")] = 256,
    max_tokens: Annotated[
        int, typer.Option("--max-num-batched-tokens", min=1, help="Tokens of an engine step.")
    ] = 8192,
    max_len: Annotated[
        int | None, typer.Option("--max-model-len", min=1, help="Tokens of a sequence. Default: the model's.")
    ] = None,
    input_len: Annotated[int, typer.Option("--input-len", min=1, help="Tokens of a prompt.")] = 1024,
    output_len: Annotated[int, typer.Option("--output-len", min=1, help="Tokens generated for it.")] = 128,
    num_prompts: Annotated[
        int | None, typer.Option("--num-prompts", min=1, help="Of the whole deployment; or give --batch-size.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Sequences of each replica. Default: 64.")
    ] = None,
    phase: Annotated[
        str | None,
        typer.Option("--phase", metavar="PHASE", help="prefill, decode (default), or mixed (chunked prefill)."),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", min=1, help="Engine steps of each batch in flight. Default: until all is done."),
    ] = None,
    kv_transfer: Annotated[
        bool, typer.Option("--kv-transfer", help="Disaggregated prefill: keys and values go over the network.")
    ] = False,
    prefill_gpus: Annotated[
        int | None, typer.Option("--prefill-gpus", min=1, help="Ranks of the prefill replicas. Default: half.")
    ] = None,
    gpu: GpuName = "H100-SXM5-80GB",
    compute: Compute = None,
    times: Times = None,
    fallback: Fallback = False,
    mfu_scale: MfuScale = 1.0,
    fold: Fold = False,
    name: Name = None,
    force: Force = False,
) -> None:
    """Write engine steps of every rank of a vLLM deployment as Chakra traces, with groups and a manifest.

    Options are named as in vLLM. What the nodes add up to is checked against closed forms.
    """
    from r2cc_simai.cli import trace_output
    from r2cc_simai.config import validated
    from r2cc_simai.workloads.models import load_model
    from r2cc_simai.workloads.vllm import generate
    from r2cc_simai.workloads.vllm_options import VllmOptions

    if phase is not None:
        trace_output.one_of("--phase", phase, PHASES)
    options = validated(
        VllmOptions,
        {
            "gpus": gpus,
            "tensor_parallel_size": tensor,
            "pipeline_parallel_size": pipeline,
            "data_parallel_size": data,
            "enable_expert_parallel": expert_parallel,
            "max_num_seqs": max_seqs,
            "max_num_batched_tokens": max_tokens,
            "max_model_len": max_len,
            "input_len": input_len,
            "output_len": output_len,
            "num_prompts": num_prompts,
            "batch_size": batch_size,
            "phase": phase,
            "iterations": iterations,
            "kv_transfer": kv_transfer,
            "prefill_gpus": prefill_gpus,
        },
        "trace vllm",
    )
    chosen = load_model(model)
    source = trace_output.compute_times(compute, gpu, times, mfu_scale=mfu_scale, fallback=fallback)
    workload = generate(trace_output.trace_name(name, chosen.name), chosen, options, source)
    trace_output.write(workload, output, fold=fold, force=force)
