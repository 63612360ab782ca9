"""The runner, with a trivial runtime in place of the real one: one stream from server 0 to server 1 over NIC 0.

The time of an iteration, the counters, when cuts happen, what is planned for, and that everything ends.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from r2cc_simai.errors import InputError, MismatchError, PartitionedError
from r2cc_simai.lab.experiment import lab_of_folder, run_lab
from r2cc_simai.lab.namespaces import why_not
from r2cc_simai.lab.processes import Worker
from r2cc_simai.lab.runner import running_lab
from r2cc_simai.lab.spec import LabCase, LabSpec, cases_of
from r2cc_simai.lab.work import (
    Endpoint,
    Learn,
    Load,
    Loaded,
    Notice,
    Prepare,
    Prepared,
    Ready,
    Result,
    Start,
    Stop,
)

pytestmark = pytest.mark.skipif(bool(why_not()), reason=f"no lab here: {why_not()}")

SIZE = 2_000_000
RATE = 10e6  # bytes per second
WIRE = SIZE * (1 + 66 / 8948)
PORT = 20000


def spec_of(**changes: Any) -> LabSpec:
    data: dict[str, Any] = {
        "servers": 2,
        "ranks_per_server": 1,
        "nics": [{"count": 2, "rate_mbps": 80}],
        "bytes": SIZE,
        "strategies": ["balance"],
        "repetitions": 2,
        "limits": {"start_s": 5, "collective_s": 3, "factor": 1},
    }
    return LabSpec(**data | changes)


def one_stream(endpoint: Endpoint, control: Connection) -> None:
    """Rank 0 sends the whole buffer to rank 1 over both servers' first NIC; a command at a time."""
    here = next(iter(sorted(endpoint.devices)))
    stream = listener = None
    if endpoint.rank == 1:
        listener = socket.create_server((endpoint.addresses[here], PORT))
    control.send(Ready(endpoint.rank))
    number, size = 0, 0
    while not isinstance(command := control.recv(), Stop):
        match command:
            case Prepare(collective=collective, down=down):
                if down:
                    control.send(Prepared(endpoint.rank, 0.0, 0))
                    continue
                size = collective.request.bytes
                if listener is None:
                    stream = socket.create_connection((endpoint.addresses[2], PORT), timeout=2.0)
                else:
                    stream, _ = listener.accept()
                control.send(Prepared(endpoint.rank, 0.0, 1))
            case Load(iteration=number):
                control.send(Loaded(endpoint.rank))
            case Start(at_s=at_s):
                time.sleep(max(0.0, at_s - time.monotonic()))
                assert stream is not None
                stream.settimeout(10.0)
                if listener is None:
                    stream.sendall(bytes(size))
                    stream.recv(1)
                else:
                    left = size
                    while left:
                        left -= len(stream.recv(min(left, 1 << 20)))
                    stream.sendall(b"x")
                control.send(Result(endpoint.rank, number, at_s, time.monotonic(), 0.001, 0))


def idle(seconds: float, error: str | None = None, wrong: int = 0, tell: Notice | None = None) -> Worker:
    """A runtime that moves nothing: an iteration takes `seconds`."""

    def serve(endpoint: Endpoint, control: Connection) -> None:
        control.send(Ready(endpoint.rank))
        number, learned = 0, 0
        while not isinstance(command := control.recv(), Stop):
            match command:
                case Prepare():
                    control.send(Prepared(endpoint.rank, 0.0, 0))
                case Load(iteration=number):
                    control.send(Loaded(endpoint.rank))
                case Learn():
                    learned += 1
                case Start(at_s=at_s):
                    if tell is not None and endpoint.rank == tell.rank:
                        control.send(tell)
                    time.sleep(max(0.0, at_s + seconds - time.monotonic()))
                    # What was learned meanwhile shows as the rank's CPU time.
                    while tell is not None and not learned and control.poll(1.0):
                        learned += isinstance(control.recv(), Learn)
                    end = time.monotonic()
                    control.send(Result(endpoint.rank, number, at_s, end, float(learned), wrong, error=error))

    return serve


def run_one(spec: LabSpec, script: list[str], worker: Worker = one_stream, strategy: str = "balance") -> Any:
    with running_lab(spec, "stream", worker) as lab:
        return lab.run(LabCase(strategy, "case", tuple(script)))


def test_time_and_bytes_of_an_iteration() -> None:
    """D bytes over one NIC: (D (1 + 66/8948) - burst) / rate, and D (1 + 66/8948) on its two ends' counters."""
    record = run_one(spec_of(), [])
    assert [one.role for one in record.iterations] == ["steady", "steady"]
    fastest = min(one.time_s for one in record.iterations)  # other work on the machine only delays
    assert fastest == pytest.approx((WIRE - 128 * 1024) / RATE, rel=0.15)
    for one in record.iterations:
        assert one.wire_bytes["server0.nic0"][1] == pytest.approx(WIRE, rel=0.005)
        assert one.wire_bytes["server1.nic0"][0] == pytest.approx(WIRE, rel=0.005)
        assert sum(one.wire_bytes["server0.nic1"]) == 0
        assert one.false_alarms == 0


def test_a_cut_with_an_end_lengthens_the_iteration_that_it_hits() -> None:
    """A silent cut of 0.3 s: nothing passes meanwhile, and TCP goes on some time after; the next iteration is calm."""
    record = run_one(spec_of(repetitions=1, limits={"collective_s": 6.0}), ["server0.nic0=silent@0.05..+0.3"])
    hit, after = record.iterations
    assert (hit.role, after.role) == ("cut", "after")
    assert hit.time_s > 0.3 + after.time_s
    assert 0.05 <= record.began_s[0][0] < 0.1
    assert [done.action.kind for done in record.done[0]] == ["silent", "up"]
    assert 0.3 <= record.done[0][1].time_s - record.done[0][0].time_s + 0.005 < 0.4


def test_a_cut_at_a_byte_count_comes_when_so_much_has_passed() -> None:
    """Not before, and within what passes between two looks at the counter; no sooner than the rate lets it."""
    record = run_one(spec_of(repetitions=3), ["server0.nic0=rate:0.5@bytes:1M"])
    passed = [done[0].passed_bytes for done in record.done]
    assert min(passed) >= 2**20
    assert min(passed) < 2**20 + 150_000  # other work on the machine only delays the look
    for began in record.began_s:
        assert began[0] > (2**20 - 128 * 1024 - 65536) / RATE


def test_a_half_rate_that_is_there_before_doubles_the_time() -> None:
    """(D (1 + 66/8948) - burst) / (rate / 2)."""
    halved = run_one(spec_of(repetitions=3), ["server0.nic0=rate:0.5@0"]).iterations
    assert min(one.time_s for one in halved) == pytest.approx(2 * (WIRE - 128 * 1024) / RATE, rel=0.1)


def test_script_goes_on_over_several_iterations_until_it_ends() -> None:
    """One NIC for 0.2 s, then another: five iterations of 0.1 s do not hold it all, the last one is after it."""
    record = run_one(spec_of(repetitions=1), ["server0.nic1@0.05..+0.2", "server1.nic1@0.35..+0.1"], idle(0.1))
    roles = [one.role for one in record.iterations]
    assert roles[0] == "cut"
    assert roles[-1] == "after"
    assert set(roles[1:-1]) == {"during"}
    assert [(done.action.nic, str(done.action.kind)) for done in record.done[0]] == [
        (1, "link-down"),
        (1, "up"),
        (3, "link-down"),
        (3, "up"),
    ]


def test_a_byte_count_that_never_comes_ends_with_the_reason() -> None:
    with pytest.raises(PartitionedError, match="a byte count may never be reached"):
        run_one(spec_of(repetitions=1, warmup=0), ["server0.nic1@bytes:1M"], idle(0.001))


def test_a_notice_reaches_every_rank_at_once() -> None:
    """One rank reports a NIC; all learn of it before the iteration ends. It was none: a false alarm."""
    notice = Notice(0, nic=3, up=False, cause="ack-timeout", time_s=0.0)
    (one,) = run_one(spec_of(repetitions=1, warmup=0), [], idle(0.05, tell=notice)).iterations
    assert one.cpu_s == (1.0, 1.0)
    assert one.false_alarms == 1


def test_a_wait_has_a_limit_and_says_what_for() -> None:
    told = r"waited .* s for the end of a collective \(balance, case\); nothing from rank 0, 1"
    with pytest.raises(PartitionedError, match=told) as error:
        run_one(spec_of(), [], idle(60.0))
    waited = re.search(r"waited ([\d.]+) s", str(error.value))
    assert waited is not None
    assert float(waited[1]) < 10
    assert error.value.exit_code == 3


def test_a_rank_that_dies_is_named() -> None:
    def dies(endpoint: Endpoint, control: Connection) -> None:
        control.send(Ready(endpoint.rank))
        control.recv()
        if endpoint.rank == 1:
            os._exit(7)
        time.sleep(60)

    with pytest.raises(PartitionedError, match=r"rank 1 \(server1\) ended while it was waited for connections"):
        run_one(spec_of(), [], dies)


def test_a_rank_that_has_died_unnoticed_is_named_when_it_is_spoken_to() -> None:
    with running_lab(spec_of(), "stream", idle(0.0)) as lab:
        os.kill(lab.ranks.pids[1], signal.SIGKILL)
        eventually(lambda: not alive(lab.ranks.pids[1]))
        with pytest.raises(PartitionedError, match=r"rank 1 \(server1\) has ended"):
            lab.run(LabCase("balance", "case", ()))


def test_an_error_of_a_rank_ends_the_run_with_its_words() -> None:
    with pytest.raises(PartitionedError, match=r"balance \| case: no acknowledgement of unit 3"):
        run_one(spec_of(), [], idle(0.0, error="no acknowledgement of unit 3"))


def test_ranks_are_gone_when_the_lab_ends() -> None:
    with running_lab(spec_of(), "stream", idle(0.0)) as lab:
        pids = list(lab.ranks.pids)
        assert all(alive(pid) for pid in pids)
    assert not any(alive(pid) for pid in pids)


def test_run_folder_holds_rows_with_machine_and_raw_file_and_is_resumed(tmp_path: Path) -> None:
    spec = spec_of(failures=[{"name": "lost", "script": ["server0.nic1@0"]}])
    told: list[str] = []
    rows = run_lab("stream", spec, tmp_path, lambda case, _rows: told.append(case.key), idle(0.01))
    assert told == ["ideal | none", "ideal | none, small buffer", "balance | lost"]
    times = [row for row in rows if row.metric == "time"]
    measured = [(row.strategy, row.pattern) for row in times]
    assert measured == [("ideal", "none")] * (2 + 10) + [("balance", "server0.nic1@0")] * 2
    kernel = os.uname().release
    for row in times:
        raw, _, machine = row.source.partition(" repetition ")
        assert json.loads((tmp_path / raw).read_text())["environment"]["kernel"] == f"Linux {kernel}"
        assert f"kernel Linux {kernel}" in machine
        assert row.backend == "lab"
    assert lab_of_folder(tmp_path) == ("stream", spec)
    assert run_lab("stream", spec, tmp_path, lambda case, _rows: told.append(case.key), idle(60.0)) == rows
    assert len(told) == 3


def test_folder_without_a_lab_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run folder of a lab"):
        lab_of_folder(tmp_path)


def test_wrong_elements_are_recorded_and_are_a_mismatch(tmp_path: Path) -> None:
    with pytest.raises(
        MismatchError, match=r"ideal, none: 10 wrong elements in raw/ideal\.none\.json repetition 1 of 2"
    ):
        run_lab("stream", spec_of(), tmp_path, worker=idle(0.0, error="5 wrong", wrong=5))
    assert len(cases_of(lab_of_folder(tmp_path)[1])) == 2
    assert (tmp_path / "results.csv").is_file()


RUNNER = """
import os, time
from tests_runner_of_lab import idle, spec_of
from r2cc_simai.lab.runner import running_lab
from r2cc_simai.lab.spec import LabCase
with running_lab(spec_of(), "killed", idle(60.0)) as lab:
    namespaces = [os.fstat(fd).st_ino for fd in [*lab.world._servers, lab.world._switches]]
    print(*lab.ranks.pids, "|", *namespaces, flush=True)
    lab.run(LabCase("balance", "case", ("server0.nic1@0",)))
"""


@pytest.mark.parametrize("when", ["at once", "in mid-run"])
def test_nothing_is_left_after_the_runner_is_killed(when: str, tmp_path: Path) -> None:
    """kill -9 of the runner: its ranks die with it, and with them the namespaces and all that is in them."""
    (tmp_path / "tests_runner_of_lab.py").write_text(Path(__file__).read_text())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", RUNNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as runner:
        assert runner.stdout is not None
        pids, _, inodes = runner.stdout.readline().partition("|")
        ranks, namespaces = [int(pid) for pid in pids.split()], {int(inode) for inode in inodes.split()}
        assert len(ranks) == 2
        assert len(namespaces) == 3
        if when == "in mid-run":
            time.sleep(0.5)
        assert kept(namespaces)
        runner.kill()
    assert runner.returncode == -signal.SIGKILL
    eventually(lambda: not any(alive(pid) for pid in ranks))
    eventually(lambda: not kept(namespaces))
    assert not {name for _, name in socket.if_nameindex()} & {"nic0", "nic1", "p0", "rail0"}


def alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kept(inodes: set[int]) -> bool:
    """Whether a process or a descriptor on this machine keeps one of these namespaces."""
    targets = {f"net:[{inode}]" for inode in inodes}
    for path in (*Path("/proc").glob("[0-9]*/ns/net"), *Path("/proc").glob("[0-9]*/fd/*")):
        try:
            if os.readlink(path) in targets:
                return True
        except OSError:
            continue
    return False


def eventually(holds: Callable[[], bool], within_s: float = 5.0) -> None:
    limit = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < limit, "still there"
        time.sleep(0.02)
