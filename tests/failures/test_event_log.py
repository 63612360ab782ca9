"""Replay of an operator's event log: outages as they were, or one line that names file and line."""

import math
import random
import re
from pathlib import Path

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.event_log import read_event_log
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.registry import parse_pattern

H100 = load_cluster("h100x4")
SPINE = load_cluster("a100-leaf-spine")

NIGHT = """time,component,state,cause
2026-11-01T10:00:00Z,server0.nic3,down,optics
2026-11-01T12:00:00+01:00,server0.nic3,50%,
2026-11-01T11:30:00Z,server2.nic1.cable,0.25,cable
2026-11-01T12:00:00Z,server0.nic3,up,
2026-11-01T12:00:00Z,rail1,down,
2026-11-01T12:30:00Z,server1.nic1,down,
"""


def read(folder: Path, text: str | bytes, at: str = "") -> tuple[Incident, ...]:
    """The incidents of a log on four H100 servers."""
    file = folder / "events.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_event_log(file, H100, at)


def lines(*rows: str) -> str:
    """A log of these lines below the header."""
    return "\n".join(["time,component,state", *rows]) + "\n"


def test_a_night(tmp_path: Path) -> None:
    """Time 0 is the first event; a fraction after down is an incident of its own; what is down at the end stays so.

    `server1.nic1` fails although its rail is down already: parents and parts overlap, each with its own repair.
    """
    assert read(tmp_path, NIGHT) == (
        Incident("server0.nic3", 0.0, 3600.0, 0.0, "optics"),
        Incident("server0.nic3", 3600.0, 7200.0, 0.5, "optics"),
        Incident("server2.nic1.cable", 5400.0, math.inf, 0.25, "cable"),
        Incident("rail1", 7200.0, math.inf, 0.0, ""),
        Incident("server1.nic1", 9000.0, math.inf, 0.0, ""),
    )


def test_the_job_may_start_later(tmp_path: Path) -> None:
    """With `at` after some events, their state is there from the start and what was over is gone."""
    found = read(tmp_path, NIGHT, "2026-11-01T13:00:00+01:00")
    assert {one.component for one in found} == {"server2.nic1.cable", "rail1", "server1.nic1"}
    assert {one.component: one.begin_s for one in found}["server1.nic1"] == 1800.0
    assert read(tmp_path, NIGHT, "2026-11-02T00:00:00Z")[-1].begin_s == 0.0


def test_the_job_may_start_before_the_first_event(tmp_path: Path) -> None:
    """Then the first event comes that much later."""
    assert read(tmp_path, NIGHT, "2026-11-01T09:00:00Z")[0].begin_s == 3600.0


@pytest.mark.parametrize(
    "log",
    [
        lines("0,server0.nic0,down", "1.5,server0.nic0,up"),
        lines("1700000000,server0.nic0,down", "1700000001.5,server0.nic0,up"),
        lines("2026-11-01T00:00:00,server0.nic0,down", "2026-11-01 00:00:01.500,server0.nic0,100%"),
        lines("-1e3,server0.nic0,DOWN", "-998.5,server0.nic0,Up"),
        lines("0,server0.nic0,0", "1.5,server0.nic0,1"),
        '\ufeffTime, component ,host,state,n\r\n0,server0.nic0,h,down,"a, ""b""\r\nc"\r\n\r\n1.5,server0.nic0,,up,\r\n',
    ],
)
def test_what_exports_look_like(tmp_path: Path, log: str) -> None:
    """Seconds, Unix time, local time; byte-order mark, CRLF, blank lines, further columns, quoted cells."""
    assert read(tmp_path, log) == (Incident("server0.nic0", 0.0, 1.5, 0.0, ""),)


@pytest.mark.parametrize(
    ("log", "line", "message"),
    [
        ("", 1, "empty; a header is wanted: time,component,state"),
        ("\n\n", 1, "empty"),
        ("time,component,state\n", 2, "no events"),
        ("time,component\n0,server0\n", 1, "the header lacks 'state'"),
        ("time;component;state\n", 1, "the header lacks 'time'; .* with commas between"),
        ("time,component,state,time\n", 1, "the header has 'time' twice"),
        (lines("0,server9.nic0,down"), 2, "'server9.nic0': h100x4 has no such component"),
        (lines("0,server0.nic9,down"), 2, "server0 has no NIC 'nic9'"),
        (lines("0,leaf0,down"), 2, "'leaf0': h100x4 has no such component"),
        (lines("0,server00,down"), 2, "'server00': write server0, without zeros"),
        (lines("0,server00.nic0,down"), 2, "write server0.nic0, without zeros"),
        (lines("0,server0.nic[0-3],down"), 2, "one component a line, no ranges"),
        (lines("0,,down"), 2, "no such component"),
        (lines("1,server0,down", "0.5,server1,down"), 3, "'0.5' is before the line above; sort the log by time"),
        (lines("0,server0,down", "1,server0,down"), 3, r"server0 is down already \(line 2\)"),
        (lines("0,server0,up"), 2, "server0 is up already, as nothing has changed it before"),
        (lines("0,server0,down", "1,server0,up", "2,server0,up"), 4, r"server0 is up already \(line 3\)"),
        (lines("0,server0,0.5", "1,server0,50%"), 3, r"server0 is at 50% already \(line 2\)"),
        (lines("0,server0,down", "0,server0,up"), 3, r"server0 has two states at one time \(line 2\)"),
        (lines("0,server0,dead"), 2, "'dead' is no state; write down, up, or the rate that is left: 0.5 or 50%"),
        (lines("0,server0,-0.5"), 2, "'-0.5' is no state"),
        (lines("0,server0,150%"), 2, "'150%' is no state"),
        (lines("0,server0,nan"), 2, "'nan' is no state"),
        (lines("0,server0,"), 2, "'' is no state"),
        (lines("nan,server0,down"), 2, "'nan' is no time"),
        (lines("inf,server0,down"), 2, "'inf' is no time"),
        (lines("1e999,server0,down"), 2, "'1e999' is no time"),
        (lines("yesterday,server0,down"), 2, "'yesterday' is no time; write 2026-11-30T08:15:00"),
        (lines("2026-13-01T00:00:00,server0,down"), 2, "is no time"),
        (lines("01/11/2026 10:00,server0,down"), 2, "is no time"),
        (
            lines("0,server0,down", "2026-11-01T00:00:00,server1,down"),
            3,
            "without a zone, the lines before are seconds",
        ),
        (
            lines("2026-11-01T00:00:00Z,server0,down", "2026-11-01T01:00:00,server1,down"),
            3,
            "the lines before are .*with a",
        ),
        (lines("0,server0,down,9"), 2, "4 cells; the header has 3"),
        (lines("0,server0"), 2, "2 cells; the header has 3"),
        (lines('0,server0,"down'), 2, "not CSV"),
        (lines("0," + "x" * 300 + ",down"), 2, "component: 300 characters"),
        (b"time,component,state\n0,server0,down\n1,server\xff,up\n", 3, "not UTF-8"),
    ],
)
def test_a_wrong_log_is_named(tmp_path: Path, log: str | bytes, line: int, message: str) -> None:
    """`file:line: what is wrong; what would be right`, one line."""
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, log)
    assert str(caught.value).startswith(f"{tmp_path / 'events.csv'}:{line}: ")
    assert "\n" not in str(caught.value)


def test_parents_and_parts_may_overlap(tmp_path: Path) -> None:
    """A NIC, its cable, its server, rail and leaf are components of their own."""
    names = ("server0", "server0.nic1", "server0.nic1.cable", "server0.nic1.port", "rail1", "leaf1")
    file = tmp_path / "events.csv"
    file.write_text(lines(*(f"{i},{name},down" for i, name in enumerate(names))))
    assert [one.component for one in read_event_log(file, SPINE)] == list(names)


@pytest.mark.parametrize(
    ("at", "message"), [("soon", "'soon' is no time"), ("5", "at=5: seconds, the times of the log")]
)
def test_a_wrong_time_zero(tmp_path: Path, at: str, message: str) -> None:
    """`at` is written as the log writes its times."""
    with pytest.raises(InputError, match=message):
        read(tmp_path, NIGHT, at)


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    """Named, as is a folder."""
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError, match=str(path)):
            read_event_log(path, H100)


def test_as_a_pattern(tmp_path: Path) -> None:
    """`log:file=events.csv,at=...`; a relative path counts from the folder of the scenario; it draws nothing."""
    (tmp_path / "events.csv").write_text(NIGHT)
    pattern = parse_pattern("log:file=events.csv,at=2026-11-01T12:10:00Z")
    assert not pattern.draws
    found = pattern.incidents(H100, base=tmp_path)
    assert [(one.component, one.begin_s) for one in found] == [
        ("server2.nic1.cable", 0.0),
        ("rail1", 0.0),
        ("server1.nic1", 1200.0),
    ]


def mutated(text: str, chance: random.Random) -> bytes:
    """The log with one or two of its bytes, cells or lines deleted, doubled, swapped or replaced."""
    data = bytearray(text.encode())
    junk = (
        b",",
        b"\n",
        b'"',
        b"\x00",
        b"\xff",
        b"down",
        b"up",
        b"nan",
        b"1e9",
        b"server3",
        b"[0-",
        b"\r",
        b"-",
        b"%",
        b"Z",
    )
    for _ in range(chance.randint(1, 2)):
        place, kind = chance.randrange(len(data)), chance.randrange(5)
        if kind == 0:
            del data[place : place + chance.randint(1, 12)]
        elif kind == 1:
            data[place:place] = chance.choice(junk)
        elif kind == 2:
            data[place] = chance.randrange(256)
        else:
            rows = bytes(data).split(b"\n")
            i, j = chance.randrange(len(rows)), chance.randrange(len(rows))
            rows[i], rows[j] = (rows[j], rows[i]) if kind == 3 else (rows[i] + b"\n" + rows[i], rows[j])
            data = bytearray(b"\n".join(rows))
        data = data or bytearray(b"\n")
    return bytes(data)


def test_200_mutated_logs(tmp_path: Path) -> None:
    """Each gives incidents that make sense or one line with file and line; both happen often."""
    chance = random.Random(7)
    good: list[tuple[Incident, ...]] = []
    bad: list[str] = []
    for _ in range(200):
        try:
            good.append(read(tmp_path, mutated(NIGHT, chance)))
        except InputError as error:
            bad.append(str(error).removeprefix(f"{tmp_path / 'events.csv'}:"))
    assert all(re.match(r"[1-9][0-9]*: .", told) and told.isprintable() for told in bad)
    assert all(0 <= one.begin_s < one.end_s and 0 <= one.state < 1 for found in good for one in found)
    assert len(good) >= 10
    assert len(bad) >= 100
