"""States of a cluster that cannot be told apart, and one of each kind to stand for all.

Two kinds of moves make one state of another. **Blocks** of servers change places, each with its servers in order: any
two blocks of one kind, or all together in a turn. **Rails** change places on all servers alike, where NICs have equal
rates and headers and where NUMA nodes, backup orders, rails and the GPUs beside the NICs move along. Whether a job
meets the same in both states depends on the job too; who makes a `Symmetry` decides which moves are in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from r2cc_simai.cluster.model import Cluster

Label = tuple[float | str, ...]
"""What is said of a NIC, for example its rate fraction; the same kinds of values in the same order for all NICs."""
State = tuple[tuple[int, Label], ...]
"""NICs of which something is said, ascending."""
Move = tuple[int, ...]
"""Position k within a server (of a NIC or a GPU) goes to position move[k]."""


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Moves that change nothing for a job.

    `blocks` are the servers of each block; blocks change places with those of their own `kinds`, or, where `turns` is
    given, all together by one of these numbers of places. `rails` are permutations of the NICs of every server, of
    which the first leaves all as it is.
    """

    cluster: Cluster
    blocks: tuple[tuple[int, ...], ...]
    kinds: tuple[int, ...]
    turns: tuple[int, ...] | None
    rails: tuple[Move, ...]

    def canonical(self, labels: Mapping[int, Label]) -> State:
        """The state that stands for all those into which the moves turn `labels` (by number of the NIC).

        It is the least of them, so it is its own canonical state, and equal for all of them.
        """
        if not labels:
            return ()
        return min(self._placed(labels, rail) for rail in self.rails)

    def _placed(self, labels: Mapping[int, Label], rail: Move) -> State:
        """The least state after one permutation of the rails."""
        nics, servers = self.cluster.nics, self.cluster.servers
        found: dict[int, list[tuple[int, int, Label]]] = {}
        for nic, label in labels.items():
            server = nics[nic].server
            block, place = self._place_of_server[server]
            position = rail[nic - servers[server].nics[0]]
            found.setdefault(block, []).append((place, position, label))
        for own in found.values():
            own.sort()
        if self.turns is None:
            return self._numbered(zip(self._sorted(found), sorted_profiles(found, self.kinds), strict=True))
        count = len(self.blocks)
        first = min(min((block + turn) % count for block in found) for turn in self.turns)
        turns = [turn for turn in self.turns if min((block + turn) % count for block in found) == first]
        return min(
            self._numbered(((block + turn) % count, profile) for block, profile in found.items()) for turn in turns
        )

    def _sorted(self, found: Iterable[int]) -> list[int]:
        """The first blocks of each kind, as many as have something."""
        count: dict[int, int] = {}
        for block in found:
            count[self.kinds[block]] = count.get(self.kinds[block], 0) + 1
        return [block for kind in sorted(count) for block in self._blocks_of_kind[kind][: count[kind]]]

    def _numbered(self, profiles: Iterable[tuple[int, Sequence[tuple[int, int, Label]]]]) -> State:
        servers = self.cluster.servers
        return tuple(
            sorted(
                (servers[self.blocks[block][place]].nics[position], label)
                for block, profile in profiles
                for place, position, label in profile
            )
        )

    @property
    def _place_of_server(self) -> dict[int, tuple[int, int]]:
        return _places(self.blocks)

    @property
    def _blocks_of_kind(self) -> dict[int, list[int]]:
        return _members(self.kinds)


def sorted_profiles(
    found: Mapping[int, list[tuple[int, int, Label]]], kinds: Sequence[int]
) -> list[list[tuple[int, int, Label]]]:
    """What the blocks have, by kind and then ascending."""
    ordered = sorted((kinds[block], own) for block, own in found.items())
    return [own for _, own in ordered]


@lru_cache(maxsize=64)
def _places(blocks: tuple[tuple[int, ...], ...]) -> dict[int, tuple[int, int]]:
    return {server: (block, place) for block, own in enumerate(blocks) for place, server in enumerate(own)}


@lru_cache(maxsize=64)
def _members(kinds: tuple[int, ...]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = {}
    for block, kind in enumerate(kinds):
        members.setdefault(kind, []).append(block)
    return members


def alone(cluster: Cluster) -> Symmetry:
    """No moves: every state stands for itself."""
    blocks = tuple((server.index,) for server in cluster.servers)
    return Symmetry(cluster, blocks, tuple(range(len(blocks))), None, (still(cluster),))


def kinds_of(cluster: Cluster, blocks: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """A number for each block, equal for those with equal servers below the same leaf switches."""
    known: dict[object, int] = {}
    looks = [tuple((_spec_of(cluster, s), _leaves_of(cluster, s)) for s in block) for block in blocks]
    return tuple(known.setdefault(look, len(known)) for look in looks)


def turns_of(cluster: Cluster, blocks: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """By how many places all blocks can turn: each meets an equal one, and leaf switches go to leaf switches."""
    count = len(blocks)
    return tuple(turn for turn in range(count) if _turns(cluster, blocks, turn))


def _turns(cluster: Cluster, blocks: Sequence[Sequence[int]], turn: int) -> bool:
    """Whether a turn takes every server to an equal one, and servers of one leaf switch to servers of one."""
    to: dict[int, int] = {}
    for block, own in enumerate(blocks):
        for a, b in zip(own, blocks[(block + turn) % len(blocks)], strict=False):
            if len(own) != len(blocks[(block + turn) % len(blocks)]) or _spec_of(cluster, a) != _spec_of(cluster, b):
                return False
            for leaf, other in zip(_leaves_of(cluster, a), _leaves_of(cluster, b), strict=True):
                if to.setdefault(leaf, other) != other:
                    return False
    return all(len(cluster.leaves[a].nics) == len(cluster.leaves[b].nics) for a, b in to.items() if a >= 0)


def _spec_of(cluster: Cluster, server: int) -> str:
    """What tells a server from others: its name among the overrides, whose like no other is taken to be."""
    name = f"server{server}"
    return name if name in cluster.spec.overrides else ""


def _leaves_of(cluster: Cluster, server: int) -> tuple[int, ...]:
    return tuple(cluster.leaf_of_nic[nic] for nic in cluster.servers[server].nics)


def still(cluster: Cluster) -> Move:
    """The permutation that leaves all NICs of a server in their places."""
    return tuple(range(max(len(server.nics) for server in cluster.servers)))
