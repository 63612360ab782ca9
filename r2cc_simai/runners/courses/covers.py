"""Which NICs an incident holds down, for how long: as the cluster has it, and as a strategy's recovery leaves it."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.detection.clock import Clock
from r2cc_simai.failures.component import component_of, nics_of
from r2cc_simai.failures.compose import timeline_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.timeline import Component
from r2cc_simai.strategies.base import Strategy


@dataclass(frozen=True, eq=False)
class Cover:
    """Incident number `incident` holds `nics` at `state` of their rate from `begin_s` until `end_s`, seconds.

    `unused`: they may work again, but the connections of a job that was there before do not use them yet.
    """

    nics: tuple[int, ...]
    state: float
    part: Component
    begin_s: float
    end_s: float
    incident: int
    unused: bool = False


@dataclass(eq=False)
class Change:
    """Covers that begin and end at one time, in seconds."""

    time_s: float
    begins: list[Cover]
    ends: list[Cover]


def covers_of(incidents: Sequence[Incident], cluster: Cluster, strategy: Strategy) -> list[Cover]:
    """What the incidents hold down for a job under a strategy.

    Nothing where the strategy is never hit by failures. Where it has a recovery protocol of its own, a NIC that works
    again stays unused until that protocol takes it, or for good.

    Raises:
        InputError: the cluster lacks a component.
    """
    if not strategy.sees_failures:
        return []
    covers: list[Cover] = []
    places: dict[str, tuple[tuple[int, ...], Component]] = {}
    for number, one in enumerate(incidents):
        if one.component not in places:
            name, part = component_of(one.component)
            places[one.component] = tuple(nics_of(cluster, name)), part
        nics, part = places[one.component]
        covers.append(Cover(nics, one.state, part, one.begin_s, one.end_s, number))
    if type(strategy).recover is not Strategy.recover:
        covers += _unused(incidents, covers, cluster, strategy)
    return covers


def changes_of(covers: Sequence[Cover], horizon_s: float) -> list[Change]:
    """The changes before `horizon_s` in order of time; what begins before 0 begins at 0."""
    at: defaultdict[float, Change] = defaultdict(lambda: Change(0.0, [], []))
    for cover in covers:
        if cover.begin_s < horizon_s and cover.end_s > max(0.0, cover.begin_s):
            at[max(0.0, cover.begin_s)].begins.append(cover)
            if cover.end_s < horizon_s:
                at[cover.end_s].ends.append(cover)
    for time_s, change in at.items():
        change.time_s = time_s
    return [at[time_s] for time_s in sorted(at)]


def _unused(
    incidents: Sequence[Incident], covers: Sequence[Cover], cluster: Cluster, strategy: Strategy
) -> Iterator[Cover]:
    """For each NIC that comes back, the time until the strategy's recovery protocol has taken it."""
    events = timeline_of(incidents, cluster, "").events
    downs: dict[tuple[int, float], Cover] = {}
    for cover in covers:
        if cover.state == 0:
            for nic in cover.nics:
                downs.setdefault((nic, cover.begin_s), cover)
    for recovery in Clock(cluster, events, strategy.recover, strategy.failover_s).recoveries:
        nic, down_s = cluster.nic_by_name[recovery.outage.nic], recovery.outage.down_s
        cover = downs[nic, down_s]
        until_s = math.inf if recovery.recovered_s is None else recovery.recovered_s
        yield Cover((nic,), 0.0, cover.part, down_s, until_s, cover.incident, unused=True)
