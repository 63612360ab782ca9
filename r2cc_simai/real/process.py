"""Processes whose output is shown and stored while they run, and which never run longer than they may."""

import codecs
import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol

from r2cc_simai.errors import MissingComponentError
from r2cc_simai.real.launcher import Command

GRACE_S = 5.0
"""Between asking processes to end and killing them; also what the others get once one has failed."""
DRAIN_S = 2.0
"""How long output is still read after the processes have ended."""
_TICK_S = 0.05
_BLOCK = 1 << 16


class Listener(Protocol):
    """Sees the output as it comes."""

    def line(self, text: str, at_s: float) -> None:
        """A whole line, without its end, `at_s` seconds after the start."""

    def poll(self, at_s: float) -> str:
        """Called often; why the processes have to be stopped now, or nothing."""


class Silent:
    """A listener that only listens."""

    def line(self, text: str, at_s: float) -> None:
        """Nothing is done."""

    def poll(self, at_s: float) -> str:  # noqa: ARG002
        """Nothing is wrong."""
        return ""


class Sink:
    """The raw log and the terminal. What comes from one process stays as it is; marks begin a line of their own."""

    def __init__(self, file: BinaryIO, echo: Callable[[str], None]) -> None:
        self._file = file
        self._echo = echo
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._marks: list[str] = []
        self._line_start = True

    def write(self, data: bytes) -> None:
        """Output, as it comes."""
        if self._marks and not self._line_start and b"\n" in data:
            head, data = data[: data.index(b"\n") + 1], data[data.index(b"\n") + 1 :]
            self._put(head)
        self._flush_marks()
        self._put(data)

    def mark(self, text: str) -> None:
        """A line of our own, before the next line that begins."""
        self._marks.append(f"[r2cc-simai] {text}\n")
        self._flush_marks()

    def close(self) -> None:
        """Ends the last line and writes what is left."""
        if not self._line_start:
            self._put(b"\n")
        self._flush_marks()

    def _flush_marks(self) -> None:
        if self._line_start and self._marks:
            marks, self._marks = self._marks, []
            self._put("".join(marks).encode())

    def _put(self, data: bytes) -> None:
        if data:
            self._file.write(data)
            self._file.flush()
            self._echo(self._decoder.decode(data))
            self._line_start = data.endswith(b"\n")


@dataclass(frozen=True)
class Ended:
    """How processes ended: an exit code each (negative: a signal), and why they were stopped, if they were."""

    codes: tuple[int, ...]
    stopped: str
    wall_s: float
    last_line: str

    @property
    def ok(self) -> bool:
        """Whether all ended by themselves, well."""
        return not self.stopped and not any(self.codes)

    @property
    def reason(self) -> str:
        """What went wrong, in words; nothing where nothing did."""
        if self.stopped:
            return self.stopped
        bad = [(number, code) for number, code in enumerate(self.codes) if code]
        if not bad:
            return ""
        number, code = bad[0]
        which = f"process {number} of {len(self.codes)}" if len(self.codes) > 1 else "the command"
        return f"{which} ended with " + (f"exit code {code}" if code > 0 else f"signal {-code}")


@dataclass
class _Process:
    popen: "subprocess.Popen[bytes]"
    label: bytes
    rest: bytes = b""
    open: bool = True


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """In a new process: asks Linux to end it when this program is killed and cannot do so itself."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class _Group:
    """Processes that end with the block, whatever happens in it."""

    commands: Sequence[Command]
    members: list[_Process] = field(default_factory=list)

    def __enter__(self) -> "_Group":
        for command in self.commands:
            try:
                popen = subprocess.Popen(
                    command.argv,
                    env=command.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_end_with_parent,
                    bufsize=0,
                )
            except OSError as error:
                self.stop()
                raise MissingComponentError(f"{command.argv[0]}: cannot be run: {error.strerror}") from None
            self.members.append(_Process(popen, command.label.encode()))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def codes(self) -> list[int | None]:
        return [one.popen.poll() for one in self.members]

    def stop(self) -> None:
        """Asks what still runs to end, then kills it, children included."""
        self.signal(signal.SIGTERM, [one for one in self.members if one.popen.poll() is None])
        deadline = time.monotonic() + GRACE_S
        while None in self.codes and time.monotonic() < deadline:
            time.sleep(_TICK_S)
        self.signal(signal.SIGKILL, self.members)
        for one in self.members:
            one.popen.wait()
            if one.popen.stdout is not None:
                one.popen.stdout.close()

    @staticmethod
    def signal(number: int, members: Sequence[_Process]) -> None:
        """Sends a signal to the process groups of some."""
        for one in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(one.popen.pid, number)


def run_processes(commands: Sequence[Command], sink: Sink, limit_s: float, listener: Listener, wanted: str) -> Ended:
    """Runs commands side by side until all have ended or `limit_s` is over; `wanted` says what is waited for.

    The output of one process is stored as it comes; of several line by line, each behind its label. Once one has
    failed, the others have `GRACE_S` to end.

    Raises:
        MissingComponentError: a program cannot be started.
    """
    watch = _Watch(sink, listener)
    with _Group(commands) as group, selectors.DefaultSelector() as selector:
        for one in group.members:
            assert one.popen.stdout is not None
            os.set_blocking(one.popen.stdout.fileno(), False)
            selector.register(one.popen.stdout, selectors.EVENT_READ, one)
        stopped = _until_ended(group, selector, watch, limit_s, wanted)
        if stopped:
            group.signal(signal.SIGTERM, group.members)
        _drain(selector, watch)
        if stopped:
            group.stop()
        codes = tuple(one.popen.wait() for one in group.members)
        for one in group.members:
            watch.end(one)
    sink.close()
    return Ended(codes, stopped, watch.now(), watch.last_line)


class _Watch:
    """Takes the output apart into lines and hands it on."""

    def __init__(self, sink: Sink, listener: Listener) -> None:
        self._sink = sink
        self.listener = listener
        self._start_s = time.monotonic()
        self.last_line = ""

    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start_s

    def data(self, one: _Process, data: bytes) -> None:
        """Output of a process."""
        if not one.label:
            self._sink.write(data)
        *lines, one.rest = (one.rest + data).split(b"\n")
        for line in lines:
            self._line(one, line)

    def end(self, one: _Process) -> None:
        """No more output of a process."""
        if one.rest:
            self._line(one, one.rest)
            one.rest = b""

    def _line(self, one: _Process, line: bytes) -> None:
        if one.label:
            self._sink.write(one.label + line + b"\n")
        text = line.decode("utf-8", errors="replace").rstrip("\r")
        if text.strip():
            self.last_line = text.strip()
        self.listener.line(text, self.now())


def _until_ended(group: _Group, selector: selectors.BaseSelector, watch: _Watch, limit_s: float, wanted: str) -> str:
    """Reads until all have ended; why they have to be stopped, or nothing."""
    failed_at: float | None = None
    while True:
        _read(selector, watch, _TICK_S)
        now, codes = watch.now(), group.codes
        if None not in codes:
            return ""
        reason = watch.listener.poll(now)
        if reason:
            return reason
        if now > limit_s:
            last = f"; its last line was {watch.last_line[:100]!r}" if watch.last_line else "; it has printed nothing"
            return f"stopped after the limit of {limit_s:g} s, waiting for {wanted}{last}"
        bad = next((number for number, code in enumerate(codes) if code), None)
        if bad is not None:
            failed_at = now if failed_at is None else failed_at
            if now - failed_at > GRACE_S:
                return f"process {bad} ended with exit code {codes[bad]}; the others, still waiting, were stopped"


def _read(selector: selectors.BaseSelector, watch: _Watch, timeout_s: float) -> bool:
    """Reads what is there; whether anything was."""
    if not selector.get_map():
        time.sleep(timeout_s)
        return False
    ready = selector.select(timeout_s)
    for key, _ in ready:
        one: _Process = key.data
        data = os.read(key.fd, _BLOCK)
        if data:
            watch.data(one, data)
        else:
            selector.unregister(key.fileobj)
    return bool(ready)


def _drain(selector: selectors.BaseSelector, watch: _Watch) -> None:
    """Reads what is left; a grandchild that holds the pipe open does not hold us up."""
    deadline = time.monotonic() + DRAIN_S
    while selector.get_map() and time.monotonic() < deadline:
        _read(selector, watch, _TICK_S)


def tool_version(argv: Sequence[str], limit_s: float = 10.0) -> str:
    """First line of what a program says of its version; empty where it says nothing in time."""
    try:
        ended = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=limit_s, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    lines = (ended.stdout or ended.stderr).strip().splitlines()
    return lines[0].strip() if lines and ended.returncode == 0 else ""


def text_log(path: Path) -> str:
    """A stored log as text; bytes that are no UTF-8 become replacement characters."""
    return path.read_bytes().decode("utf-8", errors="replace")
