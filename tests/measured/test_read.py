"""What is no log is refused in one line that names the file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.errors import InputError
from r2cc_simai.measured import Measurement, read_log
from r2cc_simai.measured.log_text import LogText, log_text
from r2cc_simai.measured.read import FORMS


@pytest.mark.parametrize("content", [b"", b" \n\n\t\n"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.log"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"empty\.log:1: expected a log, found an empty file"):
        read_log(path)


@pytest.mark.parametrize("content", [b"\x7fELF\x00\xff\xfe\n\x80", b"hello\nworld\n", b"[1, 2]", b"a,b\n1,2\n"])
def test_garbage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "garbage.log"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"garbage\.log:1: expected the output of nccl-tests") as caught:
        read_log(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.log: cannot be read: No such file"):
        read_log(tmp_path / "none.log")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_log(tmp_path)


def test_windows_line_ends(tmp_path: Path) -> None:
    source = Path(__file__).parent / "data" / "healthy_13_columns.log"
    path = tmp_path / "windows.log"
    path.write_bytes(source.read_bytes().replace(b"\n", b"\r\n"))
    assert read_log(path)[0].sizes == read_log(source)[0].sizes


TEXT = """
# nThread 1
# size count type redop root time algbw busbw #wrong time algbw busbw #wrong
8 2 float sum -1 1.00 2.00 3.00 0 1.00 2.00 3.00 0
8 2 float sum -1
# Out of bounds values : 0 OK
===== a =====
R2CC_MODE=3
Config: iters=2, bytes=8
Iter 1/2 START: x
Iter   Time(ms)   a_RX
1 2 3
Replayed graph (4 GiB AllReduce)
run 1/2, re-captured as x:
Failure evidence: a cut during iteration 1
Verification: a on all 2 ranks: 0 wrong
TEST PASS
"""
LINES = TEXT.splitlines()


def outcome(read: Callable[[LogText], list[Measurement]], lines: list[str]) -> list[Measurement] | str:
    """The runs that a reader finds, or its complaint."""
    try:
        return read(log_text("run.log", "\n".join(lines)))
    except InputError as error:
        return str(error)


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=12))
def test_no_arrangement_of_known_lines_ends_in_anything_but_runs_or_one_line(lines: list[str]) -> None:
    for _, read in FORMS:
        result = outcome(read, lines)
        assert result
        if isinstance(result, str):
            assert result.startswith("run.log:")
            assert "\n" not in result
