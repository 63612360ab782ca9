"""Gradient buckets: which parameters' gradients go over the network in one collective.

Parameters fill buckets in the order in which the backward pass produces their gradients, roughly the reverse of the
forward order; a bucket is closed by the parameter that brings it to the wanted size.
Source: Megatron-LM, megatron/core/distributed/param_and_grad_buffer.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

SMALLEST = 40_000_000
"""Parameters of a bucket by default, at least."""
PER_REPLICA = 1_000_000
"""Parameters of a bucket by default, for each data-parallel rank: latency grows with the ring."""
ALIGNMENT = 128
"""With the distributed optimizer a bucket is padded to a multiple of this and of the number of replicas."""


@dataclass(frozen=True)
class Bucket:
    """Consecutive parameters, `first` to `stop` (excluded) of a list in the order of the backward pass."""

    first: int
    stop: int
    parameters: int


def default_bucket_size(replicas: int) -> int:
    """Parameters of a bucket unless the user says otherwise."""
    return max(SMALLEST, PER_REPLICA * replicas)


def fill_buckets(sizes: Sequence[int], limit: int | None, alone: Sequence[bool] = ()) -> tuple[Bucket, ...]:
    """Buckets of at least `limit` parameters each, but for the last; one for all without a limit.

    Args:
        sizes: parameters of each tensor in the order of the backward pass.
        limit: wanted parameters of a bucket.
        alone: per tensor, whether it has a bucket of its own; nobody by default.
    """
    buckets: list[Bucket] = []
    first = held = 0

    def close(stop: int) -> None:
        nonlocal first, held
        if stop > first:
            buckets.append(Bucket(first, stop, held))
        first, held = stop, 0

    for k, size in enumerate(sizes):
        single = bool(alone) and alone[k]
        if single:
            close(k)
        held += size
        if single or (limit is not None and held >= limit):
            close(k + 1)
    close(len(sizes))
    return tuple(buckets)


def padded(parameters: int, replicas: int) -> int:
    """Parameters of a bucket that the distributed optimizer can cut in equal, aligned shards."""
    unit = math.lcm(replicas, ALIGNMENT)
    return -(-parameters // unit) * unit
