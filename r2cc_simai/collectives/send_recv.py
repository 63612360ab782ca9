"""Send/Recv as nccl-tests' sendrecv, every rank of the group sends its buffer to the next, the last to the first; and
the one-way send from one rank to another that pipeline stages make.

The buffer of the schedule of send_recv is a virtual one of p D bytes: what the k-th rank sends lies at k D. T0 = D/B
for both, B the rate of a rank's own NIC, or of the links inside a server.
"""

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.direct import Direct
from r2cc_simai.collectives.operations import Call
from r2cc_simai.collectives.schedule import ScheduleBuilder


def add_send_recv(builder: ScheduleBuilder, direct: Direct, call: Call) -> NDArray[np.float64]:
    """Adds a chain of two ranks for each pair, of three where another rank forwards; returns their binding rows."""
    rows: list[Row] = []
    p = len(call.group)
    for k, src in enumerate(call.group):
        dst = call.group[(k + 1) % p]
        if src != dst:
            rows += _add_pair(builder, direct, call, src, dst, k * call.bytes)
    return np.array(rows, dtype=np.float64).reshape(-1, 6)


def add_send(builder: ScheduleBuilder, direct: Direct, call: Call) -> NDArray[np.float64]:
    """Adds a chain from the first rank of the group to the second; returns its binding rows."""
    rows = _add_pair(builder, direct, call, *call.group, 0) if len(call.group) == 2 else []
    return np.array(rows, dtype=np.float64).reshape(-1, 6)


def _add_pair(builder: ScheduleBuilder, direct: Direct, call: Call, src: int, dst: int, lo: int) -> list[Row]:
    path = direct.path(src, dst, frozenset(call.group))
    ranks = [src, dst] if path.via is None else [src, path.via, dst]
    channel = builder.new_channel()
    builder.chain(channel, builder.route(ranks), lo, lo + call.bytes, 0, len(ranks) - 1)
    return [(channel, ranks[-2], dst, *pair) for pair in path.pairs]
