"""States of a cluster that cannot be told apart, and one of each kind to stand for all.

Two kinds of moves make one state of another. **Blocks** of servers change places, each with its servers in order: any
two of one kind, or, where their order in a ring matters, all together in a turn. **Rails** change places on all servers
alike, where NICs have equal rates and headers and where NUMA nodes, backup orders, rails and the GPUs beside the NICs
move along. Whether a job meets the same in both states depends on the job too; who makes a `Symmetry` decides which
moves are in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from r2cc_simai.cluster.model import Cluster

Label = tuple[float | str, ...]
"""What is said of a NIC, for example its rate fraction; the same kinds of values in the same order for all NICs."""
State = tuple[tuple[int, Label], ...]
"""NICs of which something is said, ascending."""
Move = tuple[int, ...]
"""Position k within a server (of a NIC or a GPU) goes to position move[k]."""


Profile = tuple[tuple[int, int, Label], ...]
"""What is said of the NICs of a block: place of the server in it, position of the NIC on the server, label."""


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Moves that change nothing for a job.

    `blocks` are the servers of each block, in order. Where `free`, two blocks of one of `kinds` can change places; else
    all move together, by one of the numbers of places in `turns`. `rails` are permutations of the NICs of every server
    alike; the first one leaves them as they are. They move where all that is said is the same, or said of one server:
    where servers have lost different rails, which of those that are left meet goes by their numbers, and a slow one may
    be among them or not. Where more than `most` servers have something said of them, nothing moves; None: there is no
    such limit.
    """

    cluster: Cluster
    blocks: tuple[tuple[int, ...], ...]
    kinds: tuple[int, ...]
    free: bool
    turns: tuple[int, ...]
    rails: tuple[Move, ...]
    most: int | None = None

    def canonical(self, labels: Mapping[int, Label]) -> State:
        """The state that stands for all those into which the moves turn `labels` (by number of the NIC).

        It is one of them and the same for all of them, so it is its own canonical state.
        """
        servers = {self.cluster.nics[nic].server for nic in labels}
        if not labels or (self.most is not None and len(servers) > self.most):
            return tuple(sorted(labels.items()))
        least = self._exchanged if self.free else self._turned
        rails = self.rails if len(servers) == 1 or len(set(labels.values())) == 1 else self.rails[:1]
        return min(least(self._profiles(labels, rail)) for rail in rails)

    def _turned(self, found: Mapping[int, Profile]) -> State:
        """The least state that a turn of the blocks makes."""
        count = len(self.blocks)
        at_front = {-block % count for block in found} & self._turns
        first = {turn: min((block + turn) % count for block in found) for turn in at_front or self._turns}
        least = min(first.values())
        return min(
            self._state(((block + turn) % count, profile) for block, profile in found.items())
            for turn in first
            if first[turn] == least
        )

    def _exchanged(self, found: Mapping[int, Profile]) -> State:
        """What blocks of a kind have, in ascending order on the first of them."""
        by_kind: dict[int, list[Profile]] = {}
        for block, profile in found.items():
            by_kind.setdefault(self.kinds[block], []).append(profile)
        return self._state(
            pair for kind, own in by_kind.items() for pair in zip(self._of_kind[kind], sorted(own), strict=False)
        )

    def _profiles(self, labels: Mapping[int, Label], rail: Move) -> dict[int, Profile]:
        """What is said of each block that has something, after a permutation of the rails."""
        nics, servers = self.cluster.nics, self.cluster.servers
        found: dict[int, list[tuple[int, int, Label]]] = {}
        for nic, label in labels.items():
            server = nics[nic].server
            block, place = self._places[server]
            found.setdefault(block, []).append((place, rail[nic - servers[server].nics[0]], label))
        return {block: tuple(sorted(own)) for block, own in found.items()}

    def _state(self, profiles: Iterable[tuple[int, Profile]]) -> State:
        servers = self.cluster.servers
        return tuple(
            sorted(
                (servers[self.blocks[block][place]].nics[position], label)
                for block, profile in profiles
                for place, position, label in profile
            )
        )

    @cached_property
    def _turns(self) -> frozenset[int]:
        return frozenset(self.turns)

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        """Block and place in it of every server."""
        return {server: (block, place) for block, own in enumerate(self.blocks) for place, server in enumerate(own)}

    @cached_property
    def _of_kind(self) -> dict[int, list[int]]:
        members: dict[int, list[int]] = {}
        for block, kind in enumerate(self.kinds):
            members.setdefault(kind, []).append(block)
        return members


def alone(cluster: Cluster) -> Symmetry:
    """No moves: every state stands for itself."""
    blocks = tuple((server.index,) for server in cluster.servers)
    return Symmetry(cluster, blocks, tuple(range(len(blocks))), False, (0,), (still(cluster),))


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
