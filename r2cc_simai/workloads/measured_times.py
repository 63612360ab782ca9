"""Compute times from a table of measured blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.blocks import BlockRequest
from r2cc_simai.workloads.measured_table import MeasuredBlock, read_measured_times
from r2cc_simai.workloads.roofline import Roofline


@dataclass(frozen=True)
class MeasuredTimes:
    """Times of blocks that someone measured; a row counts where all that it names is equal.

    Columns: `model` (name or alias), `gpu` (name or alias), `tp`, `tokens`, `block`, `pass`, `time_us`; the optional
    `context` and `phase` may be empty and then fit any. For the optimizer `tokens` is the number of the rank's
    parameters. Where a table has `backward` alone, dgrad and wgrad are parts of it in the roofline's proportion;
    where it has these two, backward is their sum.

    Attributes:
        path: the table.
        roofline: for the GPU's name, for that proportion, and for blocks that the table lacks.
        fallback: whether the roofline stands in for blocks that the table lacks; if not they are an error.

    Raises:
        InputError: there is no such file, or it is wrong (naming line and column).
    """

    path: Path
    roofline: Roofline
    fallback: bool = False

    def __post_init__(self) -> None:
        _ = self._times

    @property
    def description(self) -> str:
        """The table, the GPU, and what happens for blocks that the table lacks."""
        rest = f"; what it lacks: {self.roofline.description}" if self.fallback else ""
        return f"measured {self.roofline.gpu.name}: {self.path.name}, {len(self._times)} rows{rest}"

    def block_seconds(self, request: BlockRequest) -> float:
        """Seconds of the row that fits.

        Raises:
            InputError: no row fits and there is no fallback.
        """
        for candidate in (self._row(request), self._share(request), self._sum(request)):
            if candidate is not None:
                return candidate
        if self.fallback:
            return self.roofline.block_seconds(request)
        raise InputError(
            f"{self.path}: no row for model {request.model.name}, gpu {self.roofline.gpu.name}, tp {request.tp}, "
            f"tokens {_size(request)}, block {request.block}, pass {request.pass_}; add one or allow the roofline"
        )

    @cached_property
    def _times(self) -> dict[MeasuredBlock, float]:
        return read_measured_times(self.path)

    def _row(self, request: BlockRequest) -> float | None:
        return next((self._times[key] for key in self._keys(request) if key in self._times), None)

    def _share(self, request: BlockRequest) -> float | None:
        """The part of a measured backward pass that one of its halves takes."""
        if request.pass_ not in ("dgrad", "wgrad"):
            return None
        whole = replace(request, pass_="backward")
        both = self._row(whole)
        if both is None:
            return None
        return both * self.roofline.block_seconds(request) / self.roofline.block_seconds(whole)

    def _sum(self, request: BlockRequest) -> float | None:
        """A backward pass from its measured halves."""
        if request.pass_ != "backward":
            return None
        inputs, weights = self._row(replace(request, pass_="dgrad")), self._row(replace(request, pass_="wgrad"))
        return None if inputs is None or weights is None else inputs + weights

    def _keys(self, request: BlockRequest) -> Iterator[MeasuredBlock]:
        """Rows that fit, the most specific one first."""
        names = (request.model.name, *request.model.aliases)
        for name, context, phase in product(names, (request.context, 0), (request.phase, "")):
            yield MeasuredBlock(
                name.lower(),
                self.roofline.gpu.name,
                request.tp,
                _size(request),
                request.block,
                request.pass_,
                context,
                phase,
            )


def _size(request: BlockRequest) -> int:
    return request.parameters if request.block == "optimizer" else request.tokens
