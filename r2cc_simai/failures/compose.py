"""Incidents that overlap, as one timeline: a NIC has the lowest rate that any of them leaves it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.failures.component import component_of, nics_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.timeline import Component, Event, Timeline


@dataclass(frozen=True)
class _Change:
    """An incident begins or ends on one NIC. `order` is its place among all incidents and their NICs."""

    time_s: float
    begins: bool
    state: float
    part: Component
    order: int


def timeline_of(incidents: Iterable[Incident], cluster: Cluster, pattern: str) -> Timeline:
    """The events of `incidents`, in order of time.

    At any time t a NIC is at the least state of the incidents that cover it, begin_s <= t < end_s, and at 1 where none
    does. There is an event only where that minimum changes, so the end of one incident never ends another's outage.
    Events at one time stand in the order of the incidents that cause them.

    Raises:
        InputError: the cluster lacks a component.
    """
    nics: dict[str, tuple[list[int], Component]] = {}
    changes: defaultdict[int, list[_Change]] = defaultdict(list)
    order = 0
    for one in incidents:
        if one.component not in nics:
            name, part = component_of(one.component)
            nics[one.component] = nics_of(cluster, name), part
        touched, part = nics[one.component]
        for nic in touched:
            changes[nic].append(_Change(one.begin_s, True, one.state, part, order))
            if math.isfinite(one.end_s):
                changes[nic].append(_Change(one.end_s, False, one.state, part, order))
            order += 1
    placed = [found for nic, own in changes.items() for found in _events_of(nic, own)]
    placed.sort(key=lambda found: (found[1].time_s, found[0]))
    return Timeline(tuple(event for _, event in placed), pattern)


def _events_of(nic: int, changes: list[_Change]) -> Iterator[tuple[int, Event]]:
    """The events of one NIC, each with the order of the change that makes it."""
    changes.sort(key=lambda change: (change.time_s, change.order))
    covering: dict[float, int] = {}  # how many incidents are under way, by state
    before, i = 1.0, 0
    while i < len(changes):
        now, last = i, changes[i].time_s
        while i < len(changes) and changes[i].time_s == last:
            change = changes[i]
            covering[change.state] = covering.get(change.state, 0) + (1 if change.begins else -1)
            if not covering[change.state]:
                del covering[change.state]
            i += 1
        after = min(covering, default=1.0)
        if after != before:
            reason = _reason(changes[now:i], before, after)
            yield reason.order, Event(nic, after, time_s=last, component=reason.part)
        before = after


def _reason(changes: list[_Change], before: float, after: float) -> _Change:
    """The change that explains a new minimum: what begins with it, else the end of what had held the old one."""
    if after < before:
        return next(change for change in changes if change.begins and change.state == after)
    return next(change for change in changes if not change.begins and change.state == before)
