"""What both kinds of jobs need for the simulation of a change: its events, and the cost of a job that ends."""

from dataclasses import replace

from r2cc_simai.cluster.symmetry import State
from r2cc_simai.failures.timeline import Component, Event
from r2cc_simai.runners.courses.costs import HitCost
from r2cc_simai.strategies.base import Strategy
from r2cc_simai.strategies.nccl import Nccl

CRASH_S = 60.0 * (Nccl.detect_min + Nccl.isolate_min + Nccl.reload_min)
"""Seconds for which a job that could not go on stands: those of `strategies.nccl`, less the work that it repeats."""
CRASHED = HitCost(restart_s=CRASH_S)
"""A change that the job does not survive although it could work in the state after it."""


def without_lost_work(strategy: Strategy) -> Strategy:
    """The strategy without the average of the work since a checkpoint: a course knows to which one a job goes back."""
    return replace(strategy, lost_min=0.0) if isinstance(strategy, Nccl) else strategy


def known_events(state: State) -> tuple[Event, ...]:
    """The events of a state that is known from the start; labels are (rate fraction,)."""
    return tuple(Event(nic, float(label[0])) for nic, label in state)


def events_of(state: State, at_s: float) -> tuple[Event, ...]:
    """What is known from the start, and what changes then; labels are (before, after, part)."""
    known = [Event(nic, float(before)) for nic, (before, _, _) in state if float(before) < 1]
    new = [
        Event(nic, float(after), time_s=at_s, component=Component(str(part)))
        for nic, (before, after, part) in state
        if before != after
    ]
    return (*known, *new)
