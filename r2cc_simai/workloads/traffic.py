"""What the communication nodes of a workload's programs add up to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.workloads.manifest import Traffic

if TYPE_CHECKING:
    from r2cc_simai.workloads.program import Int, Program

SEND = "SEND"
PEER_KINDS = ("pp", "pp", "cp", "cp")
"""Kinds of a training job's peer roles (see layout.peer_table)."""


def count_traffic(
    programs: "Sequence[Program]",
    roles: Sequence[str],
    ranks_of_class: "Int",
    peer_kinds: Sequence[str] = PEER_KINDS,
) -> tuple[Traffic, ...]:
    """One entry for each pair of group kind and operation that occurs, sorted.

    Args:
        programs: of each class of ranks.
        roles: kind of each group role.
        ranks_of_class: shape (classes,), how many ranks run each program.
        peer_kinds: kind of each peer role.
    """
    by_class = [_count(program, roles, peer_kinds) for program in programs]
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


def _count(
    program: "Program", roles: Sequence[str], peer_kinds: Sequence[str]
) -> dict[tuple[str, str], tuple[int, int]]:
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
    for kind in dict.fromkeys(peer_kinds):
        of_kind = np.flatnonzero([peer_kind == kind for peer_kind in peer_kinds])
        _add(counted, (kind, SEND), program.bytes[sends & np.isin(program.peer, of_kind)])
    return counted


def _add(counted: dict[tuple[str, str], tuple[int, int]], key: tuple[str, str], sizes: "Int") -> None:
    if len(sizes):
        counted[key] = (len(sizes), int(sizes.sum()))
