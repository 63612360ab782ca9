"""One data-parallel rank: its part of the batch, its gradient, and the update after the gradients have been summed.

All ranks start from equal parameters and add up equal sums, so that their parameters stay equal bit for bit.
"""

import zlib
from dataclasses import dataclass

import numpy as np

from r2cc_simai.lab.training.layers import Array
from r2cc_simai.lab.training.model import Tokens
from r2cc_simai.lab.training.optimizer import Adam
from r2cc_simai.lab.training.parameters import initial
from r2cc_simai.lab.training.settings import TrainingSpec
from r2cc_simai.lab.training.text import load_grammar

_TRAINING, _HELD_OUT, _BATCH = range(3)  # streams of random numbers


@dataclass(frozen=True)
class Step:
    """What one rank tells after a step. `loss` is the mean of its sequences before the update, in nats per token;
    `checksum` is the CRC-32 of its parameters after it. After the last step `held_out_loss` is the sum over the
    `held_out_tokens` tokens that are this rank's part of the held-out text."""

    rank: int
    step: int
    loss: float
    checksum: int
    held_out_loss: float = 0.0
    held_out_tokens: int = 0


class Replica:
    """The training state of rank `rank` of `ranks`. Steps count from 1."""

    def __init__(self, spec: TrainingSpec, rank: int, ranks: int) -> None:
        grammar = load_grammar(spec.text.grammar)
        self._spec = spec
        self._rank, self._ranks = rank, ranks
        self._model = spec.transformer(len(grammar.characters))
        self._length = spec.model.context + 1
        self._tokens = grammar.tokens(max(spec.text.characters, self._length + 1), (spec.seed, _TRAINING))
        held_out = grammar.tokens(spec.text.held_out_sequences * self._length, (spec.seed, _HELD_OUT))
        self._held_out: Tokens = held_out.reshape(-1, self._length)[rank::ranks]
        self.parameters: Array = initial(self._model.layout, spec.seed, 2 * spec.model.layers)
        self._optimizer = Adam(self.size, spec.learning_rate, spec.warmup_steps)
        self._loss = 0.0

    @property
    def size(self) -> int:
        """Number of parameters, and of elements of a gradient."""
        return self._model.layout.size

    def gradient(self, step: int, out: Array) -> None:
        """Writes the gradient of this rank's part of the batch of a step to `out`, shape (size,)."""
        losses = self._model.gradient(self.parameters, self._batch(step), out)
        self._loss = float(losses.mean(dtype=np.float64))

    def update(self, step: int, summed: Array) -> Step:
        """Updates the parameters by the sum of all ranks' gradients."""
        self._optimizer.update(self.parameters, summed / np.float32(self._ranks))
        checksum = zlib.crc32(self.parameters.data)
        if step < self._spec.steps:
            return Step(self._rank, step, self._loss, checksum)
        losses = self._model.losses(self.parameters, self._held_out)
        return Step(self._rank, step, self._loss, checksum, float(losses.sum(dtype=np.float64)), losses.size)

    def _batch(self, step: int) -> Tokens:
        """This rank's sequences of a step, drawn anew in every step: shape (sequences_per_rank, context + 1)."""
        rng = np.random.default_rng((self._spec.seed, _BATCH, step, self._rank))
        starts = rng.integers(0, len(self._tokens) - self._length, self._spec.sequences_per_rank)
        return np.stack([self._tokens[start : start + self._length] for start in starts.tolist()])
