"""What is done to elements: element types, and how an incoming unit meets the rank's own elements.

An average is a sum that is divided once, at the end, by the number of ranks (for integers rounded down), as NCCL does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.errors import InputError
from r2cc_simai.lab.work import DType, ReduceOp

Elements = NDArray[Any]

DTYPES: dict[DType, Any] = {"float32": np.float32, "float16": np.float16, "int32": np.int32}
"""Element types by name."""

_COMBINE: dict[ReduceOp, Callable[..., Any]] = {"sum": np.add, "avg": np.add, "max": np.maximum}


@dataclass(frozen=True)
class Reduction:
    """How elements of a type are reduced.

    Raises:
        InputError: an element type or operation that the lab does not have.
    """

    dtype: DType
    op: ReduceOp

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InputError(f"lab: element type {self.dtype!r} (allowed: {', '.join(DTYPES)})")
        if self.op not in _COMBINE:
            raise InputError(f"lab: operation {self.op!r} (allowed: {', '.join(_COMBINE)})")

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return int(np.dtype(DTYPES[self.dtype]).itemsize)

    def into(self, own: Elements, incoming: Elements) -> None:
        """`own` becomes the reduction of both, in place."""
        _COMBINE[self.op](own, incoming, out=own)

    def finish(self, elements: Elements, members: int) -> None:
        """What is left to do when `members` contributions are in, in place."""
        if self.op == "avg":
            divide = np.floor_divide if self.dtype == "int32" else np.divide
            divide(elements, elements.dtype.type(members), out=elements)
