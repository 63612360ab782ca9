"""Reading the files of single ranks, two at a time."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.chakra.finding import Finding, Progress
from r2cc_simai.engine._core import Trace, TraceReading, read_trace
from r2cc_simai.errors import InputError

THREADS = 2
WINDOW = 32
"""Files that may be read ahead: what bounds the memory."""


@dataclass(frozen=True, eq=False)
class RankTrace:
    """One file as read."""

    path: Path
    reading: TraceReading
    findings: tuple[Finding, ...]
    groups: tuple[int, ...]
    """Number of the group of each role."""
    peers: tuple[int, ...]
    """Rank of the peer of each role."""

    @property
    def trace(self) -> Trace:
        """The compiled trace; of no use if there are errors."""
        return self.reading.trace

    @property
    def broken(self) -> bool:
        """Whether there are errors."""
        return self.reading.errors > 0


def file_bytes(path: Path) -> NDArray[np.uint8]:
    """What a file holds.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None


def read_rank(path: Path) -> RankTrace:
    """One file.

    Raises:
        InputError: it cannot be read; for what is wrong in it there are findings.
    """
    reading = read_trace(file_bytes(path))
    trace = reading.trace
    groups = tuple(int(name) for name in trace.groups)
    return RankTrace(path, reading, _findings(path.name, reading), groups, tuple(trace.peers))


def read_ranks(paths: Sequence[Path], progress: Progress | None = None) -> Iterator[RankTrace]:
    """The files in order; few are held at a time.

    Raises:
        InputError: a file cannot be read.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        for begin in range(0, len(paths), WINDOW):
            for done, read in enumerate(pool.map(read_rank, paths[begin : begin + WINDOW]), begin + 1):
                if progress is not None:
                    progress(done, len(paths))
                yield read


def _findings(file: str, reading: TraceReading) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            one.severity,  # type: ignore[arg-type]  # the engine has the same three
            one.kind,
            file,
            one.reason,
            None if one.node < 0 else one.node,
            None if one.position < 0 else one.position,
            None if one.offset < 0 else one.offset,
            one.more,
        )
        for one in reading.findings
    )
