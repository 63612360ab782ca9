"""Runs the cases of a lab: plans, prepares, starts and times collectives on the emulated cluster while it is cut.

What is there before an iteration is known to the planner. What comes in the middle of one is found by the ranks, who
tell each other through the runner and move their streams to backup NICs; the next collective runs on a plan for the
state of the NICs as it is then.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.operations import default_group
from r2cc_simai.engine.run import run_schedule
from r2cc_simai.errors import PartitionedError
from r2cc_simai.lab.cuts import Cut, Done
from r2cc_simai.lab.processes import Ranks, Worker, endpoints_of, prioritised, serve_rank
from r2cc_simai.lab.record import CaseRecord, Iteration, Role, false_alarms, recoveries_of
from r2cc_simai.lab.script import Script
from r2cc_simai.lab.spec import LabCase, LabSpec
from r2cc_simai.lab.turn import turn
from r2cc_simai.lab.work import Collective, Learn, Load, Loaded, Prepare, Prepared, Ready, Result, Start
from r2cc_simai.lab.world import World
from r2cc_simai.strategies.base import Plan, Request, Strategy

T = TypeVar("T", Prepared, Loaded, Result)

LEAD_S = 0.03  # from the command to start until the start
SMALL_TIMES = 5  # as many repetitions of a buffer so small that they cost nothing and spread more
MOST_DURING = 50  # iterations until a script must have ended


@contextlib.contextmanager
def running_lab(spec: LabSpec, name: str, worker: Worker = serve_rank) -> "Iterator[Lab]":
    """A lab that is up, with all ranks listening; everything is gone afterwards.

    Raises:
        MissingComponentError: the machine or the user may not make network namespaces.
        PartitionedError: another lab on the machine does not end, or a rank does not come up in time.
    """
    cluster = spec.cluster(name)
    with (
        turn(spec.limits.turn_s),
        World(spec, cluster) as world,
        prioritised(),
        Ranks(world, endpoints_of(world), worker) as ranks,
    ):
        ranks.gather(Ready, "the ranks to listen", spec.limits.start_s)
        yield Lab(world, ranks)


class Lab:
    """The cases of a lab, one after another."""

    def __init__(self, world: World, ranks: Ranks) -> None:
        self.world = world
        self.ranks = ranks
        self.spec = world.spec
        self.cluster = world.cluster
        self._numbers = 0

    def run(self, case: LabCase) -> CaseRecord:
        """All repetitions of a case.

        Raises:
            PartitionedError: ranks are left without a path, or something does not end within its limit.
            InputError: the strategy does not apply.
        """
        script = list(case.cuts(self.cluster))
        steady = all(cut.before and cut.lasting for cut in script)
        runs = [self._steady(case, script)] if steady else [
            self._through(case, script, repetition) for repetition in range(self.spec.repetitions)
        ]  # fmt: skip
        return CaseRecord(
            strategy=case.strategy,
            failure=case.failure,
            pattern=case.pattern,
            bytes=case.bytes or self.spec.bytes,
            iterations=tuple(one for run in runs for one in run.iterations),
            began_s=tuple(run.began_s for run in runs),
            done=tuple(run.done for run in runs),
        )

    def _steady(self, case: LabCase, cuts: list[Cut]) -> "CaseRun":
        """Iterations under failures that all know of."""
        with self.set_up(case, cuts) as run:
            for _ in range(self.spec.warmup):
                run.iterate("steady", 0)
            run.iterations.clear()
            for repetition in range(self.spec.repetitions * (SMALL_TIMES if case.bytes else 1)):
                run.replan()
                run.iterate("steady", repetition)
        return run

    def _through(self, case: LabCase, cuts: list[Cut], repetition: int) -> "CaseRun":
        """Once through a script: the collective that it hits, those until it ends, one after it."""
        with self.set_up(case, cuts) as run:
            for _ in range(self.spec.warmup):
                run.iterate("steady", repetition)
            run.iterations.clear()
            run.replan()
            run.under_script = True
            run.iterate("cut", repetition)
            for _ in range(MOST_DURING):
                if run.script.finished:
                    break
                run.replan()
                run.iterate("during", repetition)
            if not run.script.finished:
                raise PartitionedError(
                    f"lab: {case.failure}: not all of it has happened after {MOST_DURING} iterations; "
                    "a byte count may never be reached"
                )
            run.under_script = False
            run.replan()
            run.iterate("after", repetition)
        return run

    @contextlib.contextmanager
    def set_up(self, case: LabCase, cuts: list[Cut]) -> "Iterator[CaseRun]":
        """The ranks prepared for a case; all NICs are as they were afterwards."""
        script = Script(self.world, cuts)
        try:
            script.apply_before()
            yield CaseRun(self, case, script)
        finally:
            touched = sorted({cut.nic for cut in cuts})
            self.world.restore(touched)
            for nic in touched:
                self.ranks.send(Learn(nic, True))

    def next_number(self) -> int:
        """A number for an iteration that no other has: data differ from iteration to iteration."""
        self._numbers += 1
        return self._numbers


@dataclass
class CaseRun:
    """Iterations of one case, one after another; `results` are what the ranks said of the last."""

    lab: Lab
    case: LabCase
    script: Script
    under_script: bool = False
    iterations: list[Iteration] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._strategy: Strategy = self.case.parsed_strategy()
        self._known = View(self._cluster, self._fractions(self.script.left))
        self._plan: Plan | None = None
        self._limit_s = 0.0
        self._moved = False  # whether streams have left the NICs of the plan
        self.replan()

    @property
    def began_s(self) -> dict[int, float]:
        """When each cut began."""
        return dict(self.script.began_s)

    @property
    def done(self) -> tuple[Done, ...]:
        """All that was done to the NICs."""
        return tuple(self.script.done)

    @property
    def plan(self) -> Plan:
        """The plan that the ranks have prepared."""
        assert self._plan is not None
        return self._plan

    @property
    def _cluster(self) -> Cluster:
        return self.lab.cluster

    @property
    def _ranks(self) -> Ranks:
        return self.lab.ranks

    def replan(self) -> None:
        """A plan for what is known now, and connections for it; nothing where the plan and all streams are in place."""
        known = View(self._cluster, self._fractions(self.script.left))
        if self._plan is not None and known == self._known and not self._moved:
            return
        self._moved = False
        spec, self._known = self.lab.spec, known
        request = Request(spec.collective, default_group(spec.collective, self._cluster), self.case.bytes or spec.bytes)
        self._plan = self._strategy.plan(request, known)
        simulated = run_schedule(self._cluster, self._plan.schedule, self._plan.binding).elapsed_s
        longest = max((a.after_s + c.at_s for c in self.case.cuts(self._cluster) for a in c.actions), default=0.0)
        self._limit_s = spec.limits.collective_s + spec.limits.factor * simulated + longest
        unit = round(spec.unit_kib * 1024)
        collective = Collective.of(self._plan, request, spec.datatype, spec.reduction, unit)
        self._ranks.send(Prepare(collective, self.script.dead))
        self._checked(self._gather(Prepared, "connections for a new plan", spec.limits.start_s))

    def iterate(self, role: Role, repetition: int) -> None:
        """Runs and records one collective."""
        world, number = self.lab.world, self.lab.next_number()
        self._ranks.send(Load(number))
        self._checked(self._gather(Loaded, "the data of an iteration", self.lab.spec.limits.start_s))
        wire, interface = world.wire_bytes(), self._interface()
        self._ranks.notices.clear()
        at_s = time.monotonic() + LEAD_S
        if role == "cut":
            self.script.start(at_s)
        self._ranks.send(Start(at_s))
        what = f"the end of a collective ({self.case.strategy}, {self.case.failure})"
        results = self._gather(Result, what, self._limit_s + LEAD_S)
        self._checked(results)
        self.results = results
        recoveries = recoveries_of(results, at_s)
        self._moved = bool(recoveries)
        passed = (world.wire_bytes() - wire).tolist()
        names = [nic.full_name for nic in self._cluster.nics]
        self.iterations.append(
            Iteration(
                role=role,
                repetition=repetition,
                number=number,
                time_s=max(result.end_s for result in results) - at_s,
                ranks_s=tuple(result.end_s - at_s for result in results),
                cpu_s=tuple(result.cpu_s for result in results),
                wire_bytes={name: (rx, tx) for name, (rx, tx) in zip(names, passed, strict=True)},
                interface_bytes={
                    name: (after[0] - before[0], after[1] - before[1])
                    for name, before, after in zip(names, interface, self._interface(), strict=True)
                },
                wrong_elements=sum(result.wrong_elements for result in results),
                recoveries=recoveries,
                false_alarms=false_alarms(self._ranks.notices, self._died()),
                note=self.plan.note,
            )
        )
        self._trust_again()

    def _gather(self, kind: type[T], what: str, limit_s: float) -> list[T]:
        return self._ranks.gather(kind, what, limit_s, self.script if self.under_script else None)

    def _checked(self, answers: Sequence[Prepared] | Sequence[Loaded] | Sequence[Result]) -> None:
        """Wrong elements are recorded; anything else that a rank reports ends the lab, with the word of the first."""
        failed = [one for one in answers if one.error and not (isinstance(one, Result) and one.wrong_elements)]
        if failed:
            first = min(failed, key=lambda one: one.end_s if isinstance(one, Result) else 0.0)
            raise PartitionedError(f"lab: {self.case.key}: {first.error}")

    def _interface(self) -> list[tuple[int, int]]:
        return [self.lab.world.interface_bytes(nic.index) for nic in self._cluster.nics]

    def _died(self) -> frozenset[int]:
        """NICs that the script has killed so far."""
        return frozenset(done.action.nic for done in self.script.done if done.action.left == 0)

    def _fractions(self, left: Mapping[int, float]) -> tuple[float, ...]:
        return tuple(left.get(nic.index, 1.0) for nic in self._cluster.nics)

    def _trust_again(self) -> None:
        """Tells the ranks that NICs which they took for broken are not."""
        for nic in {notice.nic for notice in self._ranks.notices if not notice.up} - self.script.dead:
            self._ranks.send(Learn(nic, True))
