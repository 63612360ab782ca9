"""Which strategy is best for a request in a state of the cluster: all that apply, run on the flow backend.

The cost model is the fluid simulation of each plan in the known state: it costs milliseconds, knows latency, shared
ports, uneven rails and pipelines, and cannot disagree with what `flow` says later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from r2cc_simai.cluster.view import View
from r2cc_simai.engine.run import run_schedule
from r2cc_simai.errors import SimaiError
from r2cc_simai.failures.timeline import Event
from r2cc_simai.strategies.base import Request, Strategy
from r2cc_simai.strategies.concurrent import plan_concurrent, siblings


@dataclass(frozen=True, eq=False)
class Ranked:
    """A candidate: its predicted steady time in seconds and what to know of its plan, or why it does not apply."""

    candidate: Strategy
    time_s: float | None
    why: str

    @property
    def strategy(self) -> str:
        """The candidate as a user writes it."""
        return self.candidate.spec


def rank(candidates: Sequence[Strategy], request: Request, view: View) -> list[Ranked]:
    """All candidates, the fastest first, those that do not apply last; equally fast ones keep their order.

    A group that is a part of the cluster is judged beside those of the other GPUs of its servers that are like it.
    """
    alike = tuple(siblings(request, view.cluster))
    judged = [_judge(candidate, alike, view) for candidate in candidates]
    return sorted(judged, key=lambda one: (one.time_s is None, one.time_s or 0.0))


@lru_cache(maxsize=256)
def _judge(candidate: Strategy, requests: tuple[Request, ...], view: View) -> Ranked:
    try:
        plan = plan_concurrent(candidate, requests, view)[0]
        events = tuple(Event(nic, fraction) for nic, fraction in enumerate(view.fraction) if fraction < 1)
        run = run_schedule(view.cluster, plan.schedule, plan.binding, events)
    except SimaiError as error:
        return Ranked(candidate, None, str(error))
    one_off = f"its first run costs {plan.one_off_s:g} s more" if plan.one_off_s else ""
    return Ranked(candidate, run.elapsed_s, "; ".join(filter(None, (plan.note, one_off))))
