"""Which port stands for which when equal ranks are simulated once; the numbering is that of `Ports` in the engine."""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.training.classes import Classes


class Fold(TypedDict):
    """The two columns of the engine's port fold: a port for each port, and how many ports that one stands for."""

    fold_representative: NDArray[np.int64]
    fold_count: NDArray[np.float64]


def no_fold() -> Fold:
    """Every port for itself."""
    return Fold(fold_representative=np.zeros(0, dtype=np.int64), fold_count=np.zeros(0))


def port_fold(classes: Classes) -> Fold:
    """The ports of equal units as one; a unit has two ports, out and in."""
    _, first, inverse, size = np.unique(classes.of_unit, return_index=True, return_inverse=True, return_counts=True)
    unit = first[inverse]
    return Fold(
        fold_representative=np.column_stack((2 * unit, 2 * unit + 1)).reshape(-1).astype(np.int64),
        fold_count=np.repeat(size[inverse], 2).astype(np.float64),
    )
