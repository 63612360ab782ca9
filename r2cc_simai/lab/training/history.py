"""How a job has gone: losses step by step, and the perplexity at its end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from r2cc_simai.errors import MismatchError
from r2cc_simai.lab.training.replica import Step


@dataclass(frozen=True)
class History:
    """Entry k of `losses` (mean over all ranks before the update, in nats per token) and of `checksums` (of the
    parameters after it) is that of step k + 1. `perplexity` is exp(mean loss) of the held-out text after the last step.
    """

    losses: tuple[float, ...]
    checksums: tuple[int, ...]
    perplexity: float

    def same_losses(self, other: "History") -> int:
        """Number of steps from the first on whose losses are equal bit for bit."""
        return _same(self.losses, other.losses)

    def same_parameters(self, other: "History") -> int:
        """Number of steps from the first on after which the parameters are equal bit for bit."""
        return _same(self.checksums, other.checksums)

    def perplexity_difference_pct(self, reference: "History") -> float:
        """100 (own / reference - 1)."""
        return 100 * (self.perplexity / reference.perplexity - 1)


def history_of(steps: Sequence[Sequence[Step]]) -> History:
    """The history of what all ranks told in every step.

    Raises:
        MismatchError: the ranks' parameters are not equal after a step.
    """
    for told in steps:
        if len({one.checksum for one in told}) > 1:
            parts = ", ".join(f"rank {one.rank} {one.checksum:08x}" for one in told)
            raise MismatchError(f"step {told[0].step}: the ranks' parameters differ ({parts})")
    last = steps[-1]
    held_out = sum(one.held_out_loss for one in last) / sum(one.held_out_tokens for one in last)
    return History(
        losses=tuple(sum(one.loss for one in told) / len(told) for told in steps),
        checksums=tuple(told[0].checksum for told in steps),
        perplexity=math.exp(held_out),
    )


def _same(own: Sequence[float], other: Sequence[float]) -> int:
    count = 0
    for a, b in zip(own, other, strict=False):
        if a != b:
            break
        count += 1
    return count
