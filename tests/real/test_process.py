"""Processes are shown and stored while they run, never longer than their limit, and nothing of them stays."""

import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from r2cc_simai.errors import MissingComponentError
from r2cc_simai.real import process
from r2cc_simai.real.launcher import Command
from r2cc_simai.real.process import Silent, Sink, run_processes, tool_version


def python(code, label=""):
    return Command((sys.executable, "-c", code), {}, label)


def run(commands, limit_s=20.0, listener=None):
    file, shown = io.BytesIO(), []
    ended = run_processes(commands, Sink(file, shown.append), limit_s, listener or Silent(), "the end")
    return ended, file.getvalue().decode(), "".join(shown)


def gone(pid):
    """Whether a process has ended within 2 s; a zombie whose parent has not asked for it yet has."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_output_is_stored_and_shown_as_it_is():
    ended, stored, shown = run([python("print('a'); print('b', end='')")])
    assert (ended.ok, ended.codes, ended.reason, ended.last_line) == (True, (0,), "", "b")
    assert stored == shown == "a\nb\n"


def test_lines_of_several_processes_carry_their_labels():
    _, stored, _ = run([python(f"print('from', {k})", f"[1,{k}]<stdout>: ") for k in range(3)])
    assert sorted(stored.splitlines()) == [f"[1,{k}]<stdout>: from {k}" for k in range(3)]


def test_a_failing_command_says_its_exit_code():
    ended, stored, _ = run([python("import sys; print('bad luck', file=sys.stderr); sys.exit(7)")])
    assert (ended.ok, ended.reason) == (False, "the command ended with exit code 7")
    assert stored == "bad luck\n"


def test_the_limit_ends_the_command_and_its_children(tmp_path):
    """The child ignores SIGTERM and holds the pipe; both are gone within the limit and the grace."""
    file = tmp_path / "pid"
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    code = (
        f"import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', {child!r}]); "
        f"open({str(file)!r}, 'w').write(str(p.pid)); print('row 1', flush=True); time.sleep(60)"
    )
    begun = time.monotonic()
    ended, stored, _ = run([python(code)], limit_s=1.5)
    assert time.monotonic() - begun < 1.5 + process.GRACE_S + process.DRAIN_S + 2
    assert stored == "row 1\n"
    assert ended.stopped == "stopped after the limit of 1.5 s, waiting for the end; its last line was 'row 1'"
    assert gone(int(file.read_text()))


def test_a_silent_command_at_its_limit():
    ended, _, _ = run([python("import time; time.sleep(60)")], limit_s=0.3)
    assert ended.stopped.endswith("it has printed nothing")


def test_one_failed_process_ends_those_that_wait_for_it(monkeypatch):
    monkeypatch.setattr(process, "GRACE_S", 0.3)
    ended, _, _ = run([python("import sys; sys.exit(3)", "0: "), python("import time; time.sleep(60)", "1: ")])
    assert ended.stopped == "process 0 ended with exit code 3; the others, still waiting, were stopped"
    assert ended.codes[0] == 3


def test_an_exception_in_the_middle_leaves_nothing_behind(tmp_path):
    file = tmp_path / "pid"

    class Broken(Silent):
        def line(self, *_):
            raise KeyboardInterrupt

    code = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); print('x', flush=True); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        run([python(code)], listener=Broken())
    assert gone(int(file.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to end a child with its parent")
def test_a_command_ends_when_we_are_killed(tmp_path):
    file = tmp_path / "pid"
    child = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); print('x', flush=True); time.sleep(60)"
    code = (
        "import io, os, signal, sys\n"
        "from r2cc_simai.real.launcher import Command\n"
        "from r2cc_simai.real.process import Silent, Sink, run_processes\n"
        "class Killed(Silent):\n"
        "    def line(self, *_): os.kill(os.getpid(), signal.SIGKILL)\n"
        f"command = Command((sys.executable, '-c', {child!r}))\n"
        "run_processes([command], Sink(io.BytesIO(), lambda _: None), 50.0, Killed(), 'the end')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=50)
    assert ended.returncode == -signal.SIGKILL
    assert gone(int(file.read_text()))


def test_a_program_that_cannot_be_run():
    with pytest.raises(MissingComponentError, match="/nowhere/mpirun: cannot be run: No such file"):
        run([Command(("/nowhere/mpirun",))])


def test_a_mark_waits_for_the_line_to_end():
    file = io.BytesIO()
    sink = Sink(file, lambda _: None)
    sink.write(b"1024 2")
    sink.mark("now")
    sink.write(b"56\nnext\n")
    sink.close()
    assert file.getvalue() == b"1024 256\n[r2cc-simai] now\nnext\n"


def test_versions_of_tools():
    assert tool_version([sys.executable, "-c", "print('tool 1.2'); print('more')"]) == "tool 1.2"
    assert tool_version([sys.executable, "-c", "import time; time.sleep(9)"], 0.2) == ""
    assert tool_version(["/nowhere/tool"]) == ""
