"""The failures of a job as time goes on: what has happened, what is known, what a running collective will meet.

When a change is known comes from detection, for each event by the component that failed. A failure at time 0 or before
is known from the start; a repair at once, unless the strategy has a recovery protocol for it.
"""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import ProbesSpec
from r2cc_simai.cluster.view import View
from r2cc_simai.detection.detect import detect, resume_delay_s
from r2cc_simai.detection.model import Failure
from r2cc_simai.detection.outage import Outage, Recovery
from r2cc_simai.failures.timeline import Event, sorted_timeline

Recover = Callable[[Outage], Recovery | None]
_LONG_AGO_S = 1e6


@dataclass(frozen=True)
class _Timed:
    """An event, and seconds from it until both ends have moved their traffic."""

    event: Event
    delay_s: float
    sender_s: float
    receiver_s: float

    @property
    def known_s(self) -> float:
        """When a change to down or slower counts; a repair counts at once."""
        event = self.event
        return event.time_s + (self.delay_s if event.fraction < 1 and event.time_s > 0 else 0.0)

    @property
    def fails(self) -> bool:
        """Whether detection has to find it."""
        return self.event.time_s > 0 and self.event.fraction < 1


class Clock:
    """Keeps the events of a job. An event by byte count becomes one at a time once a run has met it.

    `recover` is the strategy's recovery protocol, `failover_s` what it needs for a failover beside the cluster's delay.
    """

    def __init__(
        self, cluster: Cluster, events: tuple[Event, ...], recover: Recover | None = None, failover_s: float = 0.0
    ) -> None:
        self._cluster = cluster
        self._recover = recover
        self._counted = np.zeros(len(cluster.nics))  # bytes that each NIC's counter has gone up since time 0
        self._events = list(_timed(cluster, events, failover_s))
        self._learn_recoveries()

    @property
    def recoveries(self) -> tuple[Recovery, ...]:
        """What the strategy's recovery protocol made of each outage that has an end."""
        return self._recoveries

    @property
    def known_s(self) -> list[float]:
        """Times after the start at which more becomes known, ascending, each once."""
        return sorted({known_s for known_s, _, _ in self._known if known_s > 0})

    def view(self, now_s: float) -> View:
        """What is known at a time."""
        state = [1.0] * len(self._cluster.nics)
        for known_s, nic, fraction in self._known:
            if known_s <= now_s:
                state[nic] = fraction
        return View(self._cluster, tuple(state))

    def ahead(self, now_s: float) -> tuple[Event, ...]:
        """All events as a run that starts now meets them: times relative to its start, counters from its start."""
        found = self._found(now_s)
        return tuple(
            replace(e, at_bytes=max(0.0, e.at_bytes - self._counted[e.nic]))
            if e.at_bytes is not None
            else replace(e, time_s=e.time_s - now_s - (_LONG_AGO_S if i in found else 0.0))
            for i, e in enumerate(one.event for one in self._events)
        )

    def delay_s(self, now_s: float) -> float | None:
        """The failover delay of the first failure that is still to be found; None: there is none."""
        return next((one.delay_s for one in self._events if self._pending(one, now_s)), None)

    def delay_met_s(self, now_s: float, event_time_s: NDArray[np.float64]) -> float:
        """The longest failover delay among the failures that a run from `now_s` on met and that were to be found."""
        met = (
            one.delay_s
            for one, time in zip(self._events, event_time_s, strict=True)
            if not math.isnan(time) and self._pending(one, now_s)
        )
        return max(met, default=0.0)

    def calm_until(self, now_s: float) -> float:
        """The time of the next change that a run could meet: an event, or the detection of one that is not known."""
        soon = math.inf
        for one in self._events:
            event = one.event
            if event.at_bytes is not None:
                return now_s
            if event.time_s > now_s:
                soon = min(soon, event.time_s)
            elif one.fails and event.time_s + one.delay_s > now_s:
                return now_s
        return soon

    def passed(self, now_s: float, event_time_s: NDArray[np.float64], counters: NDArray[np.float64]) -> None:
        """Notes what a run met (NaN: not) and by how much the NICs' counters rose during it."""
        self._counted += counters
        happened = [
            one.event.at_bytes is not None and not math.isnan(met)
            for one, met in zip(self._events, event_time_s, strict=True)
        ]
        if not any(happened):
            return
        self._keep(
            replace(one, event=replace(one.event, at_bytes=None, time_s=now_s + met)) if now else one
            for one, met, now in zip(self._events, event_time_s, happened, strict=True)
        )

    def replace_hardware(self, now_s: float) -> None:
        """Forgets every failure up to now: spare parts have taken over."""
        self._keep(one for one in self._events if one.event.at_bytes is not None or one.event.time_s > now_s)

    def late(self, end_s: float) -> str:
        """A line on failures that the job did not live to see; empty if there are none."""
        missed = [one.event for one in self._events if one.event.at_bytes is not None or one.event.time_s > end_s]
        if not missed:
            return ""
        first = missed[0]
        when = f"after {first.at_bytes:.0f} bytes" if first.at_bytes is not None else f"at {first.time_s:g} s"
        nic = self._cluster.nics[first.nic].full_name
        return f"{nic} fails {when}, after the job has ended at {end_s:.6g} s; ask for more iterations"

    def _keep(self, events: Iterator[_Timed]) -> None:
        rows = list(events)
        order = sorted_timeline([one.event for one in rows], "").events
        left = {id(one.event): one for one in rows}
        self._events = [left[id(event)] for event in order]
        self._learn_recoveries()

    def _pending(self, one: _Timed, now_s: float) -> bool:
        """Whether a failure is still to be found at a time."""
        if one.event.at_bytes is not None:
            return one.event.fraction < 1
        return one.fails and one.event.time_s + one.delay_s > now_s

    def _found(self, now_s: float) -> set[int]:
        """Positions of the events whose detection is over; only where delays differ, since a run has only one."""
        if len({one.delay_s for one in self._events}) < 2:
            return set()
        found: set[int] = set()
        earlier: dict[int, list[int]] = {}
        for i, one in enumerate(self._events):
            if one.event.at_bytes is not None or one.event.time_s > now_s:
                continue
            own = earlier.setdefault(one.event.nic, [])
            own.append(i)
            if one.event.fraction < 1 and not self._pending(one, now_s):
                found.update(own)
        return found

    def _learn_recoveries(self) -> None:
        """Works out what is known when: (seconds, NIC, fraction) in order of the events."""
        self._known: list[tuple[float, int, float]] = []
        self._recoveries: tuple[Recovery, ...] = ()
        timed = [one for one in self._events if one.event.at_bytes is None]
        if self._recover is None:
            self._known = [(one.known_s, one.event.nic, one.event.fraction) for one in timed]
            return
        for nic in sorted({one.event.nic for one in timed}):
            self._learn_nic([one for one in timed if one.event.nic == nic])

    def _learn_nic(self, own: list[_Timed]) -> None:
        unused_until = -math.inf
        for i, one in enumerate(own):
            event = one.event
            if event.time_s < unused_until:
                continue
            self._known.append((one.known_s, event.nic, event.fraction))
            recovery = self._recovery(own, i) if event.fraction == 0 else None
            if recovery is None:
                continue
            self._recoveries += (recovery,)
            unused_until = math.inf if recovery.recovered_s is None else recovery.recovered_s
            if recovery.recovered_s is not None:
                states = [later.event.fraction for later in own if later.event.time_s <= recovery.recovered_s]
                self._known.append((recovery.recovered_s, event.nic, states[-1]))

    def _recovery(self, own: list[_Timed], i: int) -> Recovery | None:
        """What becomes of the failure `own[i]`; None if it has no end, or ends before anyone knows of it."""
        one, later = own[i], [other.event for other in own[i + 1 :]]
        ends = [*(event.time_s for event in later[1:]), math.inf]
        working = tuple((e.time_s, end) for e, end in zip(later, ends, strict=True) if e.fraction > 0) if later else ()
        if not working or (working[0][0] <= one.known_s and one.fails):
            return None
        seen = one.fails
        start_s = one.event.time_s
        assert self._recover is not None
        return self._recover(
            Outage(
                nic=self._cluster.nics[one.event.nic].full_name,
                down_s=start_s,
                sender_s=start_s + (one.sender_s if seen else 0.0),
                receiver_s=start_s + (one.receiver_s if seen else 0.0),
                working_s=working,
            )
        )


def _timed(cluster: Cluster, events: tuple[Event, ...], failover_s: float) -> Iterator[_Timed]:
    """Events with their delays; phases of probe timers are drawn by seed, NIC and position among the NIC's events."""
    failover = cluster.spec.failover
    seed = failover.detection.seed if isinstance(failover.detection, ProbesSpec) else 0
    positions: dict[int, int] = {}
    for event in events:
        position = positions[event.nic] = positions.get(event.nic, -1) + 1
        phase = f"{seed}:{event.nic}:{position}"
        delay_s = resume_delay_s(cluster, event.component, random.Random(phase)) + failover_s
        known = detect(failover, Failure(event.component), random.Random(phase))
        yield _Timed(event, delay_s, known.local.known_s, known.remote.known_s)
