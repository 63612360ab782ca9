"""Disaggregated prefill: which replica sends the keys and values of which prompt to which other one.

Where there are more prefill replicas, several feed one decode replica, and its sequences come from them in turn; where
there are fewer, one deals its prompts to several decode replicas in turn. A rank sends what it holds to the rank of the
same stage and tensor-parallel position, prompt by prompt, when the step that ends the prompt has passed its stage. A
batch is decoded when all its prompts are there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from r2cc_simai.workloads.program import NONE, Int
from r2cc_simai.workloads.segment import SegmentBuilder


@dataclass(frozen=True)
class KvTransfer:
    """From `prefill` to `decode` replicas; `first_peer` is the peer role of the first partner."""

    prefill: int
    decode: int
    first_peer: int

    @property
    def partners(self) -> tuple[int, int]:
        """Decode replicas that a prefill replica sends to; prefill replicas that a decode replica receives from."""
        return max(1, self.decode // self.prefill), max(1, self.prefill // self.decode)

    @property
    def partners_of(self) -> dict[str, int]:
        """Replicas of each pool that have one partner in common; each of them has a program of its own, since tags
        number the prompts of all replicas that exchange them."""
        targets, sources = self.partners
        return {"prefill": sources, "decode": targets}

    def send(self, b: SegmentBuilder, prompts: Iterable[int], size: int, replica: int) -> None:
        """Prompts of prefill replica `replica`, `size` bytes each."""
        targets, sources = self.partners
        for prompt in prompts:
            b.send("kv.send", self.first_peer + prompt % targets, size, prompt * sources + replica % sources)

    def receive(self, b: SegmentBuilder, sequences: Iterable[int], size: int, replica: int) -> None:
        """What sequences of decode replica `replica` need, posted at the start of the job; the stream waits for it."""
        targets, sources = self.partners
        coming: list[int] = []
        for sequence in sequences:
            tag = sequence * targets + replica % targets
            coming += b.receive("kv.receive", self.first_peer + sequence % sources, size, tag, ())
        b.wait(coming)

    def peers(self, prefill: Int, decode: Int) -> Int:
        """Partner k of every rank, shape (ranks, partners), -1 where a rank has fewer.

        Args:
            prefill: ranks, shape (replicas, stages, tensor-parallel ranks).
            decode: the same of the decode replicas.
        """
        targets, sources = self.partners
        table = np.full((prefill.size + decode.size, max(targets, sources)), NONE, dtype=np.int64)
        for k in range(targets):
            table[prefill, k] = decode[np.arange(self.prefill) * targets // sources + k]
        for k in range(sources):
            table[decode, k] = prefill[np.arange(self.decode) * sources // targets + k]
        return table

    def linked(self) -> Int:
        """For each replica, those that send first, the set of replicas that depend on each other."""
        targets, sources = self.partners
        return np.concatenate((np.arange(self.prefill) // sources, np.arange(self.decode) // targets))
