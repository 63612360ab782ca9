"""The order in which a pipeline stage runs forward and backward passes: 1F1B, plain and interleaved.

With v model chunks a stage, chunk c of stage s is virtual stage c * pp + s. Both orders run some forward passes first
(warm-up), then alternate one forward and one backward pass, then run the backward passes that are left.
Source: Narayanan et al., arXiv 2104.04473, section 2.2, and Megatron-LM, megatron/core/pipeline_parallel/schedules.py.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One pass of a micro-batch through one model chunk of a stage."""

    forward: bool
    microbatch: int
    chunk: int = 0


def warmup_steps(pp: int, stage: int, microbatches: int, chunks: int = 1) -> int:
    """Forward passes that a stage runs before its first backward pass, the one of the first pair left out.

    1F1B: pp - stage - 1. Interleaved: 2 (pp - stage - 1) + (chunks - 1) pp.
    """
    wanted = pp - stage - 1 if chunks == 1 else 2 * (pp - stage - 1) + (chunks - 1) * pp
    return min(wanted, microbatches * chunks)


def schedule(pp: int, stage: int, microbatches: int, chunks: int = 1) -> tuple[Step, ...]:
    """All passes of a stage in order; with several chunks `microbatches` has to be a multiple of `pp`."""
    total = microbatches * chunks
    forward = [_step(True, k, pp, chunks) for k in range(total)]
    backward = [_step(False, k, pp, chunks) for k in range(total)]
    warmup = warmup_steps(pp, stage, microbatches, chunks)
    steps = forward[:warmup]
    for k in range(total - warmup):
        steps += (forward[warmup + k], backward[k])
    return (*steps, *backward[total - warmup :])


def _step(forward: bool, position: int, pp: int, chunks: int) -> Step:
    """The k-th forward or backward pass: `pp` micro-batches go through all chunks before the next `pp` start."""
    if chunks == 1:
        return Step(forward, position)
    turn, within = divmod(position, pp * chunks)
    chunk, first = divmod(within, pp)
    return Step(forward, turn * pp + first, chunk if forward else chunks - 1 - chunk)
