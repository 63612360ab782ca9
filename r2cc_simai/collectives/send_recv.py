"""Send/Recv as nccl-tests' sendrecv: every rank of the group sends its buffer to the next, the last to the first.

The buffer of the schedule is a virtual one of p D bytes: what the k-th rank sends lies at k D. T0 = D/B.
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
    members = frozenset(call.group)
    for k, src in enumerate(call.group):
        dst = call.group[(k + 1) % p]
        if src == dst:
            continue
        path = direct.path(src, dst, members)
        ranks = [src, dst] if path.via is None else [src, path.via, dst]
        channel = builder.new_channel()
        builder.chain(channel, builder.route(ranks), k * call.bytes, (k + 1) * call.bytes, 0, len(ranks) - 1)
        rows.extend((channel, ranks[-2], dst, *pair) for pair in path.pairs)
    return np.array(rows, dtype=np.float64).reshape(-1, 6)
