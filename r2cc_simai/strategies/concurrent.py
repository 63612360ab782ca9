"""Several communicators at once on the same servers: their plans as one, so that they share the NICs they share."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Binding
from r2cc_simai.collectives.channels import server_of_rank
from r2cc_simai.collectives.operations import OPERATIONS
from r2cc_simai.collectives.schedule import Int, Pass, Schedule
from r2cc_simai.errors import InputError
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.rings import is_whole


def plan_concurrent(strategy: Strategy, requests: Sequence[Request], view: View) -> tuple[Plan, list[range]]:
    """One plan for collectives that start together, and for each of them the positions of its passes.

    Each group's plan is made knowing the whole state of its servers, so that what a dead NIC costs is spread the way
    the strategy spreads it. The groups' buffers lie one after another in the plan's.

    Raises:
        InputError: two groups have a rank in common, or the strategy does not know such a request.
        PartitionedError: the known failures leave ranks without a path.
    """
    taken: set[int] = set()
    for request in requests:
        if taken & set(request.group):
            raise InputError(f"rank {min(taken & set(request.group))} is in two groups that run at the same time")
        taken |= set(request.group)
    plans = [strategy.plan(request, view) for request in requests]
    if len(plans) == 1:
        return plans[0], [range(len(plans[0].schedule.passes))]
    return _merged(plans, view.cluster.n_ranks)


def siblings(request: Request, cluster: Cluster) -> list[Request]:
    """A request and those like it that the other GPUs of its servers make at the same time, in one order for all.

    With tensor parallelism inside the servers the data-parallel groups are each other's siblings: every rank moved by
    as many places within its server. A group that overlaps with such a one, and one that is the whole cluster, is
    alone, and so is one whose servers have different numbers of GPUs.
    """
    members = np.array(request.group, dtype=np.int64)
    servers = [cluster.servers[s] for s in server_of_rank(cluster)[members].tolist()]
    gpus = len(servers[0].ranks)
    if is_whole(request, cluster) or any(len(server.ranks) != gpus for server in servers):
        return [request]
    first = np.array([server.ranks[0] for server in servers], dtype=np.int64)
    found: dict[tuple[int, ...], Request] = {}
    taken: set[int] = set()
    start = int((members - first).min())
    for step in range(gpus):
        moved = first + (members - first - start + step) % gpus
        if taken.isdisjoint(moved.tolist()):
            taken.update(moved.tolist())
            group = tuple(moved.tolist())
            root = group[request.group.index(request.root)] if OPERATIONS[request.op].rooted else request.root
            found[group] = replace(request, group=group, root=root)
    return list(found.values()) if request.group in found else [request]


def _merged(plans: Sequence[Plan], n_ranks: int) -> tuple[Plan, list[range]]:
    routes: list[Int] = []
    passes: list[Pass] = []
    columns: list[tuple[Int, ...]] = []
    spans: list[range] = []
    channels = size = 0
    for plan in plans:
        schedule, binding = plan.schedule, plan.binding
        first = len(passes)
        passes += [
            replace(
                one,
                channel=one.channel + channels,
                route=one.route + len(routes),
                lo=one.lo + size,
                hi=one.hi + size,
                after=tuple(a + first for a in one.after),
            )
            for one in schedule.passes
        ]
        columns.append((binding.channel + channels, binding.src, binding.dst, binding.src_nic, binding.dst_nic))
        spans.append(range(first, len(passes)))
        routes += schedule.routes
        channels += 1 + max((one.channel for one in schedule.passes), default=-1)
        size += schedule.bytes
    channel, src, dst, src_nic, dst_nic = (np.concatenate([c[k] for c in columns]) for k in range(5))
    share = np.concatenate([plan.binding.share for plan in plans])
    factor = max(plan.schedule.wire_factor for plan in plans)
    schedule = Schedule(n_ranks, size, tuple(routes), tuple(passes), factor)
    note = "; ".join(dict.fromkeys(plan.note for plan in plans if plan.note))
    one_off_s = max(plan.one_off_s for plan in plans)
    return Plan(schedule, Binding(channel, src, dst, src_nic, dst_nic, share), one_off_s, note), spans
