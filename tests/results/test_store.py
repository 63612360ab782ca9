"""The run folder: a killed sweep resumes without losing or repeating a finished case."""

import itertools
import json
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet import read_table

from r2cc_simai.errors import InputError
from r2cc_simai.results import RunFolder, read_rows
from r2cc_simai.results.case_log import CaseLog, Finished
from r2cc_simai.results.table import row_to_dict

SCENARIO = {"name": "demo", "seed": 7}
CASES = ["a", "b", "größer", "d"]


@pytest.fixture(scope="session")
def rows_of(row):
    """Return the function that simulates a case."""
    return lambda case: [
        row(scenario=case, simulated=len(case) / 3),
        row(scenario=case, strategy="hot-repair"),
    ]


def run(folder, rows_of, order, wall_s=0.5):
    """Run what is left of a sweep and return the cases that had to be simulated."""
    run_folder = RunFolder(folder, SCENARIO)
    left = [case for case in order if case not in run_folder.done()]
    for case in left:
        run_folder.append(case, rows_of(case), wall_s)
    run_folder.finish(CASES)
    return left


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_kill_at_any_byte_neither_loses_nor_repeats_a_finished_case(rows_of, data):
    with tempfile.TemporaryDirectory() as name:
        whole, killed = Path(name) / "whole", Path(name) / "killed"
        run(whole, rows_of, CASES)
        run(killed, rows_of, CASES)
        log = killed / "rows.jsonl"
        content = log.read_bytes()
        kept = data.draw(st.integers(0, len(content)), label="bytes on disk at the kill")
        log.write_bytes(content[:kept])

        finished = content[:kept].count(b"\n")
        assert list(RunFolder(killed, SCENARIO).done()) == CASES[:finished]
        assert run(killed, rows_of, CASES) == CASES[finished:]
        assert log.read_bytes() == content
        assert (killed / "results.csv").read_bytes() == (whole / "results.csv").read_bytes()


def test_the_csv_is_the_same_byte_for_byte_in_whatever_order_cases_finish(tmp_path, rows_of):
    for index, order in enumerate(itertools.permutations(CASES)):
        run(tmp_path / str(index), rows_of, order, wall_s=float(index))
    assert len({path.read_bytes() for path in tmp_path.glob("*/results.csv")}) == 1


def test_wall_times_stand_in_a_file_of_their_own(tmp_path, rows_of):
    run(tmp_path, rows_of, CASES, wall_s=0.25)
    assert (tmp_path / "timings.csv").read_text() == "case,wall_s\n" + "".join(f"{c},0.250000\n" for c in CASES)


@settings(max_examples=20, deadline=None)
@given(hurt=st.sets(st.sampled_from(CASES)))
def test_failed_cases_are_open_again_if_asked_for(rows_of, row, hurt):
    """Their rows are in no file; the others are, in the order in which they finished."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        folder = RunFolder(path, SCENARIO)
        for case in CASES:
            folder.append(case, [row(scenario=case, metric="error")] if case in hurt else rows_of(case), 0.5)
        folder.flush()
        well = [case for case in CASES if case not in hurt]
        assert list(RunFolder(path, SCENARIO).done()) == CASES
        again = RunFolder(path, SCENARIO, retry_failed=True)
        assert dict(again.done()) == {case: rows_of(case) for case in well}
        told = read_table(path / "dataset", columns=["scenario"])["scenario"].to_pylist()
        assert told == [case for case in well for _ in rows_of(case)]
        assert run(path, rows_of, CASES) == [case for case in CASES if case in hurt]
        assert read_table(path / "dataset").num_rows == len(read_rows(path)) == 2 * len(CASES)


def test_resuming_gives_back_the_rows_exactly(tmp_path, rows_of):
    run(tmp_path, rows_of, CASES)
    assert RunFolder(tmp_path, SCENARIO).done() == {case: rows_of(case) for case in CASES}


def test_a_folder_belongs_to_one_scenario(tmp_path, rows_of):
    run(tmp_path, rows_of, CASES)
    with pytest.raises(InputError, match="another scenario; choose another folder"):
        RunFolder(tmp_path, {**SCENARIO, "seed": 8})


def test_the_order_of_a_scenarios_keys_does_not_matter(tmp_path):
    RunFolder(tmp_path, SCENARIO)
    RunFolder(tmp_path, dict(reversed(SCENARIO.items())))


def test_rows_without_a_manifest_are_not_taken_over(tmp_path):
    (tmp_path / "rows.jsonl").write_text("")
    with pytest.raises(InputError, match=r"manifest\.json: missing"):
        RunFolder(tmp_path, SCENARIO)


def test_a_damaged_line_that_no_kill_explains_is_named(tmp_path, rows_of):
    run(tmp_path, rows_of, CASES)
    log = tmp_path / "rows.jsonl"
    log.write_bytes(b"?" + log.read_bytes())
    with pytest.raises(InputError, match=r"rows\.jsonl:1: not a finished case"):
        RunFolder(tmp_path, SCENARIO)


def test_a_second_sweep_in_the_same_folder_is_noticed(tmp_path, rows_of):
    first, second = RunFolder(tmp_path, SCENARIO), RunFolder(tmp_path, SCENARIO)
    first.append("a", rows_of("a"), 0.1)
    with pytest.raises(InputError, match="another sweep writes to this folder"):
        second.append("b", rows_of("b"), 0.1)


def test_a_case_is_stored_once(tmp_path, rows_of):
    folder = RunFolder(tmp_path, SCENARIO)
    folder.append("a", rows_of("a"), 0.1)
    with pytest.raises(ValueError, match="'a' is finished already"):
        folder.append("a", rows_of("a"), 0.1)


def test_an_unfinished_sweep_has_no_results_file_but_its_rows_can_be_read(tmp_path, rows_of):
    folder = RunFolder(tmp_path, SCENARIO)
    folder.append("b", rows_of("b"), 0.1)
    with pytest.raises(ValueError, match="3 cases are not finished"):
        folder.finish(CASES)
    assert not (tmp_path / "results.csv").exists()
    assert read_rows(tmp_path) == rows_of("b")


def test_a_case_may_have_no_rows(tmp_path):
    folder = RunFolder(tmp_path, SCENARIO)
    folder.append("a", [], 0.1)
    folder.finish(["a"])
    assert read_rows(tmp_path) == []


def test_the_parquet_file_holds_what_the_csv_holds(tmp_path, rows_of):
    run(tmp_path, rows_of, CASES)
    from_csv, from_parquet = read_rows(tmp_path / "results.csv"), read_rows(tmp_path / "results.parquet")
    assert [row_to_dict(r) for r in from_csv] == [row_to_dict(r) for r in from_parquet]
    assert [r.scenario for r in from_csv] == [case for case in CASES for _ in range(2)]


def test_several_cases_are_stored_at_once_or_not_at_all(tmp_path, rows_of):
    folder = RunFolder(tmp_path, SCENARIO)
    folder.append_all([Finished(case, rows_of(case), 0.1) for case in ("a", "b")])
    with pytest.raises(ValueError, match="'b' is finished already"):
        folder.append_all([Finished(case, rows_of(case), 0.1) for case in ("d", "b")])
    assert list(folder.done()) == list(RunFolder(tmp_path, SCENARIO).done()) == ["a", "b"]


def test_a_case_that_stands_twice_in_the_log_is_named(tmp_path, rows_of):
    run(tmp_path, rows_of, CASES)
    log = tmp_path / "rows.jsonl"
    log.write_bytes(log.read_bytes() + log.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(InputError, match=r"rows\.jsonl:5: case 'a' stands twice"):
        RunFolder(tmp_path, SCENARIO)


def test_rows_stay_on_disk_until_they_are_asked_for(tmp_path, row):
    """A folder of 300 cases with 40 rows each needs less memory than a tenth of its log."""
    many = [row(simulated=n / 7, ideal=None) for n in range(40)]
    folder = RunFolder(tmp_path, SCENARIO)
    folder.append_all([Finished(f"case {n}", many, 0.1) for n in range(300)])
    size = (tmp_path / "rows.jsonl").stat().st_size
    tracemalloc.start()
    again = CaseLog(tmp_path / "rows.jsonl")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(again) == 300
    assert held < size / 10


def test_the_manifest_says_how_the_sweep_went(tmp_path, rows_of):
    """Beside the scenario, which the folder still belongs to."""
    folder = RunFolder(tmp_path, SCENARIO)
    folder.append("a", rows_of("a"), 0.1)
    folder.finish(["a"], {"cases": 1})
    content = json.loads((tmp_path / "manifest.json").read_text())
    assert content["went"] == {"cases": 1}
    assert content["scenario"] == SCENARIO
    assert list(RunFolder(tmp_path, SCENARIO).done()) == ["a"]
