"""What the communication nodes of a workload's programs add up to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.workloads.layout import NEXT_CONTEXT, PREVIOUS_CONTEXT
from r2cc_simai.workloads.manifest import Traffic

if TYPE_CHECKING:
    from r2cc_simai.workloads.program import Int, Program

SEND = "SEND"


def count_traffic(programs: "Sequence[Program]", roles: Sequence[str], ranks_of_class: "Int") -> tuple[Traffic, ...]:
    """One entry for each pair of group kind and operation that occurs, sorted.

    Args:
        programs: of each class of ranks.
        roles: kind of each group role; the peers' kinds are "pp" and "cp".
        ranks_of_class: shape (classes,), how many ranks run each program.
    """
    by_class = [_count(program, roles) for program in programs]
    found = sorted({key for counted in by_class for key in counted})
    entries = []
    for kind, comm in found:
        counts, sizes = zip(*(counted.get((kind, comm), (0, 0)) for counted in by_class), strict=True)
        entries.append(
            Traffic(
                group_kind=kind,
                comm_type=comm,
                class_count=counts,
                class_bytes=sizes,
                total_count=_dot(counts, ranks_of_class),
                total_bytes=_dot(sizes, ranks_of_class),
            )
        )
    return tuple(entries)


def _dot(values: Sequence[int], weights: "Int") -> int:
    return sum(value * int(weight) for value, weight in zip(values, weights, strict=True))  # may exceed 64 bits


def _count(program: "Program", roles: Sequence[str]) -> dict[tuple[str, str], tuple[int, int]]:
    counted: dict[tuple[str, str], tuple[int, int]] = {}
    collective = program.kind == NodeType.COMM_COLL
    for role, kind in enumerate(roles):
        for comm in CommType:
            _add(
                counted,
                (kind, comm.name),
                program.bytes[collective & (program.group == role) & (program.comm_type == comm)],
            )
    sends = program.kind == NodeType.COMM_SEND
    context = np.isin(program.peer, (NEXT_CONTEXT, PREVIOUS_CONTEXT))
    _add(counted, ("cp", SEND), program.bytes[sends & context])
    _add(counted, ("pp", SEND), program.bytes[sends & ~context])
    return counted


def _add(counted: dict[tuple[str, str], tuple[int, int]], key: tuple[str, str], sizes: "Int") -> None:
    if len(sizes):
        counted[key] = (len(sizes), int(sizes.sum()))
