"""Adam on a flat buffer of parameters."""

import math

import numpy as np

from r2cc_simai.lab.training.layers import Array


class Adam:
    """Adam (Kingma and Ba, arXiv 1412.6980), with a linear warm-up of the learning rate over `warmup` steps::

    m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
    x = x - rate_t m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)        rate_t = rate min(1, t / warmup)
    """

    def __init__(
        self, size: int, rate: float, warmup: int = 0, betas: tuple[float, float] = (0.9, 0.95), epsilon: float = 1e-8,
        dtype: type = np.float32,
    ) -> None:  # fmt: skip
        self._rate = rate
        self._warmup = warmup
        self._betas = betas
        self._epsilon = epsilon
        self._mean: Array = np.zeros(size, dtype=dtype)
        self._square: Array = np.zeros(size, dtype=dtype)
        self.steps = 0

    def update(self, parameters: Array, gradient: Array) -> None:
        """One step, in place; both of shape (size,)."""
        self.steps += 1
        b1, b2 = self._betas
        self._mean *= b1
        self._mean += (1 - b1) * gradient
        self._square *= b2
        self._square += (1 - b2) * gradient * gradient
        rate = self._rate * (min(1.0, self.steps / self._warmup) if self._warmup else 1.0)
        scale = 1 / math.sqrt(1 - b2**self.steps)
        parameters -= (rate / (1 - b1**self.steps)) * self._mean / (scale * np.sqrt(self._square) + self._epsilon)
