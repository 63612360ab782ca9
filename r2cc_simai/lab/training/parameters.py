"""The parameters of a model as one flat buffer, which is what an AllReduce and an optimizer work on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from r2cc_simai.lab.training.layers import Array

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Where each parameter lies in the flat buffer, in the order of `shapes`."""

    shapes: Mapping[str, Shape]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def views(self, flat: Array) -> dict[str, Array]:
        """The parameters of a flat buffer (size,) by name, without copies."""
        views, at = {}, 0
        for name, shape in self.shapes.items():
            views[name] = flat[at : at + math.prod(shape)].reshape(shape)
            at += math.prod(shape)
        return views


def initial(layout: Layout, seed: int, residual_layers: int, dtype: type = np.float32) -> Array:
    """Random parameters, shape (size,), the same for the same seed.

    Matrices have a standard deviation of 1/sqrt(rows), those that write to the residual stream 1/sqrt(residual_layers)
    of that, embeddings 0.02; gains are 1 and biases 0 (as GPT-2, but for widths this small).
    """
    rng = np.random.default_rng(seed)
    flat: Array = np.zeros(layout.size, dtype=dtype)
    for name, view in layout.views(flat).items():
        if name.endswith("gain"):
            view[...] = 1
        elif name.endswith("embedding"):
            view[...] = 0.02 * rng.standard_normal(view.shape)
        elif view.ndim == 2:
            scale = 1 / math.sqrt(view.shape[0] * (residual_layers if name.endswith("out") else 1))
            view[...] = scale * rng.standard_normal(view.shape)
    return flat
