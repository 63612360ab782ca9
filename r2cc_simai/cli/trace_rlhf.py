"""`r2cc-simai trace rlhf`: one PPO iteration as Chakra traces."""

from typing import Annotated

import typer

from r2cc_simai.cli.trace_options import Compute, Fallback, Fold, Force, GpuName, MfuScale, Name, Output, Times

RECOMPUTE = ("none", "selective", "full")
WEIGHT_SYNC = ("all_gather", "broadcast")


def rlhf(
    output: Output,
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="Ranks of the job; all models are on all of them.")] = 64,
    actor: Annotated[str, typer.Option("--actor-model", help="A shipped model, or a .yml file.")] = "llama2-7b",
    critic: Annotated[str | None, typer.Option("--critic-model", help="Default: the actor's.")] = None,
    reward: Annotated[str | None, typer.Option("--reward-model", help="Default: the critic's.")] = None,
    tensor: Annotated[
        int, typer.Option("--tensor-model-parallel-size", min=1, help="Of training and the forward passes.")
    ] = 8,
    pipeline: Annotated[
        int, typer.Option("--pipeline-model-parallel-size", min=1, help="Of training and the forward passes.")
    ] = 1,
    generation_tensor: Annotated[
        int, typer.Option("--generation-tensor-parallel-size", min=1, help="Divides that of training.")
    ] = 2,
    generation_pipeline: Annotated[
        int, typer.Option("--generation-pipeline-parallel-size", min=1, help="1, or that of training.")
    ] = 1,
    rollout: Annotated[
        int, typer.Option("--rollout-batch-size", min=1, help="Prompts of an iteration, one response each.")
    ] = 512,
    prompt: Annotated[int, typer.Option("--prompt-length", min=1, help="Tokens.")] = 512,
    response: Annotated[int, typer.Option("--response-length", min=2, help="Tokens of every response.")] = 512,
    generation_batches: Annotated[
        int, typer.Option("--generation-batches", min=1, help="Batches in which an engine generates its responses.")
    ] = 1,
    max_tokens: Annotated[
        int, typer.Option("--max-num-batched-tokens", min=1, help="Tokens of an engine step.")
    ] = 8192,
    mini_batch: Annotated[
        int, typer.Option("--ppo-mini-batch-size", min=1, help="Sequences of an optimizer step.")
    ] = 128,
    epochs: Annotated[int, typer.Option("--ppo-epochs", min=1)] = 1,
    micro_batch: Annotated[int, typer.Option("--micro-batch-size", min=1, help="Sequences.")] = 4,
    recompute: Annotated[
        str, typer.Option("--recompute-granularity", metavar="WHAT", help="none, selective or full.")
    ] = "none",
    overlap: Annotated[
        bool,
        typer.Option("--overlap-grad-reduce/--no-overlap-grad-reduce", help="Beside the backward pass or after it."),
    ] = True,
    fp32_gradients: Annotated[
        bool,
        typer.Option("--accumulate-allreduce-grads-in-fp32/--grad-reduce-in-bf16", help="4 or 2 bytes a gradient."),
    ] = True,
    weight_sync: Annotated[
        str, typer.Option("--weight-sync", metavar="HOW", help="Actor to engine: all_gather or broadcast.")
    ] = "all_gather",
    gpu: GpuName = "A100-SXM4-80GB",
    compute: Compute = None,
    times: Times = None,
    fallback: Fallback = False,
    mfu_scale: MfuScale = 1.0,
    fold: Fold = False,
    name: Name = None,
    force: Force = False,
) -> None:
    """Write one PPO iteration of every rank as Chakra traces: generation, scoring, training, weight synchronisation.

    What the nodes add up to is checked against closed forms.
    """
    from r2cc_simai.cli import trace_output
    from r2cc_simai.config import validated
    from r2cc_simai.workloads.models import load_model
    from r2cc_simai.workloads.rlhf import generate
    from r2cc_simai.workloads.rlhf_options import RlhfOptions

    trace_output.one_of("--recompute-granularity", recompute, RECOMPUTE)
    trace_output.one_of("--weight-sync", weight_sync, WEIGHT_SYNC)
    names = {"actor": actor, "critic": critic or actor, "reward": reward or critic or actor}
    options = validated(
        RlhfOptions,
        {
            **{f"{role}_model": model for role, model in names.items()},
            "gpus": gpus,
            "tensor_model_parallel_size": tensor,
            "pipeline_model_parallel_size": pipeline,
            "generation_tensor_parallel_size": generation_tensor,
            "generation_pipeline_parallel_size": generation_pipeline,
            "rollout_batch_size": rollout,
            "prompt_length": prompt,
            "response_length": response,
            "generation_batches": generation_batches,
            "max_num_batched_tokens": max_tokens,
            "ppo_mini_batch_size": mini_batch,
            "ppo_epochs": epochs,
            "micro_batch_size": micro_batch,
            "recompute_granularity": recompute,
            "overlap_grad_reduce": overlap,
            "accumulate_allreduce_grads_in_fp32": fp32_gradients,
            "weight_sync": weight_sync,
        },
        "trace rlhf",
    )
    models = {role: load_model(model) for role, model in names.items()}
    source = trace_output.compute_times(compute, gpu, times, mfu_scale=mfu_scale, fallback=fallback)
    wanted = trace_output.trace_name(name, f"rlhf-{models['actor'].name}")
    workload = generate(wanted, models, options, source)
    trace_output.write(workload, output, fold=fold, force=force)
