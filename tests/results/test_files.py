"""The results table's files."""

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.results import COLUMNS, read_rows
from r2cc_simai.results.files import csv_text, write_csv, write_parquet

HEADER = ",".join(COLUMNS)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.028, "2.028"),
        (1 / 3, "0.333333333333"),
        (4.2e-05, "4.2e-05"),
        (0.1 + 0.2, "0.3"),
        (2523217920.0, "2523217920.0"),
        (2.0**50 + 1, "1125899906842625.0"),
        (0.0, "0.0"),
    ],
)
def test_numbers_have_12_significant_digits_and_whole_numbers_are_exact(row, value, text):
    line = csv_text([row(simulated=value, ideal=None)]).splitlines()[1]
    assert line.split(",")[COLUMNS.index("simulated")] == text


def test_a_line_of_the_csv(row):
    made = row(strategy="r2cc-allreduce:k=4,y=x", simulated=3.0, ideal=2.0, source="log 07")
    assert csv_text([made]) == (
        f"{HEADER}\n"
        'demo,h100x4,all_reduce,server0.nic0@0,,"r2cc-allreduce:k=4,y=x",flow,1073741824,time,s,'
        "3.0,2.0,50.0,,,,,log 07,\n"
    )


@pytest.mark.parametrize(("name", "write"), [("t.csv", write_csv), ("t.parquet", write_parquet)])
def test_what_is_written_is_read_again(tmp_path, row, name, write):
    rows = [
        row(simulated=None, ideal=None, error="why"),
        row(seed=7, simulated=0.25, measured=0.5, source='a "quoted", source'),
    ]
    write(rows, tmp_path / name)
    assert read_rows(tmp_path / name) == rows


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("scenario,time\n", "t.csv:1: unknown header"),
        (f"{HEADER}\na,b\n", "t.csv:2: 2 cells; expected 19"),
        (f"{HEADER}\n,,,,,,,8,time,s,fast,,,,,,,,\n", "t.csv:2: simulated: 'fast' is not a number"),
        (f"{HEADER}\n,,,,x,,,8,time,s,,,,,,,,,\n", "t.csv:2: seed: 'x' is not a number"),
        (f"{HEADER}\n,,,,,,,8.5,time,s,,,,,,,,,\n", "t.csv:2: bytes: '8.5' is not a number"),
    ],
)
def test_a_bad_csv_is_answered_with_file_line_and_column(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_rows(path)


def test_what_is_no_results_table_is_answered_with_what_would_be_one(tmp_path):
    (tmp_path / "t.txt").touch()
    (tmp_path / "t.parquet").write_bytes(b"no parquet")
    for path, message in (
        (tmp_path / "absent.csv", "no such file; expected a run folder"),
        (tmp_path / "t.txt", "not a results table"),
        (tmp_path / "t.parquet", "not a Parquet file"),
        (tmp_path, "not a run folder"),
    ):
        with pytest.raises(InputError, match=message):
            read_rows(path)
