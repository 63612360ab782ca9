"""Attention under context parallelism: how a rank gets the keys and values of the other parts of its sequences.

p2p: blocks of keys and values travel around a ring while the block that has arrived is worked on; the backward pass
sends the keys and values again, and beside them, one step later, their gradients (Liu et al., arXiv 2310.01889).
all_gather: one AllGather of keys and values; the backward pass repeats it and reduce-scatters the gradients.
Both as in NVIDIA's Transformer Engine, transformer_engine/pytorch/attention, with parts of equal work on all ranks.
"""

from r2cc_simai.chakra.schema import CommType
from r2cc_simai.workloads.layout import NEXT_CONTEXT, PREVIOUS_CONTEXT
from r2cc_simai.workloads.segment import Cost, SegmentBuilder

PASSES = 3
"""Forward, recomputed forward, backward: each has its own tags."""


def ring_tags(cp: int) -> int:
    """Tags of one layer's ring exchanges in one micro-batch."""
    return PASSES * cp


def gathered_forward(b: SegmentBuilder, name: str, core: Cost, size: int, *, again: bool = False) -> None:
    """Keys and values (`size` bytes a rank) by AllGather, then the attention over all of them."""
    b.collective(f"{name}.kv", CommType.ALL_GATHER, "cp", size)
    b.compute(name, core, again=again)


def gathered_backward(b: SegmentBuilder, name: str, core: Cost, size: int, cp: int) -> None:
    """The AllGather again, the attention's gradients, and the sum of those of keys and values."""
    b.collective(f"{name}.kv", CommType.ALL_GATHER, "cp", size)
    b.compute(name, core)
    b.collective(f"{name}.dkv", CommType.REDUCE_SCATTER, "cp", size * cp)


def ring_forward(
    b: SegmentBuilder, name: str, core: Cost, size: int, cp: int, tag: int, *, again: bool = False
) -> None:
    """cp steps of compute; cp - 1 messages of `size` bytes to the next rank, each while a step computes."""
    arrived = b.stream
    for step in range(cp):
        last = step == cp - 1
        coming: tuple[int, ...] = ()
        if not last:
            b.send(f"{name}.kv", NEXT_CONTEXT, size, tag + step, arrived)
            coming = b.receive(f"{name}.kv", PREVIOUS_CONTEXT, size, tag + step)
        b.compute(f"{name}.step{step}", core.share(step, cp), again=again)
        b.wait(coming)
        arrived = coming


def ring_backward(b: SegmentBuilder, name: str, core: Cost, size: int, cp: int, tag: int) -> None:
    """cp steps of compute, cp messages: keys and values go with all but the last, gradients with all but the first."""
    for step in range(cp):
        message = size if step in (0, cp - 1) else 2 * size
        b.send(f"{name}.kv", NEXT_CONTEXT, message, tag + step)
        coming = b.receive(f"{name}.kv", PREVIOUS_CONTEXT, message, tag + step)
        b.compute(f"{name}.step{step}", core.share(step, cp))
        b.wait(coming)
