"""A failure made by the user's own command in the middle of a run, and its repair at the end."""

import contextlib
import os
import re
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from r2cc_simai.errors import InputError
from r2cc_simai.measured.untangle import plain
from r2cc_simai.real.process import Sink

STARTED = "the failure hook started"
ENDED = "the failure hook ended"


@dataclass(frozen=True)
class Injection:
    """`command` runs in a shell `at_s` seconds after the start, or once a line of output matches `pattern`.

    Each command may take `limit_s`. `repair` runs after the run where the failure has been made, however that ended.
    """

    command: str
    at_s: float | None
    pattern: re.Pattern[str] | None
    limit_s: float
    repair: str = ""

    @property
    def moment(self) -> str:
        """When it runs, in words."""
        if self.pattern is not None:
            return f"once the output matches {self.pattern.pattern!r}"
        return f"{self.at_s:g} s after the start"


def injection_of(
    command: str | None, at_s: float | None, pattern: str | None, repair: str | None, limit_s: float
) -> Injection | None:
    """The injection that the options ask for.

    Raises:
        InputError: a moment without a command, a command without exactly one moment, or a bad pattern.
    """
    if command is None:
        loose = {"--fail-at": at_s, "--fail-on": pattern, "--repair-hook": repair}
        for option, value in loose.items():
            if value is not None:
                raise InputError(f"{option} {value}: says when or what follows; name the command with --fail-hook")
        return None
    if (at_s is None) == (pattern is None):
        raise InputError("--fail-hook: say when it runs, by either --fail-at TIME or --fail-on PATTERN")
    if at_s is not None and at_s < 0:
        raise InputError(f"--fail-at {at_s:g}: must not be before the start")
    try:
        compiled = None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise InputError(f"--fail-on {pattern!r}: no regular expression: {error}") from None
    return Injection(command, at_s, compiled, limit_s, repair or "")


@dataclass
class Injector:
    """Listens to a run and makes the failure. `started_s` and `ended_s` count from the start of the run."""

    injection: Injection
    sink: Sink
    log: Path
    started_s: float | None = None
    ended_s: float | None = None
    _due: bool = False
    _process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    def line(self, text: str, at_s: float) -> None:  # noqa: ARG002
        """Looks for the pattern."""
        pattern = self.injection.pattern
        if pattern is not None and not self._due and pattern.search(plain(text)):
            self._due = True

    def poll(self, at_s: float) -> str:
        """Starts the command when its time has come and watches it; why the run must stop, or nothing."""
        if self._process is not None:
            return self._watch(at_s)
        when = self.injection.at_s
        if self.started_s is None and (self._due or (when is not None and at_s >= when)):
            self.sink.mark(STARTED)
            self.started_s = at_s
            self._process = _shell(self.injection.command, self.log)
        return ""

    def finish(self) -> str:
        """Waits for the command where it still runs, then makes the repair; what went wrong with it, or nothing."""
        if self._process is not None:
            _ended(self._process, self.injection.limit_s, "--fail-hook")
            self._process = None
        if self.started_s is None or not self.injection.repair:
            return ""
        wrong = _ended(_shell(self.injection.repair, self.log), self.injection.limit_s, "--repair-hook")
        return f"{wrong}; what it was to repair may still be broken" if wrong else ""

    def _watch(self, at_s: float) -> str:
        assert self._process is not None
        assert self.started_s is not None
        code = self._process.poll()
        if code is None:
            if at_s - self.started_s <= self.injection.limit_s:
                return ""
            _kill(self._process)
            self._process = None
            return f"--fail-hook: did not end within {self.injection.limit_s:g} s"
        self._process = None
        self.ended_s = at_s
        self.sink.mark(ENDED)
        return f"--fail-hook: ended with exit code {code} (its output: {self.log})" if code else ""


def _shell(command: str, log: Path) -> "subprocess.Popen[bytes]":
    with log.open("ab") as file:
        return subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kills a command and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ended(process: "subprocess.Popen[bytes]", limit_s: float, option: str) -> str:
    """Waits for a command; what went wrong, or nothing."""
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        return f"{option}: did not end within {limit_s:g} s"
    return f"{option}: ended with exit code {code}" if code else ""
