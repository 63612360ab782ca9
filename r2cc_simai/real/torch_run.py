"""A run of a schedule on torch.distributed: its commands, its log, and its rows of the results table."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.collectives.operations import canonical, operation
from r2cc_simai.errors import InputError
from r2cc_simai.real.hosts import Host
from r2cc_simai.real.launcher import Command, launch, launcher_kind, local, torchrun
from r2cc_simai.real.process import Silent, Sink, run_processes, text_log
from r2cc_simai.real.record import RunRecord, ended_values, new_record
from r2cc_simai.real.torch_job import TorchJob
from r2cc_simai.real.torch_rank import INIT
from r2cc_simai.real.torch_report import Reports, first_error, read_reports
from r2cc_simai.results import Row, make_row

CODE_WRONG = 1
CODE_UNFINISHED = 3
_MODULE = "r2cc_simai.real.torch_rank"


@dataclass(frozen=True)
class TorchRun:
    """Where a job runs: on hosts by a launcher, or (no hosts) by `n_ranks` processes on this machine."""

    job: TorchJob
    n_ranks: int
    hosts: tuple[Host, ...]
    launcher: str
    variables: Mapping[str, str]
    python: str = sys.executable
    port: int = 29500
    launcher_arguments: tuple[str, ...] = ()

    def commands(self, folder: Path) -> list[Command]:
        """The processes to start here.

        Raises:
            InputError: the hosts' processes are not as many as the cluster's ranks.
        """
        ranks = load_cluster(self.job.cluster).n_ranks
        if self.n_ranks != ranks:
            raise InputError(f"{self.n_ranks} processes, but cluster {self.job.cluster} has {ranks} ranks")
        module = [_MODULE, self.job.text]
        if not self.hosts:
            meeting = (folder / "meeting").resolve()
            own = {INIT: f"file://{meeting}", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
            return local(self.n_ranks, module, {**own, **self.variables, "PYTHONPATH": _python_path()})
        if launcher_kind(self.launcher, ("mpirun", "srun", "torchrun")) == "torchrun":
            return torchrun(self.hosts, module, self.variables, self.python, self.port)
        meeting_at = {"MASTER_ADDR": self.hosts[0].name, "MASTER_PORT": str(self.port)}
        program = [self.python, "-m", *module]
        return [launch(self.launcher, self.hosts, program, {**meeting_at, **self.variables}, self.launcher_arguments)]


@dataclass(frozen=True)
class TorchOutcome:
    """A run that has ended: what its ranks reported, and the exit code that this means."""

    record: RunRecord
    log: Path
    reports: Reports
    times_s: tuple[float, ...]
    code: int
    remarks: tuple[str, ...]


def run_torch(run: TorchRun, folder: Path, limit_s: float, echo: Callable[[str], None]) -> TorchOutcome:
    """Runs into a folder: `torch.log` as it came and `torch.json`.

    Raises:
        InputError: a report that is none.
        MissingComponentError: the launcher is missing.
    """
    log = folder / "torch.log"
    (folder / "meeting").unlink(missing_ok=True)
    commands = run.commands(folder)
    hosts = [host.name for host in run.hosts] or ["localhost"]
    record = new_record(commands, hosts, log, limit_s, (1, 1), run.variables, {})
    wanted = f"{run.job.warmup + run.job.iterations} iterations on {run.n_ranks} ranks"
    record.write(log.with_suffix(".json"))  # a killed run leaves it behind, too
    try:
        with log.open("wb") as file:
            ended = run_processes(commands, Sink(file, echo), limit_s, Silent(), wanted)
    finally:
        (folder / "meeting").unlink(missing_ok=True)
    reports = read_reports(str(log), text_log(log))
    torch = next((start.torch for start in reports.starts.values()), "")
    versions = {**record.versions, **({"torch": torch} if torch else {})}
    record = replace(record, versions=versions, **ended_values(ended))
    record.write(log.with_suffix(".json"))
    times = tuple(reports.time_s(k) for k in reports.complete(run.n_ranks))
    return TorchOutcome(record, log, reports, times, *_verdict(run, reports, times, ended.reason, str(log)))


def _verdict(
    run: TorchRun, reports: Reports, times: tuple[float, ...], reason: str, log: str
) -> tuple[int, tuple[str, ...]]:
    remarks = []
    wrong = reports.wrong()
    if wrong:
        remarks.append(f"{log}: {wrong} wrong elements")
    error = first_error(reports, range(run.n_ranks))
    if error:
        remarks.append(f"{log}: {error}")
    if len(times) < run.job.iterations:
        done = f"{len(times)} of {run.job.iterations} iterations ended on all {run.n_ranks} ranks"
        remarks.append(f"{log}: {done}" + (f"; {reason}" if reason else ""))
        return CODE_UNFINISHED, tuple(remarks)
    if reason and not wrong and not error:
        remarks.append(f"{log}: {reason}")
    return (CODE_WRONG if wrong or error or reason else 0), tuple(remarks)


def torch_rows(run: TorchRun, outcome: TorchOutcome) -> list[Row]:
    """Rows of a run: the median `time` of its iterations, `algbw` and `busbw` (bytes/s), and `wrong` elements."""
    job = run.job
    rows = [_row(run, outcome, "wrong", "1", float(outcome.reports.wrong()))]
    if outcome.times_s:
        time_s = median(outcome.times_s)
        factor = operation(job.collective).bus_factor(run.n_ranks)
        rows = [
            _row(run, outcome, "time", "s", time_s),
            _row(run, outcome, "algbw", "B/s", job.bytes / time_s),
            _row(run, outcome, "busbw", "B/s", job.bytes * factor / time_s),
            *rows,
        ]
    return rows


def _row(run: TorchRun, outcome: TorchOutcome, metric: str, unit: str, measured: float) -> Row:
    job = run.job
    return make_row(
        scenario="torch",
        cluster=job.cluster,
        workload=canonical(job.collective),
        pattern=" ".join(job.fail),
        strategy=job.strategy,
        backend=f"torch-{job.backend}",
        bytes=job.bytes,
        metric=metric,
        unit=unit,
        simulated=None,
        measured=measured,
        source=f"{outcome.log}; {len(outcome.times_s)} iterations; {outcome.record.provenance}",
    )


def _python_path() -> str:
    """Where this package lies, before whatever the variable says, so that the ranks run the same one."""
    own = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(one for one in (own, os.environ.get("PYTHONPATH", "")) if one)
