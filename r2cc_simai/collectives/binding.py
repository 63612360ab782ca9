"""The binding: which NIC pairs carry the traffic of each (channel, source, destination), and in what shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.engine import _core

Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Binding:
    """Columns of one row per NIC pair of a hop between servers; the shares of a hop add up to 1."""

    channel: Int
    src: Int
    dst: Int
    src_nic: Int
    dst_nic: Int
    share: NDArray[np.float64]

    @cached_property
    def core(self) -> _core.Binding:
        """The engine's copy."""
        return _core.Binding(
            channel=self.channel,
            src=self.src,
            dst=self.dst,
            src_nic=self.src_nic,
            dst_nic=self.dst_nic,
            share=self.share,
        )


Row = tuple[int, int, int, int, int, float]  # channel, src, dst, src_nic, dst_nic, share


def binding_of(rows: Sequence[Row] | NDArray[np.float64]) -> Binding:
    """A binding of rows (channel, source rank, destination rank, source NIC, destination NIC, share)."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    channel, src, dst, src_nic, dst_nic = (np.ascontiguousarray(table[:, k].astype(np.int64)) for k in range(5))
    return Binding(channel, src, dst, src_nic, dst_nic, np.ascontiguousarray(table[:, 5]))
