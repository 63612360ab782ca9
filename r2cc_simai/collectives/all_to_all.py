"""AllToAll: every rank sends a block of its own to every other, directly.

T0 = (p - p_s)/p * D/B for p ranks in all, p_s of them on a server, and a NIC of rate B for each rank.

The buffer of the schedule is a virtual one of p D bytes: what rank k sends lies at k D, so that the checker can tell
the blocks apart. One pass holds all that a rank sends, over the route [i, j1, i, j2, ..], and a second one what others
of its server forward for it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.collectives.direct import Direct, Path
from r2cc_simai.collectives.operations import Call
from r2cc_simai.collectives.schedule import Int, ScheduleBuilder

Table = NDArray[np.float64]  # binding rows, shape (rows, 6)


def add_all_to_all(builder: ScheduleBuilder, direct: Direct, call: Call) -> Table:
    """Adds the passes of every rank, nearest successor first, in a buffer of p D bytes; returns their binding."""
    p = len(call.group)
    group = np.array(call.group, dtype=np.int64)
    members = frozenset(call.group)
    tables: list[Table] = [np.zeros((0, 6))]
    for i in range(p):
        order = (i + np.arange(1, p, dtype=np.int64)) % p
        near = direct.single_pairs(call.group[i], group[order])
        others = np.nonzero(near < 0)[0]
        paths = {int(k): direct.path(call.group[i], call.group[k], members) for k in order[others]}
        away = np.zeros(len(order), dtype=bool)
        away[others] = [path.via is not None for path in paths.values()]
        if not away.all():
            tables += _add_straight(builder, direct, call, i, order[~away], near[~away], paths)
        if away.any():
            tables += _add_forwarded(builder, call, i, order[away], paths)
    return np.concatenate(tables)


def _add_straight(
    builder: ScheduleBuilder, direct: Direct, call: Call, sender: int, targets: Int, near: Int, paths: dict[int, Path]
) -> list[Table]:
    """One hop to each target: `near` is the target's NIC where one NIC pair carries it all, else -1."""
    rank, ranks = call.group[sender], np.array(call.group, dtype=np.int64)[targets]
    channel = _add_star(builder, call, sender, targets, np.column_stack([np.full(len(ranks), rank), ranks]))
    single = near >= 0
    source = direct.single(rank)
    out, back = (np.zeros((int(single.sum()), 6)) for _ in range(2))
    out[:] = back[:] = channel, rank, rank, source, source, 1.0
    out[:, 2], out[:, 4] = ranks[single], near[single]
    back[:, 1], back[:, 3] = ranks[single], near[single]
    rows: list[tuple[float, ...]] = []
    for k in targets[~single]:
        rows += _rows(channel, rank, call.group[k], rank, paths[int(k)])
    return [out, back, np.array(rows).reshape(-1, 6)]


def _add_forwarded(
    builder: ScheduleBuilder, call: Call, sender: int, targets: Int, paths: dict[int, Path]
) -> list[Table]:
    """Two hops to each target, by the rank that forwards."""
    rank = call.group[sender]
    legs = [(rank, paths[int(k)].via or 0, call.group[k]) for k in targets]
    channel = _add_star(builder, call, sender, targets, np.array(legs))
    rows: list[tuple[float, ...]] = []
    for k, (_, via, target) in zip(targets, legs, strict=True):
        rows += _rows(channel, via, target, rank, paths[int(k)])
    return [np.array(rows).reshape(-1, 6)]


def _add_star(builder: ScheduleBuilder, call: Call, sender: int, targets: Int, legs: Int) -> int:
    """A pass of sections that start at the sender and each go along one of the legs, shape (targets, ranks)."""
    base, blocks = sender * call.bytes, call.blocks
    hops = legs.shape[1] - 1
    channel = builder.new_channel()
    start = np.arange(len(targets), dtype=np.int64) * (hops + 1)
    lo, hi = base + blocks[targets], base + blocks[targets + 1]
    builder.spans(channel, builder.route(legs.ravel()), lo, hi, start, 0, hops)
    return channel


def _rows(channel: int, src: int, dst: int, sender: int, path: Path) -> Sequence[tuple[float, ...]]:
    """A hop over its NIC pairs, and the way back to the sender, which the route has and nothing takes."""
    rows = [(channel, src, dst, a, b, part) for a, b, part in path.pairs]
    return rows + [(channel, dst, sender, b, a, 1.0) for a, b, _ in path.pairs[:1]]
