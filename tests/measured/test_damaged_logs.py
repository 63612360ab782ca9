"""Logs that were cut, or into which several ranks wrote: what is certain is read, the rest is counted and said.

A reader of such a log must never invent a row, and must never lose one that it had when less of the log was there.
"""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from r2cc_simai.errors import InputError
from r2cc_simai.measured import Measurement, SizeResult
from r2cc_simai.measured.clean import clean_log
from r2cc_simai.measured.nccl_tests import read_nccl_tests

DATA = Path(__file__).parent / "data"
HEALTHY = (DATA / "healthy_13_columns.log").read_text()
TEXTS = [
    (DATA / f"{name}.log").read_text() for name in ("healthy_13_columns", "per_iteration_21_columns", "several_runs")
]
HEAD = f"# {'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}  {'root':>6}"
HALF = f"  {'time':>7}  {'algbw':>6}  {'busbw':>6}  {'#wrong':>6}"

Rows = Counter[SizeResult]


def printed(rank: int, n_rows: int = 9) -> str:
    """What one rank of a job of its own prints: sizes as all have them, times of its own."""
    lines = [
        "# nccl-tests version 2.20.0 nccl-headers=22304 nccl-library=22304",
        "# Collective test starting: all_reduce_perf",
        f"# nThread 1 nGpus 1 minBytes 1024 maxBytes {1024 << n_rows} step: 4(factor) graph: 0 unalign: 0",
        "# Using devices",
        f"#  Rank  0 Group  0 Pid   {1000 + rank} on     host{rank} device  0 [0000:01:00] Test GPU",
        "#",
        HEAD + HALF + HALF,
    ]
    for k in range(n_rows):
        size = 1024 << 2 * k
        line = f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {-1:6d}"
        for half in range(2):
            time_us = (20 + size / 2000) * (1 + 0.03 * rank + 0.01 * half)
            line += f"  {time_us:7.2f}" if time_us < 1e4 else f"  {time_us:7.0f}"
            line += f"  {size / time_us / 1e3:6.2f}  {size / time_us / 1e3:6.2f}  {0:6g}"
        lines.append(line)
    return "\n".join([*lines, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.43", "#", ""])


def rows_of(text: str) -> Rows:
    """All rows that are read, none where the text is refused in one line."""
    try:
        runs = read_nccl_tests(clean_log("run.log", text))
    except InputError as error:
        complaint = str(error)
    else:
        return Counter(size for run in runs for size in run.sizes)
    assert complaint.startswith("run.log:")
    assert "\n" not in complaint
    return Counter()


@pytest.mark.parametrize(("text", "step"), list(zip(TEXTS, (1, 3, 31), strict=True)))
def test_a_longer_part_of_a_log_yields_more_of_its_rows(text: str, step: int) -> None:
    """rows(text[:n]) <= rows(text[:n+1]) <= rows(text), cut at every `step` bytes."""
    before: Rows = Counter()
    start = text.index("#  ") if step == 1 else 0
    for end in [*range(start, len(text), step), len(text)]:
        found = rows_of(text[:end])
        assert before <= found
        before = found
    assert before == rows_of(text)


PIECES = st.lists(st.integers(1, 150), min_size=1, max_size=60)


def interleaved(texts: list[str], lengths: list[int], turns: list[int]) -> str:
    """The texts in one stream: each in turn gives so many of its next characters."""
    left, stream, k = list(texts), "", 0
    while any(left):
        who = turns[k % len(turns)] % len(texts)
        if not left[who]:
            who = next(i for i, text in enumerate(left) if text)
        n = lengths[k % len(lengths)]
        stream, left[who] = stream + left[who][:n], left[who][n:]
        k += 1
    return stream


@given(PIECES, st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(2, 3))
@example([118, 52], [0, 1], 2)
@example([85], [0, 1], 2)
@example([2, 118, 116], [0, 1, 0], 2)
@settings(deadline=None, max_examples=40)
def test_ranks_that_write_into_each_others_lines_invent_no_row(lengths: list[int], turns: list[int], n: int) -> None:
    texts = [printed(rank) for rank in range(n)]
    originals = sum((rows_of(text) for text in texts), Counter[SizeResult]())
    stream = interleaved(texts, lengths, turns)
    assert rows_of(stream) <= originals
    for end in range(0, len(stream), len(stream) // 5):
        assert rows_of(stream[:end]) <= rows_of(stream)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12)), max_size=30))
@settings(deadline=None, max_examples=40)
def test_ranks_that_take_turns_line_by_line_lose_no_row(turns: list[tuple[int, int]]) -> None:
    queues = [printed(rank).splitlines(keepends=True) for rank in range(3)]
    everything = sum((rows_of("".join(queue)) for queue in queues), Counter[SizeResult]())
    stream = []
    for rank, n in [*turns, (0, 99), (1, 99), (2, 99)]:
        stream += queues[rank][:n]
        del queues[rank][:n]
    assert rows_of("".join(stream)) == everything


@given(st.sampled_from(TEXTS), st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=12))
@settings(deadline=None)
def test_lines_that_are_lost_or_doubled_invent_no_row(text: str, changes: list[tuple[int, bool]]) -> None:
    lines = text.splitlines(keepends=True)
    for at, double in changes:
        k = at % len(lines)
        lines[k : k + 1] = [lines[k]] * 2 if double else []
        if not lines:
            return
    assert set(rows_of("".join(lines))) <= set(rows_of(text))


def test_every_line_twice_is_read_once() -> None:
    twice = "".join(line * 2 for line in HEALTHY.splitlines(keepends=True))
    (run,) = read_nccl_tests(clean_log("run.log", twice))
    assert Counter(run.sizes) == rows_of(HEALTHY)
    assert any("skipped: the same row again" in note for note in run.warnings)


@given(st.binary(max_size=300), st.integers(0, 10**6))
@settings(deadline=None)
def test_garbage_in_a_log_is_never_a_row_nor_a_crash(garbage: bytes, at: int) -> None:
    k = at % len(HEALTHY)
    spoilt = HEALTHY[:k] + "\n" + garbage.decode("latin-1") + "\n" + HEALTHY[k:]
    assert set(rows_of(spoilt)) <= set(rows_of(HEALTHY))


TAGS = (
    "{line}\r",
    "\x1b[32m{line}\x1b[0m",
    "\x1b[1;31m\x1b[K{line}",
    "2031-02-03T04:05:{k:02d}.123456Z {line}",
    "2031-02-03 04:05:{k:02d},123 {line}",
    "[2031-02-03 04:05:{k:02d}] {line}",
    "[04:05:{k:02d}] {line}",
    "Feb  3 04:05:{k:02d} {line}",
    "Mon Feb  3 04:05:{k:02d} 2031[1,0]<stdout>:{line}",
    "[prterun-box-17@1,0]<stdout>: {line}",
    "[0] {line}",
    "  7: {line}",
    "worker-0: {line}",
    "[pod/worker-0/nccl] {line}",
    "worker-0  | {line}",
    "2031-02-03T04:05:{k:02d}Z [1,0]<stdout>:{line}",
)


@pytest.mark.parametrize("tag", TAGS)
def test_what_launchers_and_terminals_put_around_lines_changes_nothing(tag: str) -> None:
    (plain,) = read_nccl_tests(clean_log("run.log", HEALTHY))
    lines = [tag.format(k=k, line=line) + "\n" for k, line in enumerate(HEALTHY.splitlines())]
    (found,) = read_nccl_tests(clean_log("run.log", "".join(lines)))
    assert (found.sizes, found.host_names, found.n_ranks) == (plain.sizes, plain.host_names, plain.n_ranks)
    assert found.source == plain.source
    assert found.warnings == ()


def read_text(text: str) -> Measurement:
    (run,) = read_nccl_tests(clean_log("run.log", text))
    return run


def test_a_message_of_nccl_in_the_middle_of_a_row() -> None:
    """The row's beginning stands before it, its end on a line of its own."""
    row = next(line for line in HEALTHY.splitlines() if line.lstrip().startswith("65536"))
    for x in (52, 60, 85, len(row)):
        torn = row[:x] + "alder:1001:1007 [0] NCCL INFO one\nbirch:2001:2007 [1] NCCL WARN two\n" + row[x:]
        run = read_text(HEALTHY.replace(row, torn))
        assert Counter(run.sizes) == rows_of(HEALTHY)
        assert run.warnings == ()


def test_a_message_that_never_gives_the_row_back() -> None:
    row = next(line for line in HEALTHY.splitlines() if line.lstrip().startswith("65536"))
    run = read_text(HEALTHY.replace(row, row[:60] + "alder:1001:1007 [0] NCCL INFO one"))
    assert [size.bytes for size in run.sizes] == [1024, 4 << 20]
    assert run.warnings == ("run.log: line 18 skipped: row cut short",)


def test_a_message_without_a_line_end_before_a_row() -> None:
    run = read_text(HEALTHY.replace("       65536  ", "warning: slow link       65536  "))
    assert Counter(run.sizes) == rows_of(HEALTHY)


def test_a_table_without_its_end_is_said_with_what_was_read() -> None:
    text = HEALTHY[: HEALTHY.index("# Out of bounds")]
    run = read_text(text)
    assert Counter(run.sizes) == rows_of(HEALTHY)
    assert run.warnings == (
        "run.log:14: the table has no end ('# Out of bounds values'): 3 rows read, the last of 4194304 bytes",
    )
    run = read_text(text[:-20])
    assert run.warnings[1] == "run.log: line 19 skipped: row cut short"


def test_a_cut_value_is_no_value() -> None:
    """`#wrong 12` cut to `1` is a row by its form."""
    text = HEALTHY.replace("2.10    3.15       0", "2.10    3.15      12")
    assert len(read_text(text[: text.index("      12\n") + 7]).sizes) == 2
    assert len(read_text(text[: text.index("      12\n") + 9]).sizes) == 3


def test_a_launcher_that_says_how_the_run_was_killed() -> None:
    text = HEALTHY[: HEALTHY.index("     4194304 ")] + "\n[nccl-tests] rc=137\n"
    assert read_text(text).warnings[0] == "run.log:20: the run ended with exit code 137"


def test_two_ranks_that_ran_alone_are_said_so() -> None:
    queues = [printed(rank).splitlines(keepends=True) for rank in range(2)]
    run = read_text("".join(line for pair in zip(*queues, strict=True) for line in pair))
    assert (run.n_nodes, run.n_ranks, run.host_names) == (1, 1, ("host0", "host1"))
    assert run.warnings == (
        "run.log:13: 2 headings: the rows of several ranks stand in one table",
        "run.log:13: 2 processes list the same ranks: each ran on its own (nccl-tests without MPI?)",
    )


def test_many_skipped_lines_are_summed_up() -> None:
    rows = "".join(f"{1 << k:12d}  {1 << k:12d}     float     sum      -1    20.25\n# x\n" for k in range(9))
    run = read_text(HEALTHY.replace("# Out of bounds", rows + "# Out of bounds"))
    assert run.warnings == ("run.log: 9 lines between 20 and 36 skipped: row cut short",)


def test_rows_without_a_heading_are_refused_by_name() -> None:
    text = HEALTHY[HEALTHY.index("        1024 ") :]
    with pytest.raises(InputError, match=r"run\.log:1: expected the heading of the table"):
        read_nccl_tests(clean_log("run.log", text))


def test_a_long_line_without_an_end_is_read_in_no_time() -> None:
    """No pattern looks at a line again and again."""
    for letter in ("a", "1 ", "1 2 float sum -1 ", "N/A ", "[", "\x1b]"):
        rows_of(HEALTHY[: HEALTHY.index("# Out")] + letter * (200_000 // len(letter)) + "\n")
