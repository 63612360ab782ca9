"""The dataset of a run folder: at any time the finished cases of the log, each once, for pandas and DuckDB."""

import shutil
from itertools import pairwise
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.results import RunFolder, dataset, store
from r2cc_simai.results.case_log import CaseLog, Finished
from r2cc_simai.results.dataset import Dataset
from r2cc_simai.results.table import COLUMNS, WHOLE_COLUMNS

SCENARIO = {"name": "demo"}


def case(row, number: int) -> Finished:
    """A case of `number % 3` rows."""
    rows = [row(scenario=f"c{number}", seed=number if number % 2 else None, simulated=n / 3) for n in range(number % 3)]
    return Finished(f"case {number}", rows, 0.5)


def covered(folder: Path) -> list[tuple[int, int]]:
    """The bytes of the log that each part covers, as its metadata says."""
    parts = sorted((folder / "dataset").iterdir())
    assert [part.name for part in parts] == [f"part-{n:06}.parquet" for n in range(len(parts))]
    return [tuple(map(int, pq.read_schema(part).metadata[b"r2cc_simai.log_bytes"].split())) for part in parts]


def assert_whole(folder: Path) -> None:
    """Parts cover the log from its start to its end without gap or overlap, and hold its rows in its order."""
    log, places = CaseLog(folder / "rows.jsonl"), covered(folder)
    assert places[0][0] == 0
    assert places[-1][1] == log.end
    assert all(before[1] == after[0] for before, after in pairwise(places))
    rows = [row for key in log for row in log[key]]
    frame = pd.read_parquet(folder / "dataset")
    assert list(frame.columns) == list(COLUMNS)
    assert [*zip(frame.scenario, frame.seed.astype(object).where(frame.seed.notna(), None), strict=True)] == [
        (row.scenario, row.seed) for row in rows
    ]


def test_pandas_and_duckdb_read_it_from_the_start(tmp_path, row):
    """Before a case is finished there is a table without rows, with all columns and their types."""
    folder = RunFolder(tmp_path, SCENARIO)
    assert pd.read_parquet(tmp_path / "dataset").shape == (0, len(COLUMNS))
    query = f"select count(*), count(distinct scenario) from read_parquet('{tmp_path}/dataset/*.parquet')"
    assert duckdb.sql(query).fetchall() == [(0, 0)]
    folder.append_all([case(row, n) for n in range(6)])
    folder.flush()
    assert duckdb.sql(query).fetchall() == [(6, 4)]
    kinds = {c: str(kind) for c, kind in zip(COLUMNS, pq.read_table(tmp_path / "dataset").schema.types, strict=True)}
    assert {c for c, kind in kinds.items() if kind == "int64"} == set(WHOLE_COLUMNS)
    assert_whole(tmp_path)


def test_it_is_written_while_the_sweep_runs(tmp_path, row, monkeypatch):
    """A part every so many cases, or every so many seconds when something has finished; the rest at the end."""
    monkeypatch.setattr(store, "CASES_PER_PART", 4)
    folder = RunFolder(tmp_path, SCENARIO)
    for number in range(10):
        folder.append_all([case(row, number)])
    assert len(covered(tmp_path)) == 3  # the empty one, and two of four cases
    monkeypatch.setattr(store, "SECONDS_PER_PART", 0.0)
    folder.append_all([case(row, 10)])
    assert len(covered(tmp_path)) == 4
    folder.append_all([case(row, 11)])
    folder.finish([f"case {n}" for n in range(12)])
    assert_whole(tmp_path)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_kill_between_any_two_steps_leaves_what_the_next_run_completes(tmp_path_factory, row, data):
    """Cases are appended and parts written in any order; a kill can leave the log ahead of the parts, a torn last line,
    or a part that was not renamed. The next run has every finished case once."""
    path = tmp_path_factory.mktemp("run")
    RunFolder(path, SCENARIO)
    number = 0
    for _ in range(data.draw(st.integers(1, 4), label="runs")):
        folder = RunFolder(path, SCENARIO)
        for _ in range(data.draw(st.integers(0, 3), label="steps")):
            count = data.draw(st.integers(0, 3), label="cases")
            folder.append_all([case(row, n) for n in range(number, number + count)])
            number += count
            if data.draw(st.booleans(), label="a part"):
                folder.flush()
        (path / "dataset.new").write_bytes(b"torn")
        with (path / "rows.jsonl").open("ab") as log:
            log.write(data.draw(st.sampled_from([b"", b'{"case": "torn'])))
    assert len(RunFolder(path, SCENARIO).done()) == number
    assert_whole(path)


@pytest.mark.parametrize("damage", ["lost", "torn", "foreign", "of another log"])
def test_parts_that_do_not_agree_with_the_log_are_written_anew(tmp_path, row, damage):
    folder = RunFolder(tmp_path, SCENARIO)
    for n in range(9):
        folder.append_all([case(row, n)])
        folder.flush()
    part = tmp_path / "dataset" / "part-000004.parquet"
    if damage == "lost":
        part.unlink()
    elif damage == "torn":
        part.write_bytes(part.read_bytes()[:-9])
    elif damage == "foreign":
        (tmp_path / "dataset" / "notes.parquet").write_bytes(b"?")
    else:
        shutil.copy(tmp_path / "dataset" / "part-000002.parquet", part)
    RunFolder(tmp_path, SCENARIO)
    assert_whole(tmp_path)


def test_a_long_log_becomes_several_parts(tmp_path, row, monkeypatch):
    """No part covers much more of the log than fits in memory, however long nobody wrote one."""
    RunFolder(tmp_path, SCENARIO)
    log = CaseLog(tmp_path / "rows.jsonl")
    log.append([case(row, n) for n in range(60)])
    most = log.end // 5
    monkeypatch.setattr(dataset, "MOST_BYTES", most)
    Dataset(tmp_path, log).catch_up()
    sizes = [end - begin for begin, end in covered(tmp_path)]
    assert max(sizes) <= most
    assert len(sizes) >= 6
    assert_whole(tmp_path)
