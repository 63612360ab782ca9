"""The failures of a job as time goes on: what has happened, what is known, what a running collective will meet."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.failures.timeline import Event, Timeline, sorted_timeline


class Clock:
    """Keeps the events of a job. An event by byte count becomes one at a time once a run has met it."""

    def __init__(self, cluster: Cluster, events: tuple[Event, ...]) -> None:
        self._cluster = cluster
        self._timeline = Timeline(events)
        self._counted = np.zeros(len(cluster.nics))  # bytes that each NIC's counter has gone up since time 0

    def view(self, now_s: float) -> View:
        """What is known at a time."""
        delay = self._cluster.resume_delay_s
        fractions = self._timeline.fractions(len(self._cluster.nics), now_s, delay)
        return View(self._cluster, tuple(float(f) for f in fractions))

    def ahead(self, now_s: float) -> tuple[Event, ...]:
        """All events as a run that starts now meets them: times relative to its start, counters from its start."""
        return tuple(
            replace(e, at_bytes=max(0.0, e.at_bytes - self._counted[e.nic]))
            if e.at_bytes is not None
            else replace(e, time_s=e.time_s - now_s)
            for e in self._timeline.events
        )

    def calm_until(self, now_s: float) -> float:
        """The time of the next change that a run could meet: an event, or the detection of one that is not known."""
        delay = self._cluster.resume_delay_s
        soon = math.inf
        for event in self._timeline.events:
            if event.at_bytes is not None:
                return now_s
            if event.time_s > now_s:
                soon = min(soon, event.time_s)
            elif event.time_s > 0 and event.fraction < 1 and event.time_s + delay > now_s:
                return now_s
        return soon

    def passed(self, now_s: float, event_time_s: NDArray[np.float64], counters: NDArray[np.float64]) -> None:
        """Notes what a run met (NaN: not) and by how much the NICs' counters rose during it."""
        self._counted += counters
        events = [
            event if event.at_bytes is None or math.isnan(met) else replace(event, at_bytes=None, time_s=now_s + met)
            for event, met in zip(self._timeline.events, event_time_s, strict=True)
        ]
        self._timeline = sorted_timeline(events, self._timeline.pattern)

    def replace_hardware(self, now_s: float) -> None:
        """Forgets every failure up to now: spare parts have taken over."""
        kept = [e for e in self._timeline.events if e.at_bytes is not None or e.time_s > now_s]
        self._timeline = sorted_timeline(kept, self._timeline.pattern)

    def late(self, end_s: float) -> str:
        """A line on failures that the job did not live to see; empty if there are none."""
        missed = [e for e in self._timeline.events if e.at_bytes is not None or e.time_s > end_s]
        if not missed:
            return ""
        first = missed[0]
        when = f"after {first.at_bytes:.0f} bytes" if first.at_bytes is not None else f"at {first.time_s:g} s"
        nic = self._cluster.nics[first.nic].full_name
        return f"{nic} fails {when}, after the job has ended at {end_s:.6g} s; ask for more iterations"
