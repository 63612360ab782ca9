"""From segments in the order of a schedule to the program of a class of ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from r2cc_simai.workloads.program import NONE, Int, Program
from r2cc_simai.workloads.segment import COLUMNS, ONE_BEFORE, PENDING, STREAM, Segment


@dataclass(frozen=True)
class Instance:
    """A segment at its place in a program; its tags grow by `tag_offset`."""

    segment: Segment
    tag_offset: int = 0


def assemble(names: Sequence[str], instances: Sequence[Instance]) -> Program:
    """The program that runs the segments one after the other, each behind what the one before leaves on the stream."""
    sizes = np.array([len(instance.segment) for instance in instances], dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    n = int(starts[-1])
    columns = {
        name: np.concatenate([instance.segment.columns[name] for instance in instances])
        for name in COLUMNS
        if name != "tag"
    }
    tags = [_shifted(instance.segment.columns["tag"], instance.tag_offset) for instance in instances]
    dep_offsets, deps = _dependencies(instances, starts, n)
    return Program(names=tuple(names), tag=np.concatenate(tags), dep_offsets=dep_offsets, deps=deps, **columns)


def _shifted(tags: Int, offset: int) -> Int:
    return np.where(tags == NONE, NONE, tags + offset)


def _dependencies(instances: Sequence[Instance], starts: Int, n: int) -> tuple[Int, Int]:
    """Offsets and positions, those of a node ascending and each once."""
    pairs: list[Int] = []
    tails: list[Int] = [np.empty(0, dtype=np.int64)]  # what the stream waits for where each segment starts
    pending: list[int] = []
    for instance, start in zip(instances, starts, strict=False):
        edges = instance.segment.edges
        inner = edges[:, 1] >= 0
        pairs.append(edges[inner] + start)
        meaning = {
            STREAM: tails[-1],
            ONE_BEFORE: tails[-2] if len(tails) > 1 else tails[0],
            PENDING: np.array(pending, dtype=np.int64),
        }
        for mark, nodes in meaning.items():
            waiting = edges[edges[:, 1] == mark, 0] + start
            pairs.append(np.stack((np.repeat(waiting, len(nodes)), np.tile(nodes, len(waiting))), axis=1))
        pending += [node + int(start) for node in instance.segment.pending]
        tail = instance.segment.tail
        own = np.array([node + start for node in tail if node >= 0], dtype=np.int64)
        tails.append(np.concatenate([own, *(meaning[mark] for mark in tail if mark < 0)]))
    keys = np.unique(np.concatenate([pair[:, 0] * n + pair[:, 1] for pair in pairs]))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(keys // n, minlength=n))))
    return offsets.astype(np.int64), keys % n
