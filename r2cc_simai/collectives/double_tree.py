"""AllReduce over double binary trees, as NCCL runs small ones: fewer steps one after another than a ring has.

Inside a server the ranks form a chain, between servers two binary trees, each for half of a channel's bytes; a server
that is an inner node of one is a leaf of the other (nearly), so that a NIC carries 2 D per direction in all. The bytes
go up the tree as sums and down again as the result, in slices that follow one another through it.

Sources: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009); the
trees are those of NCCL (src/graph/trees.cc: bit patterns of the server numbers; the second tree mirrored, or shifted by
one for an odd number of servers).
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Row
from r2cc_simai.collectives.channels import Lane, lane_rows, ring_route, server_of_rank
from r2cc_simai.collectives.ring_allreduce import Bind
from r2cc_simai.collectives.schedule import Int, ScheduleBuilder, pieces

NO_PARENT = -1
Tree = tuple[int, ...]  # the parent of each node


@lru_cache(maxsize=64)
def binary_tree(n: int) -> Tree:
    """NCCL's binary tree: node 0 is the root; the parent of a node has its lowest set bit moved up by one."""
    parents = [NO_PARENT]
    for node in range(1, n):
        bit = node & -node
        up = (node ^ bit) | bit << 1
        parents.append(up if up < n else node ^ bit)
    return tuple(parents)


@lru_cache(maxsize=64)
def double_tree(n: int) -> tuple[Tree, Tree]:
    """The two trees over n nodes."""
    first = binary_tree(n)
    parents = [NO_PARENT] * n
    for node, up in enumerate(first):
        other = (node + 1) % n if n % 2 else n - 1 - node
        if up != NO_PARENT:
            parents[other] = (up + 1) % n if n % 2 else n - 1 - up
    return first, tuple(parents)


def depths(tree: Tree) -> list[int]:
    """How many steps each node is from the root."""
    found = []
    for start in range(len(tree)):
        node, steps = start, 0
        while tree[node] != NO_PARENT:
            node, steps = tree[node], steps + 1
        found.append(steps)
    return found


@lru_cache(maxsize=64)
def deepest(n: int) -> int:
    """Steps from the farthest of n nodes to the root, in the deeper of the two trees."""
    return max(max(depths(tree)) for tree in double_tree(n))


def add_double_trees(
    builder: ScheduleBuilder,
    cluster: Cluster,
    lanes: Sequence[Lane],
    bounds: Sequence[int],
    rows: list[Row],
    slices: int,
    members: Collection[int] | None = None,
    bind: Bind = lane_rows,
) -> None:
    """Adds both trees of every lane, lane i on the bytes bounds[i]:bounds[i+1]; appends its binding to `rows`.

    `slices` pieces of a tree's bytes follow one another. `members` restricts the trees to some ranks.
    """
    for lane, lo, hi in zip(lanes, bounds[:-1], bounds[1:], strict=True):
        chains = _chains(cluster, lane, members)
        for tree, (begin, end) in zip(double_tree(len(chains)), pairwise(pieces(int(lo), int(hi), 2)), strict=True):
            if begin == end:
                continue  # fewer bytes than trees
            one = _OneTree(builder, chains, tree)
            for low, high in pairwise(pieces(int(begin), int(end), slices)):
                one.add_slice(int(low), int(high))
            for channel, route in one.crossing():
                rows.extend(bind(cluster, channel, route, lane, cyclic=False))


def _chains(cluster: Cluster, lane: Lane, members: Collection[int] | None) -> list[Int]:
    """The ranks of each server in turn, the one nearest to the lane's NIC first."""
    ranks = ring_route(cluster, lane, members)
    border = np.nonzero(np.diff(server_of_rank(cluster)[ranks]))[0] + 1
    return list(np.split(ranks, border))


class _OneTree:
    """The routes of one tree: inside every server to its head, from head to parent's head, down again and inside."""

    def __init__(self, builder: ScheduleBuilder, chains: Sequence[Int], tree: Tree) -> None:
        self._builder = builder
        self._tree = tree
        self._chains = chains
        self._steps = depths(tree)
        self._routes: dict[tuple[str, int], tuple[int, int, Int]] = {}  # channel, route, its ranks
        for node, chain in enumerate(chains):
            up = chains[tree[node]][:1] if tree[node] != NO_PARENT else chain[:0]
            self._register("inside", node, chain[::-1])
            self._register("up", node, np.concatenate([chain[:1], up]))
            self._register("down", node, np.concatenate([up, chain[:1]]))
            self._register("spread", node, chain)

    def _register(self, kind: str, node: int, ranks: Int) -> None:
        if len(ranks) > 1:
            self._routes[kind, node] = self._builder.new_channel(), self._builder.route(ranks), ranks

    def crossing(self) -> list[tuple[int, Int]]:
        """Channel and ranks of every route."""
        return [(channel, ranks) for channel, _, ranks in self._routes.values()]

    def add_slice(self, lo: int, hi: int) -> None:
        """The passes of one slice: sums from the leaves to the root, the result from there to all."""
        order = sorted(range(len(self._tree)), key=lambda node: self._steps[node])
        into: list[list[int]] = [[] for _ in order]  # passes that bring a node what it adds up
        for node in reversed(order):
            into[node] += self._pass("inside", node, lo, hi, [])
            if self._tree[node] != NO_PARENT:
                into[self._tree[node]] += self._pass("up", node, lo, hi, into[node])
        arrived: dict[int, list[int]] = {}
        for node in order:
            up = self._tree[node]
            before = into[node] if up == NO_PARENT else arrived[up]
            arrived[node] = before if up == NO_PARENT else self._pass("down", node, lo, hi, before)
            self._pass("spread", node, lo, hi, arrived[node])

    def _pass(self, kind: str, node: int, lo: int, hi: int, after: Sequence[int]) -> list[int]:
        if (kind, node) not in self._routes:
            return []
        channel, route, ranks = self._routes[kind, node]
        hops = len(ranks) - 1
        reduce, copy = (hops, 0) if kind in ("inside", "up") else (0, hops)
        return [self._builder.chain(channel, route, lo, hi, reduce, copy, after)]
