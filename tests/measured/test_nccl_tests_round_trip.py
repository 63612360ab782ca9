"""Whatever table nccl-tests could print is read back as it was."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.measured.log_text import log_text
from r2cc_simai.measured.nccl_tests import read_nccl_tests


@dataclass(frozen=True)
class Printed:
    """A row as nccl-tests prints it: times in us, bandwidths in GB/s."""

    count: int
    results: tuple[tuple[str, str, str, str], tuple[str, str, str, str]]


def printed_number(low: float, high: float) -> st.SearchStrategy[str]:
    return st.floats(low, high).map(lambda value: f"{value:.2f}" if value < 1e4 else f"{value:.0f}")


columns = st.tuples(
    printed_number(0.01, 9e7),
    printed_number(0, 999),
    printed_number(0, 999),
    st.sampled_from(["0", "3", "1e+06", "N/A"]),
)
rows = st.lists(
    st.builds(Printed, st.integers(1, 1 << 32), st.tuples(columns, columns)), min_size=1, max_size=8, unique=True
)
ITERATIONS = "  100.00   120.00   119.00     1.50"


def printed_table(table: list[Printed], per_iteration: bool) -> str:
    """The layout of nccl-tests, with 13 or 21 columns."""
    half = "time algbw busbw #wrong" + (" i_min i_max i_p99 i_cv%" if per_iteration else "")
    tail = ITERATIONS if per_iteration else ""
    lines = [
        "# Collective test starting: all_reduce_perf",
        f"#       size         count      type   redop    root {half} {half}",
    ]
    for row in table:
        line = f"{row.count * 4:12d}  {row.count:12d}  {'float':>8}  {'sum':>6}  {-1:6d}"
        for time, algbw, busbw, wrong in row.results:
            line += f"  {time:>7}  {algbw:>6}  {busbw:>6}  {wrong:>6}{tail}"
        lines.append(line)
    return "\n".join([*lines, "# Out of bounds values : 0 OK", ""])


@given(rows, st.booleans())
def test_a_printed_table_is_read_back(table: list[Printed], per_iteration: bool) -> None:
    (run,) = read_nccl_tests(log_text("run.log", printed_table(table, per_iteration)))
    assert [(size.bytes, size.count) for size in run.sizes] == [(row.count * 4, row.count) for row in table]
    for size, row in zip(run.sizes, table, strict=True):
        assert size.time_s == min(float(result[0]) for result in row.results) / 1e6
        for column, (time, algbw, busbw, wrong) in zip(size.columns, row.results, strict=True):
            assert column.time_s == float(time) / 1e6
            assert (column.algbw, column.busbw) == (float(algbw) * 1e9, float(busbw) * 1e9)
            assert column.wrong == (None if wrong == "N/A" else int(float(wrong)))
    n_flagged = sum(any(result[3] in ("3", "1e+06") for result in row.results) for row in table)
    assert len(run.warnings) == n_flagged
