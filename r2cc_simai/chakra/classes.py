"""Which ranks of a workload have equal traces, and what a reader of these traces will call their groups and peers.

A trace names groups and peers by number, so its reader knows roles only by the order in which the numbers turn up. Two
roles of a program that are one group or one rank (the stages before and after, where there are two) are one role to it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from r2cc_simai.workloads.program import Workload

Int = NDArray[np.int64]
Roles = dict[int, int]


@dataclass(frozen=True)
class EqualRanks:
    """Ranks that run one program and whose roles coincide alike; ascending."""

    program: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a workload, by their first ranks, and the roles of every rank."""

    classes: tuple[EqualRanks, ...]
    groups: tuple[Roles, ...]
    """Per rank: index into Workload.groups of each group role that its program uses, in the order of first use."""
    peers: tuple[Roles, ...]
    """Per rank: rank of each peer role that its program uses, in the order of first use."""


def split(workload: "Workload") -> Classes:
    """The classes of equal traces.

    Raises:
        ValueError: a program uses a role that one of its ranks does not have.
    """
    roles = [(_first_use(program.group), _first_use(program.peer)) for program in workload.programs]
    groups: list[Roles] = []
    peers: list[Roles] = []
    members: dict[tuple[int, tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for rank, program in enumerate(workload.rank_class.tolist()):
        group_roles, peer_roles = roles[program]
        groups.append(dict(zip(group_roles, workload.rank_groups[rank, group_roles].tolist(), strict=True)))
        peers.append(dict(zip(peer_roles, workload.rank_peers[rank, peer_roles].tolist(), strict=True)))
        if min((*groups[-1].values(), *peers[-1].values()), default=0) < 0:
            raise ValueError(f"rank {rank} lacks a group or peer that its program uses")
        pattern = program, _pattern(groups[-1].values()), _pattern(peers[-1].values())
        members.setdefault(pattern, []).append(rank)
    classes = tuple(EqualRanks(key[0], tuple(ranks)) for key, ranks in members.items())
    return Classes(classes, tuple(groups), tuple(peers))


def distinct(values: Iterable[int]) -> tuple[int, ...]:
    """The values, each once, in the order in which they first turn up."""
    return tuple(dict.fromkeys(values))


def _first_use(column: Int) -> list[int]:
    used = column[column >= 0]
    values, at = np.unique(used, return_index=True)
    order: list[int] = values[np.argsort(at)].tolist()
    return order


def _pattern(values: Iterable[int]) -> tuple[int, ...]:
    """Which of the values are equal: for each, where the first one equal to it stands."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(value, i) for i, value in enumerate(values))
