"""The text of nccl-tests, as a run prints it."""

from pathlib import Path

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.measured import FailedNic, read_log

DATA = Path(__file__).parent / "data"


def test_a_row_holds_both_columns_and_the_better_one_counts() -> None:
    (run,) = read_log(DATA / "healthy_13_columns.log")
    small, middle, large = run.sizes
    assert (large.bytes, large.count, large.dtype, large.redop, large.root) == (
        4 << 20,
        1 << 20,
        "float",
        "sum",
        -1,
    )
    assert large.out_of_place is not None
    assert large.in_place is not None
    assert (large.out_of_place.time_s, large.in_place.time_s) == (2500e-6, 2000e-6)
    assert (large.time_s, large.algbw, large.busbw) == (2000e-6, 2.10e9, 3.15e9)
    assert (small.time_s, middle.time_s) == (20.25e-6, 64e-6)
    assert large.in_place.wrong == 0


def test_what_ran_comes_from_the_lines_around_the_table() -> None:
    (run,) = read_log(DATA / "healthy_13_columns.log")
    assert run.source == f"{DATA / 'healthy_13_columns.log'}:14"
    assert run.collective == "all_reduce"
    assert run.host_names == ("alder", "birch")
    assert run.nic_names == ("hca0", "hca1")
    assert (run.n_nodes, run.n_ranks) == (2, 4)
    assert run.warnings == ()


def test_a_healthy_run_has_no_failure_even_where_the_environment_names_one() -> None:
    (run,) = read_log(DATA / "healthy_13_columns.log")
    assert (run.mode, run.failed) == ("nccl", None)


def test_21_columns_and_a_timestamp_are_read_by_their_heading() -> None:
    (run,) = read_log(DATA / "per_iteration_21_columns.log")
    (row,) = run.sizes
    assert run.collective == "all_gather"
    assert (run.mode, run.nic_names, run.n_nodes, run.n_ranks) == ("nccl", (), 1, 2)
    assert row.out_of_place is not None
    assert row.in_place is not None
    assert (row.out_of_place.time_s, row.in_place.time_s) == (125e-6, 128e-6)
    assert row.out_of_place.busbw == pytest.approx(4.19e9)
    assert row.in_place.busbw == pytest.approx(4.10e9)
    assert row.out_of_place.wrong is None, "N/A: this run did not check its results"


def test_runs_one_after_another_are_told_apart() -> None:
    runs = read_log(DATA / "several_runs.log")
    assert [(run.section, run.mode, run.sizes[0].time_s) for run in runs] == [
        ("plain", "nccl", 0.5),
        ("moved", "hot-repair", 0.99),
        ("spread", "balance", 0.98),
        ("two chunks", "r2cc-allreduce:k=2", 0.9),
        ("chunks unsaid", "r2cc-allreduce:k=4", 0.85),
    ]
    assert [run.failed for run in runs] == [None, *[FailedNic(1, "hca1")] * 4]
    assert runs[2].source.endswith("several_runs.log:60 (spread)")


def test_wrong_elements_are_kept_and_flagged() -> None:
    (run,) = read_log(DATA / "wrong_elements.log")
    assert run.sizes[0].wrong == 12
    assert [warning.split(": ", 1)[1] for warning in run.warnings] == [
        "1073741824 bytes: 12 wrong elements",
        "the run ended with exit code 1",
    ]


def edited(tmp_path: Path, old: str, new: str, source: str = "healthy_13_columns.log") -> Path:
    """A copy of a log with one change."""
    text = (DATA / source).read_text()
    assert old in text
    path = tmp_path / "run.log"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv"])
def test_the_program_names_the_collective(tmp_path: Path, name: str) -> None:
    (run,) = read_log(edited(tmp_path, "all_reduce_perf", f"{name}_perf"))
    assert run.collective == name


def test_without_a_program_name_a_rootless_reduction_is_known_by_its_bus_bandwidth(tmp_path: Path) -> None:
    (run,) = read_log(edited(tmp_path, "all_reduce_perf", ""))
    assert run.collective == "all_reduce", "busbw = 2(n-1)/n algbw"
    (run,) = read_log(edited(tmp_path, "all_reduce_perf", "unsaid", source="wrong_elements.log"))
    assert run.collective == "all_reduce"


def test_without_a_program_name_a_gather_is_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.log:11: expected the program's name \(such as all_reduce_perf\)"):
        read_log(edited(tmp_path, "all_gather_perf", "", source="per_iteration_21_columns.log"))


def test_the_prefixes_of_launchers_are_dropped(tmp_path: Path) -> None:
    text = (DATA / "healthy_13_columns.log").read_text()
    (plain,) = read_log(DATA / "healthy_13_columns.log")
    for prefix in ("[1,0]<stdout>:", "[1,0]<stdout>: ", "0: "):
        path = tmp_path / "tagged.log"
        path.write_text("".join(prefix + line + "\n" for line in text.splitlines()))
        (tagged,) = read_log(path)
        assert tagged.sizes == plain.sizes
        assert tagged.host_names == plain.host_names


def test_a_failed_nic_may_be_given_by_its_index(tmp_path: Path) -> None:
    path = edited(tmp_path, "R2CC_FAILED_HCA=hca1", "R2CC_FAILED_HCA=0", source="several_runs.log")
    assert read_log(path)[1].failed == FailedNic(1, "hca0")


def test_a_degraded_run_that_names_no_nic_is_flagged(tmp_path: Path) -> None:
    (run,) = read_log(edited(tmp_path, "R2CC_MODE=0", "R2CC_MODE=2 R2CC_FAILED_HCA=", source="healthy_13_columns.log"))
    assert run.failed == FailedNic(1, "hca1"), "the last value of a variable counts"
    path = tmp_path / "none.log"
    path.write_text(
        (DATA / "healthy_13_columns.log").read_text().replace("R2CC_MODE=0", "R2CC_MODE=2").replace("FAILED_HCA", "X")
    )
    (run,) = read_log(path)
    assert run.failed is None
    assert run.warnings == (f"{path}:1: balance, but no failed NIC is named",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("R2CC_MODE=0", "R2CC_MODE=9", r":1: expected R2CC_MODE=0, 1, 2 or 3, found '9'"),
        (
            "R2CC_MODE=0",
            "R2CC_MODE=3 R2CC_AR_STAGE2_CHUNKS=0",
            r":1: expected R2CC_AR_STAGE2_CHUNKS of at least 1",
        ),
        (
            "R2CC_MODE=0",
            "R2CC_MODE=3 R2CC_AR_STAGE2_CHUNKS=x",
            r":1: expected R2CC_AR_STAGE2_CHUNKS to be a whole",
        ),
        (
            "MODE=0",
            "MODE=2 NCCL_IB_HCA=a,b NCCL_IB_HCA=",
            r":1: expected R2CC_FAILED_HCA to be one of hca0, hca1",
        ),
        (
            "nodes=2 ranks=4",
            "nodes=2 ranks=8",
            r":14: expected the 8 ranks on 2 nodes that the log announces",
        ),
        ("busbw  #wrong     time", "busbw     time", r":14: expected the columns size count type redop root"),
    ],
)
def test_a_log_that_does_not_fit_is_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = edited(tmp_path, old, new)
    if "NCCL_IB_HCA=a,b" in new:
        path.write_text(path.read_text().replace("R2CC_FAILED_HCA=hca1", "R2CC_FAILED_HCA=hca7"))
    with pytest.raises(InputError, match=message) as caught:
        read_log(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_failed_node_must_be_one_of_the_run(tmp_path: Path) -> None:
    """A run whose settings have no meaning is left out, and named; the others are read."""
    path = edited(tmp_path, "R2CC_FAILED_NODE=1", "R2CC_FAILED_NODE=2", source="several_runs.log")
    (run,) = read_log(path)
    assert run.section == "plain"
    assert len(run.warnings) == 4
    assert all("run skipped: " in one and "expected R2CC_FAILED_NODE below 2, found 2" in one for one in run.warnings)


@pytest.mark.parametrize("n_lines", range(2, 17))
def test_a_log_cut_short_before_its_first_row_is_refused(tmp_path: Path, n_lines: int) -> None:
    lines = (DATA / "healthy_13_columns.log").read_text().splitlines()[:n_lines]
    path = tmp_path / "short.log"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"short\.log:\d+: expected (a whole row|13 values)"):
        read_log(path)


def test_a_row_that_is_not_as_the_heading_says_is_skipped_and_named(tmp_path: Path) -> None:
    for old, new, reason in (
        ("    2.10    3.15       0", "", "row cut short"),
        ("2500.0", "25oo.0", "expected numbers (or N/A) in the result columns and the root"),
        ("2500.0", "   nan", "expected numbers (or N/A) in the result columns and the root"),
        ("2500.0", "    -1", "expected numbers (or N/A) in the result columns and the root"),
    ):
        path = edited(tmp_path, old, new)
        (run,) = read_log(path)
        assert [size.bytes for size in run.sizes] == [1024, 65536]
        assert run.warnings == (f"{path}:line 19 skipped: {reason}".replace(":line", ": line"),)


def test_a_second_run_cut_short_leaves_the_first(tmp_path: Path) -> None:
    text = (DATA / "several_runs.log").read_text()
    path = tmp_path / "short.log"
    second = text.index("===== moved")
    path.write_text(text[: text.index("# Using devices", second)])
    (run,) = read_log(path)
    assert run.section == "plain"
    assert [one.split(": ", 1)[1] for one in run.warnings] == ["the log ends before the table of its last run"]


def test_a_table_that_breaks_off_before_the_next_run_keeps_its_rows(tmp_path: Path) -> None:
    text = (DATA / "several_runs.log").read_text()
    path = tmp_path / "broken.log"
    path.write_text(text.replace("# Out of bounds values", "# lost", 1))
    runs = read_log(path)
    assert [run.sizes for run in runs] == [run.sizes for run in read_log(DATA / "several_runs.log")]
    assert [run.mode for run in runs] == [run.mode for run in read_log(DATA / "several_runs.log")]
    assert (
        runs[0].warnings[0].endswith("has no end ('# Out of bounds values'): 1 row read, the last of 1073741824 bytes")
    )


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    lines = (DATA / "per_iteration_21_columns.log").read_text().splitlines(keepends=True)
    path = tmp_path / "rows.log"
    path.write_text("".join(line for line in lines if not line.startswith("     1048576")))
    with pytest.raises(InputError, match=r"rows\.log:11: expected a whole row of results in the table"):
        read_log(path)
