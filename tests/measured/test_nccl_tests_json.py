"""The JSON that nccl-tests writes with -J."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.measured import FailedNic, read_log

DATA = Path(__file__).parent / "data" / "json_output.json"


def edited(tmp_path: Path, edit: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of the file with one change."""
    document = json.loads(DATA.read_text())
    edit(document)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document))
    return path


def test_a_run_with_its_environment() -> None:
    (run,) = read_log(DATA)
    assert run.source == f"{DATA}:results"
    assert (run.collective, run.mode) == ("all_reduce", "r2cc-allreduce:k=8")
    assert (run.host_names, run.nic_names) == (("alder", "birch"), ("hca0", "hca1"))
    assert (run.n_nodes, run.n_ranks, run.failed) == (2, 2, FailedNic(1, "hca0"))


def test_a_row_holds_both_columns_and_the_better_one_counts() -> None:
    (row,) = read_log(DATA)[0].sizes
    assert (row.bytes, row.count, row.dtype, row.redop, row.root) == (1 << 20, 1 << 18, "float", "sum", -1)
    assert row.out_of_place is not None
    assert row.in_place is not None
    assert (row.out_of_place.time_s, row.out_of_place.wrong) == (410.25e-6, 0)
    assert (row.in_place.time_s, row.in_place.wrong) == (400.5e-6, None)
    assert (row.time_s, row.algbw) == (400.5e-6, 2.618e9)


def test_a_missing_column_leaves_the_other(tmp_path: Path) -> None:
    (run,) = read_log(edited(tmp_path, lambda document: document["results"][0].update(in_place=None)))
    assert run.sizes[0].in_place is None
    assert run.sizes[0].time_s == 410.25e-6


def test_wrong_elements_are_kept_and_flagged(tmp_path: Path) -> None:
    path = edited(tmp_path, lambda document: document["results"][0]["in_place"].update(nwrong=7.0))
    (run,) = read_log(path)
    assert run.sizes[0].wrong == 7
    assert run.warnings == (f"{path}: 1048576 bytes: 7 wrong elements",)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.pop("results"), "expected key 'results'"),
        (lambda d: d["results"].clear(), "expected at least one entry in 'results'"),
        (lambda d: d["results"][0].pop("size"), "expected key 'size'"),
        (
            lambda d: d["results"][0]["in_place"].update(time="nan"),
            "expected values as nccl-tests -J writes them",
        ),
        (lambda d: d["results"][0].update(in_place=None, out_of_place=None), "size 1048576 has no result"),
        (lambda d: d.update(results=3), "expected key 'results' with a list"),
        (lambda d: d.update(args=["./mine"]), "expected the program's name"),
        (lambda d: d.update(env=["R2CC_MODE=7"]), "expected R2CC_MODE=0, 1, 2 or 3"),
        (lambda d: d["env"].append("R2CC_FAILED_NODE=2"), "expected R2CC_FAILED_NODE below 2, found 2"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    tmp_path: Path, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = edited(tmp_path, edit)
    with pytest.raises(InputError, match=message) as caught:
        read_log(path)
    assert str(caught.value).startswith(f"{path}:1: ")
    assert "\n" not in str(caught.value)


def test_the_file_of_a_run_that_was_killed_before_its_first_result_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "killed.json"
    path.write_text(DATA.read_text()[:900])
    with pytest.raises(InputError, match=r"killed\.json:\d+: expected the JSON of nccl-tests -J, complete"):
        read_log(path)
