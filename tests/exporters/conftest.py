"""Exported files to read and to break: the traces of a small AllReduce, and an MSCCL program."""

from collections.abc import Callable
from pathlib import Path

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.collectives.schedule import Schedule, ScheduleBuilder
from r2cc_simai.errors import SimaiError
from r2cc_simai.exporters.chakra import write_chakra
from r2cc_simai.exporters.chakra_reader import read_chakra
from r2cc_simai.exporters.verify import find_fault

Fault = Callable[[Path], str | None]


def ring(ranks: int, size: int, channels: int = 1) -> Schedule:
    """Ring AllReduce over ranks 0, 1, ...; every channel has a part of the buffer."""
    builder = ScheduleBuilder(n_ranks=ranks, bytes=size, chunk_bytes=2**20)
    for channel in range(channels):
        lo, hi = size * channel // channels, size * (channel + 1) // channels
        builder.ring(builder.new_channel(), builder.route(list(range(ranks))), lo, hi)
    return builder.build()


@pytest.fixture
def three_ranks(tmp_path: Path) -> Path:
    """Return the prefix of the traces of a ring AllReduce of 9 bytes on three ranks; the files are c.0.et to c.2.et."""
    write_chakra(ring(3, 9), tmp_path / "c")
    return tmp_path / "c"


@pytest.fixture
def fault_of() -> Fault:
    """Return a function: what reading or proving traces complains about; None where they are right."""

    def call(prefix: Path) -> str | None:
        try:
            return find_fault(read_chakra(prefix))
        except SimaiError as error:
            return str(error)

    return call


@pytest.fixture
def schedule_for(plan_for) -> Callable[..., Schedule]:
    """Return a function: the schedule of a strategy on a cluster where one NIC is down (half, if it is the only)."""

    def call(cluster: str, strategy: str, size: int) -> Schedule:
        where = load_cluster(cluster)
        only = len(where.servers[0].nics) == 1
        return plan_for(where, strategy, size, {1: 0.5 if only else 0.0}).schedule

    return call
