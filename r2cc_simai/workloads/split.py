"""Which layers each pipeline stage and model chunk holds."""

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.megatron_options import MegatronOptions

Chunk = range
"""Layers, counted from 0, of one model chunk of one stage."""


def split_layers(options: MegatronOptions, layers: int) -> tuple[tuple[Chunk, ...], ...]:
    """Chunks of each stage: entry [stage][chunk]; virtual stage chunk * pp + stage holds the next layers in turn.

    Source: Megatron-LM, megatron/core/transformer/transformer_block.py, get_num_layers_to_build.

    Raises:
        InputError: the layers cannot be divided so; one line that says what would be right.
    """
    pp = options.pipeline_model_parallel_size
    counts = _uneven(options, layers) if _names_ends(options) else _even(options, layers)
    per_chunk = options.num_layers_per_virtual_pipeline_stage
    if per_chunk is None:
        chunks = 1
    else:
        if any(count % per_chunk for count in counts) or len({count // per_chunk for count in counts}) > 1:
            raise InputError(
                f"--num-layers-per-virtual-pipeline-stage {per_chunk}: does not divide the layers of every stage "
                f"into equally many chunks; stages have {_said(counts)} layers"
            )
        chunks = counts[0] // per_chunk
    of_virtual_stage = [counts[stage] // chunks for _ in range(chunks) for stage in range(pp)]
    of_virtual_stage[0] -= options.account_for_embedding_in_pipeline_split
    of_virtual_stage[-1] -= options.account_for_loss_in_pipeline_split
    starts = [sum(of_virtual_stage[:k]) for k in range(chunks * pp + 1)]
    return tuple(
        tuple(range(starts[chunk * pp + stage], starts[chunk * pp + stage + 1]) for chunk in range(chunks))
        for stage in range(pp)
    )


def _names_ends(options: MegatronOptions) -> bool:
    return bool(options.decoder_first_pipeline_num_layers or options.decoder_last_pipeline_num_layers)


def _even(options: MegatronOptions, layers: int) -> list[int]:
    """Slots of each stage; an embedding or a loss that is accounted for takes one."""
    pp = options.pipeline_model_parallel_size
    slots = layers + options.account_for_embedding_in_pipeline_split + options.account_for_loss_in_pipeline_split
    if slots % pp:
        raise InputError(
            f"--pipeline-model-parallel-size {pp}: does not divide {slots} layers "
            f"({layers} of the model); use a divisor, --account-for-embedding-in-pipeline-split with "
            "--account-for-loss-in-pipeline-split, or --decoder-first-pipeline-num-layers"
        )
    return [slots // pp] * pp


def _uneven(options: MegatronOptions, layers: int) -> list[int]:
    """Layers of each stage where the user says how many the first or the last one has."""
    pp = options.pipeline_model_parallel_size
    first, last = options.decoder_first_pipeline_num_layers, options.decoder_last_pipeline_num_layers
    flag = "--decoder-first-pipeline-num-layers" if first else "--decoder-last-pipeline-num-layers"
    if options.account_for_embedding_in_pipeline_split or options.account_for_loss_in_pipeline_split:
        raise InputError(f"{flag}: not together with --account-for-...-in-pipeline-split")
    ends = [count for count in (first, last) if count]
    middle = pp - len(ends)
    rest = layers - sum(ends)
    if rest < 0 or (middle <= 0 and (rest or middle < 0)) or (middle > 0 and (rest % middle or not rest)):
        raise InputError(f"{flag}: leaves {rest} of {layers} layers for {middle} stages; a multiple of those is wanted")
    between = [rest // middle] * middle if middle else []
    return [*([first] if first else []), *between, *([last] if last else [])]


def _said(counts: list[int]) -> str:
    return ", ".join(map(str, counts)) if len(set(counts)) > 1 else str(counts[0])
