"""The replicas of a vLLM deployment by what they do: all the same, or some for prompts and some to decode."""

from dataclasses import dataclass

from r2cc_simai.workloads.engine_batches import Requests, Step, engine_batches, pipelined, virtual_engines
from r2cc_simai.workloads.program import Int
from r2cc_simai.workloads.serving_closed_forms import load_of
from r2cc_simai.workloads.serving_layout import ServingSizes, rank_grid
from r2cc_simai.workloads.vllm_options import ServingPhase, VllmOptions


@dataclass(frozen=True)
class Pool:
    """Replicas that do the same."""

    phase: ServingPhase
    sizes: ServingSizes
    first_rank: int
    input_len: int
    steps: tuple[Step, ...]
    """Of each replica."""
    sequences: tuple[range, ...]
    """Of each of its engines."""

    @property
    def grid(self) -> Int:
        """Ranks, shape (replicas, stages, tensor-parallel ranks)."""
        return rank_grid(self.sizes, self.first_rank)


def pools_of(options: VllmOptions) -> tuple[Pool, ...]:
    """The replicas of resolved options, by what they do: all of them, or those that prefill and those that decode."""
    first, prompts = options.prefill_replicas, options.num_prompts or 0
    if not first:
        return (_pool(options, options.phase or "decode", options.serving_replicas, 0, prompts, options.iterations),)
    rank = first * options.replica_gpus
    return (
        _pool(options, "prefill", first, 0, prompts, None),
        _pool(options, "decode", options.serving_replicas, rank, prompts, options.iterations),
    )


def _pool(
    options: VllmOptions, phase: ServingPhase, replicas: int, first_rank: int, prompts: int, limit: int | None
) -> Pool:
    tp, pp = options.tensor_parallel_size, options.pipeline_parallel_size
    engines = virtual_engines(prompts // replicas, pp, options.max_num_seqs)
    batches = [
        engine_batches(
            Requests(
                input_len=options.input_len,
                output_len=1 if phase == "prefill" else options.output_len,
                max_num_seqs=at_a_time,
                max_num_batched_tokens=options.max_num_batched_tokens,
                prefilled=phase == "decode",
            ),
            sequences,
            limit,
        )
        for sequences, at_a_time in engines
    ]
    sizes = ServingSizes(tp=tp, pp=pp, dp=replicas, expert_parallel=options.enable_expert_parallel)
    return Pool(
        phase, sizes, first_rank, options.input_len, pipelined(batches), tuple(sequences for sequences, _ in engines)
    )


def tokens_of(pools: tuple[Pool, ...]) -> tuple[int, str]:
    """The tokens by which the workload's throughput counts, of all replicas, and which these are.

    Decode: generated ones, as with disaggregated prefill; prefill: those of prompts; mixed: both.
    """
    last = pools[-1]
    load = load_of(last.steps, last.sizes.tp)
    count, what = {
        "prefill": (load.prompt_tokens, "of prompts"),
        "decode": (load.generated, "generated"),
        "mixed": (load.W, "of prompts and generated"),
    }[last.phase]
    return count * last.sizes.dp, what
