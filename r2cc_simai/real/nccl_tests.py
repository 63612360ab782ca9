"""A run of nccl-tests: its command, its log, and what can be compared of what it printed."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from r2cc_simai.errors import InputError
from r2cc_simai.measured.log_text import log_text
from r2cc_simai.real.hosts import Host, total_slots
from r2cc_simai.real.injection import Injection, Injector
from r2cc_simai.real.launcher import Command, launch
from r2cc_simai.real.process import Ended, Silent, Sink, run_processes, text_log, tool_version
from r2cc_simai.real.record import RunRecord, ended_values, new_record, versions_in
from r2cc_simai.real.table_parts import Phase, Table, read_table, write_part

HOT_REPAIR_MODE = "1"
CODE_BAD_RUN = 1
CODE_UNFINISHED = 3


@dataclass(frozen=True)
class NcclRun:
    """What is run on which hosts; sizes as nccl-tests takes them. `gpus` are those of one process."""

    hosts: tuple[Host, ...]
    launcher: str
    program: str
    arguments: tuple[str, ...]
    gpus: int
    variables: Mapping[str, str]
    launcher_arguments: tuple[str, ...] = ()

    @property
    def program_line(self) -> tuple[str, ...]:
        """The program with its arguments."""
        return (self.program, *self.arguments, "-g", str(self.gpus))

    @property
    def command(self) -> Command:
        """The command that starts it everywhere."""
        return launch(self.launcher, self.hosts, self.program_line, self.variables, self.launcher_arguments)

    @property
    def preamble(self) -> str:
        """Two lines that say what was run, as `compare` reads them at the head of a log."""
        settings = {k: v for k, v in self.variables.items() if k.startswith(("R2CC_", "NCCL_")) and " " not in v}
        said = " ".join(f"{name}={value}" for name, value in settings.items())
        where = ",".join(map(str, self.hosts))
        ranks = total_slots(self.hosts) * self.gpus
        return (
            f"[nccl-tests] nodes={len(self.hosts)} ranks={ranks} ({where}) {said}".rstrip()
            + f"\n[nccl-tests] {shlex.join(self.program_line)}\n"
        )


@dataclass(frozen=True)
class Repetition:
    """One repetition, ended. `comparable` are logs that `compare` can read; `code` is 0 where nothing was wrong."""

    record: RunRecord
    log: Path
    table: Table
    comparable: tuple[Path, ...]
    code: int
    remarks: tuple[str, ...] = ()


@dataclass
class Runner:
    """Runs repetitions into a folder: `run<k>.log` as it came, `run<k>.json`, and logs of the parts of a table."""

    run: NcclRun
    folder: Path
    limit_s: float
    repetitions: int
    injection: Injection | None
    echo: Callable[[str], None]
    _versions: dict[str, str] = field(default_factory=dict)

    def repetition(self, number: int) -> Repetition:
        """Runs once.

        Raises:
            InputError: the table is garbled in its middle, or the failure hook fails.
            MissingComponentError: the launcher is missing.
        """
        log = self.folder / f"run{number}.log"
        record = new_record(
            [self.run.command],
            [host.name for host in self.run.hosts],
            log,
            self.limit_s,
            (number, self.repetitions),
            self.run.variables,
            {Path(self.run.launcher).name: self._launcher_version()},
        )
        record.write(log.with_suffix(".json"))  # a killed run leaves it behind, too
        ended, injector, unrepaired = self._execute(log)
        text = text_log(log)
        versions = {**record.versions, **versions_in(text)}
        record = replace(record, versions=versions, failure=self._failure(injector), **ended_values(ended))
        record.write(log.with_suffix(".json"))
        if ended.stopped.startswith("--fail-hook"):
            also = f"; {unrepaired}" if unrepaired else ""
            raise InputError(f"{ended.stopped}{also}; what was printed up to then is in {log}")
        table = read_table(log, text)
        code, remarks = self._verdict(ended, table, injector)
        if unrepaired:
            code, remarks = code or CODE_BAD_RUN, (f"{log}: {unrepaired}", *remarks)
        return Repetition(record, log, table, self._parts(log, table, text), code, remarks)

    def _execute(self, log: Path) -> tuple[Ended, Injector | None, str]:
        """Runs the command; how it ended, the failure that was made, and why it could not be repaired."""
        with log.open("wb") as file:
            sink = Sink(file, self.echo)
            sink.write(self.run.preamble.encode())
            injector = None
            if self.injection is not None:
                injector = Injector(self.injection, sink, log.with_suffix(".hook.log"))
            unrepaired = ""
            try:
                ended = run_processes(
                    [self.run.command], sink, self.limit_s, injector or Silent(), "the end of the table of nccl-tests"
                )
            finally:
                if injector is not None:
                    unrepaired = injector.finish()
            code = next((abs(one) for one in ended.codes if one), 0)
            sink.write(f"[nccl-tests] rc={code}\n".encode())
        return ended, injector, unrepaired

    def _failure(self, injector: Injector | None) -> dict[str, object]:
        if injector is None:
            return {}
        one = injector.injection
        return {
            "command": one.command,
            "when": one.moment,
            "repair": one.repair,
            "started_s": injector.started_s,
            "ended_s": injector.ended_s,
        }

    def _launcher_version(self) -> str:
        if not self._versions:
            self._versions["launcher"] = tool_version([self.run.launcher, "--version"])
        return self._versions["launcher"]

    def _parts(self, log: Path, table: Table, text: str) -> tuple[Path, ...]:
        """Logs for `compare`: the raw one where it is whole and of one rank, else one for each part of the table."""
        if not table.rows:
            return ()
        if not table.hit:
            if table.complete and log_text(str(log), text) == log_text(str(log), "\n".join(table.log.lines)):
                return (log,)
            return self._part(log, table, "part", (Phase.BEFORE,), {})
        mode = self.run.variables.get("R2CC_MODE", "0")
        if mode == "0":
            return self._part(log, table, "before", (Phase.BEFORE,), {})
        healthy = {"R2CC_MODE": "0"} if mode == HOT_REPAIR_MODE else {}
        before = self._part(log, table, "before", (Phase.BEFORE,), healthy)
        return (*before, *self._part(log, table, "after", (Phase.AFTER,), {}))

    @staticmethod
    def _part(
        log: Path, table: Table, name: str, phases: tuple[Phase, ...], settings: Mapping[str, str]
    ) -> tuple[Path, ...]:
        if not any(row.phase in phases for row in table.rows):
            return ()
        path = log.with_suffix(f".{name}.log")
        write_part(table, phases, path, settings)
        return (path,)

    def _verdict(self, ended: Ended, table: Table, injector: Injector | None) -> tuple[int, tuple[str, ...]]:
        """The exit code that the repetition means, and what is to be said of it."""
        code, remarks = 0, []
        if ended.reason:
            remarks.append(f"{table.log.name}: {ended.reason}")
            code = CODE_BAD_RUN
        if not table.complete:
            last = f"{len(table.rows)} rows read" + (f" up to {table.rows[-1].size.bytes} bytes" if table.rows else "")
            torn = "" if table.torn is None else f", {table.log.where(table.torn)} is cut in its middle"
            remarks.append(f"{table.log.name}: the table of nccl-tests has no end: {last}{torn}")
            code = CODE_UNFINISHED
        wrong = sum(row.size.wrong for row in table.rows)
        if wrong:
            remarks.append(f"{table.log.name}: {wrong} wrong elements")
            code = code or CODE_BAD_RUN
        if injector is not None and injector.started_s is None:
            remarks.append(f"{table.log.name}: the failure was never made: it was to come {injector.injection.moment}")
            code = code or CODE_BAD_RUN
        return code, (*remarks, *self._left_out(table))

    def _left_out(self, table: Table) -> list[str]:
        """Rows that no strategy's simulation stands beside, and why."""
        remarks = []
        during = [row for row in table.rows if row.phase is Phase.DURING]
        if during:
            remarks.append(f"{table.log.name}: {_rows(len(during))} measured while the failure came, not compared")
        after = [row for row in table.rows if row.phase is Phase.AFTER]
        if after and self.run.variables.get("R2CC_MODE", "0") == "0":
            remarks.append(
                f"{table.log.name}: {_rows(len(after))} measured after the failure, not compared: "
                "--mode, --failed-node and --failed-nic say what to compare with"
            )
        return remarks


def _rows(count: int) -> str:
    return f"{count} row{'s' if count > 1 else ''}"
