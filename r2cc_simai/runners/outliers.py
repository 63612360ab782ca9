"""Rows of a measured sweep that disturbances spoilt, found by the sweep alone."""

from collections.abc import Sequence

from r2cc_simai.measured import SizeResult

DIP = 0.9
"""A bus bandwidth below this part of both neighbours' is no property of the size."""


def outlier_sizes(sizes: Sequence[SizeResult]) -> frozenset[int]:
    """Sizes in bytes at which the bus bandwidth drops far below that of the sizes before and after.

    Bandwidth grows with the size and settles; a change of protocol makes a step of it, not a dip. The first and the
    last size have one neighbour and are never outliers.
    """
    ordered = sorted(sizes, key=lambda size: size.bytes)
    busbw = [size.bytes / size.time_s if size.time_s else 0.0 for size in ordered]
    return frozenset(
        ordered[i].bytes for i in range(1, len(ordered) - 1) if busbw[i] < DIP * min(busbw[i - 1], busbw[i + 1])
    )
