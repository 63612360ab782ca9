"""Sweeps: every case of a scenario, on an executor, into a run folder with a table and a report."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from r2cc_simai.errors import InputError
from r2cc_simai.results import ERROR, Row, RunFolder
from r2cc_simai.results.case_log import Finished
from r2cc_simai.results.report import ReportPaths, build_report
from r2cc_simai.results.report.links import TIMELINES
from r2cc_simai.results.table import failed
from r2cc_simai.runners.case_run import AnyCase, Outcome, Setup, Task, failed_row, run_case
from r2cc_simai.runners.executors import Executor, Work, executor
from r2cc_simai.runners.matrix_cases import MatrixCase, task_of
from r2cc_simai.runners.rounds import Rounds, Stopped
from r2cc_simai.runners.scenario import Loaded, Scenario, load
from r2cc_simai.runners.sweep_inputs import inputs_digest, named_files
from r2cc_simai.runners.sweep_progress import Tally, shown

DEFAULT = "paper"
COSTS = "costs"
ERRORS = "errors"


@dataclass(frozen=True)
class Failure:
    """A case that failed, and why."""

    key: str
    reason: str


@dataclass(frozen=True)
class SweepResult:
    """All rows of a finished sweep in the order of the scenario, of how many cases, where they lie, and the report.

    `failures`: cases that have a row of metric `error`. `stopped`: matrices that needed fewer seeds than they have.
    `summary` says how many cases ran in which time, and how often the cost of a state was known.
    """

    rows: list[Row]
    cases: int
    folder: Path
    report: ReportPaths
    failures: list[Failure]
    stopped: list[Stopped]
    summary: str


def run_sweep(
    scenario: str | None = None,
    out: Path | None = None,
    workers: int = 0,
    *,
    where: str = "processes",
    options: Sequence[str] = (),
    retry_failed: bool = False,
) -> SweepResult:
    """Runs a scenario, or what is missing of it in its run folder.

    Without `out` the folder is `runs/NAME-HASH`; the hash covers the scenario and everything that a result depends on,
    so that an interrupted sweep resumes and a changed one starts anew. `where` is the executor, with its `options`
    (`key=value`); `workers` is its number of processes on this machine (0: one per core). Results do not depend on
    either. A case that fails has a row that says why, and the others run; with `retry_failed` those that failed earlier
    run again.

    Raises:
        InputError: the scenario is wrong, or the folder belongs to another one.
        PartitionedError: no case finished for as long as the executor waits; finished ones stay in the folder.
        MissingComponentError: the executor or a case needs what is not installed.
    """
    loaded = load(scenario or DEFAULT)
    content = loaded.content.model_dump(mode="json")
    inputs = {"inputs_sha256": inputs_digest(), "files_sha256": named_files(content, loaded.base)}
    manifest = {"name": loaded.name, **inputs, "content": content}
    place = out or Path("runs") / f"{loaded.name}-{_short(manifest)}"
    folder = RunFolder(place, manifest, retry_failed=retry_failed)
    if retry_failed:
        shutil.rmtree(folder.path / ERRORS, ignore_errors=True)
    run = folder.path.resolve()
    setup = Setup(run / COSTS, loaded.pattern_files, run / TIMELINES)
    with executor(where, options, workers or os.cpu_count() or 1, Work(folder.path, setup), run_case) as chosen:
        sweep = _Sweep(loaded, folder, chosen, retry_failed=retry_failed)
        sweep.run()
    order = sweep.order()
    folder.finish(order, {"cases": len(order), "stopped": [asdict(one) for one in sweep.rounds.stopped]})
    rows: list[Row] = []
    failures: list[Failure] = []
    for key, own in folder.of(order):
        rows += own
        failures += [Failure(key, row.error) for row in own if row.metric == ERROR]
    report = build_report(rows, folder.path, loaded.content.title, folder.timings())
    return SweepResult(rows, len(order), folder.path, report, failures, sweep.rounds.stopped, sweep.tally.summary)


class _Sweep:
    """The cases of a scenario on their way into the run folder."""

    def __init__(self, loaded: Loaded, folder: RunFolder, chosen: Executor, *, retry_failed: bool) -> None:
        self._loaded, self._folder, self._executor = loaded, folder, chosen
        self._cases: list[AnyCase] = list(loaded.content.cases())
        self._ran: set[str] = set()
        self.rounds = Rounds(loaded.content, self._cases)
        keys = {case.key for case in self._cases}
        for outcomes in chosen.left_over():
            outcomes = [one for one in outcomes if not (retry_failed and failed(one.rows))]
            first = {one.key: one for one in reversed(outcomes)}  # of a case that ran twice
            self._store([one for key, one in first.items() if key in keys and key not in folder.done()])
        self.tally = Tally(len(keys), sum(key in keys for key in folder.done()))

    def run(self) -> None:
        """Runs what is missing, round by round."""
        with shown(self.tally) as progress:
            for cases in self.rounds.run(self._rows):
                self._ran |= {case.key for case in cases}
                self.tally.total = len(self._cases) - self.rounds.left_out
                for outcomes in self._outcomes([case for case in cases if case.key not in self._folder.done()]):
                    self._store(outcomes)
                    for outcome in outcomes:
                        self.tally.add(outcome)
                    progress.update()

    def order(self) -> list[str]:
        """The keys of the cases that ran, in the order of the scenario."""
        return [case.key for case in self._cases if case.key in self._ran]

    def _rows(self, cases: Sequence[AnyCase]) -> list[Row]:
        return [row for _, rows in self._folder.of(case.key for case in cases) for row in rows]

    def _outcomes(self, cases: Sequence[AnyCase]) -> Iterator[list[Outcome]]:
        tasks: list[Task] = []
        for case in cases:
            made = self._task(case)
            if isinstance(made, Outcome):
                yield [made]
            else:
                tasks.append(made)
        yield from self._executor.run(tasks)

    def _task(self, case: AnyCase) -> Task | Outcome:
        """What is to run; the outcome of a case whose pattern cannot be drawn."""
        if not isinstance(case, MatrixCase):
            return case
        try:
            return task_of(case, self._loaded.base)
        except InputError as error:
            return Outcome(case.key, [failed_row(case, str(error))], 0.0)

    def _store(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.trace:
                self._keep_trace(outcome)
        self._folder.append_all([Finished(one.key, one.rows, one.wall_s) for one in outcomes])

    def _keep_trace(self, outcome: Outcome) -> None:
        folder = self._folder.path / ERRORS
        folder.mkdir(exist_ok=True)
        name = hashlib.sha256(outcome.key.encode()).hexdigest()[:16]
        (folder / f"{name}.txt").write_text(f"{outcome.key}\n\n{outcome.trace}")


def _short(manifest: object) -> str:
    return hashlib.sha256(repr(manifest).encode()).hexdigest()[:10]


__all__ = ["Scenario", "SweepResult", "run_case", "run_sweep"]
