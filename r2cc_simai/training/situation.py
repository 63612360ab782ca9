"""What a job meets in an iteration, worked out from a timeline and a strategy."""

from dataclasses import dataclass

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.detection.clock import Clock
from r2cc_simai.failures.timeline import Event, Timeline
from r2cc_simai.strategies.base import Strategy


@dataclass(frozen=True, eq=False)
class Situation:
    """A cluster with the failover delay of the iteration, and events at seconds from its start.

    `views` are what is known after 0, 1, .. of the changes at `known_s`.
    """

    cluster: Cluster
    strategy: Strategy
    events: tuple[Event, ...]
    views: tuple[View, ...]
    known_s: tuple[float, ...]


def situation_of(cluster: Cluster, strategy: Strategy, timeline: Timeline) -> Situation:
    """The situation at the start of an iteration; what failed at time 0 is known."""
    events = timeline.events if strategy.sees_failures else ()
    recovers = type(strategy).recover is not Strategy.recover
    clock = Clock(cluster, events, strategy.recover if recovers else None, strategy.failover_s)
    delay_s = clock.delay_s(0.0)
    slowed = cluster if delay_s in (None, cluster.resume_delay_s) else cluster.resuming_after(delay_s or 0.0)
    known_s = clock.known_s if strategy.survives else []  # communicators that stay what they are until they break
    views = (clock.view(0.0), *(clock.view(t) for t in known_s))
    return Situation(slowed, strategy, clock.ahead(0.0), views, tuple(known_s))
