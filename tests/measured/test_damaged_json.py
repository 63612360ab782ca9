"""JSON of nccl-tests that breaks off, holds what is no JSON, or is several files in one."""

from collections import Counter
from pathlib import Path

from r2cc_simai.errors import InputError
from r2cc_simai.measured import SizeResult, read_log
from r2cc_simai.measured.nccl_tests_json import read_nccl_tests_json

DATA = Path(__file__).parent / "data"


def rows_of(text: str) -> Counter[SizeResult]:
    """All results that are read, none where the text is refused in one line."""
    try:
        runs = read_nccl_tests_json("run.json", text)
    except InputError as error:
        complaint = str(error)
    else:
        return Counter(size for run in runs for size in run.sizes)
    assert complaint.startswith("run.json:")
    assert "\n" not in complaint
    return Counter()


def test_a_longer_part_of_a_json_file_yields_more_of_its_results() -> None:
    text = several_results()
    before: Counter[SizeResult] = Counter()
    for end in range(1, len(text) + 1):
        found = rows_of(text[:end])
        assert before <= found
        before = found
    assert len(before) == 3


def several_results() -> str:
    """The JSON of a run with three results."""
    text = (DATA / "json_output.json").read_text()
    start, end = text.index('  {"size"'), text.index('"AllReduce"}') + len('"AllReduce"}')
    entry = text[start:end]
    more = [entry.replace("410.25", f"{410 * k}.5").replace("1048576", str(k << 20)) for k in (2, 4)]
    return text[:end] + ",\n" + ",\n".join(more) + text[end:]


def test_json_of_a_run_that_ended_early(tmp_path: Path) -> None:
    text = several_results()
    path = tmp_path / "killed.json"
    path.write_text(text[: text.rindex('"in_place"')])
    (run,) = read_log(path)
    assert [size.bytes >> 20 for size in run.sizes] == [1, 2]
    assert run.warnings == (
        f"{path}: the run did not end (no 'out_of_bounds'): 2 results read, the last of 2097152 bytes",
        f"{path}: line 18 skipped: entry of 'results' cut short",
    )


def test_json_with_a_value_that_is_none(tmp_path: Path) -> None:
    """nccl-tests prints an infinite bandwidth as `inf`, which JSON does not know."""
    path = tmp_path / "inf.json"
    path.write_text(several_results().replace("820.5", "inf"))
    (run,) = read_log(path)
    assert [size.bytes >> 20 for size in run.sizes] == [1, 4]
    assert [note.split(": ", 1)[1] for note in run.warnings] == ["line 14 skipped: entry of 'results' cut short"]


def test_several_json_runs_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "both.json"
    one, other = several_results(), (DATA / "json_output.json").read_text()
    path.write_text(one[: one.rindex('"out_of_bounds"')] + other)
    first, second = read_log(path)
    assert (len(first.sizes), len(second.sizes)) == (3, 1)
    assert "the run did not end" in first.warnings[0]


def test_json_of_processes_with_several_gpus_counts_them(tmp_path: Path) -> None:
    """One entry a process: ranks 0 and 8 of 16, with eight GPUs each."""
    text = (DATA / "json_output.json").read_text().replace('"ngpus": 1', '"ngpus": 8').replace('"rank": 1', '"rank": 8')
    path = tmp_path / "eight.json"
    path.write_text(text)
    assert read_log(path)[0].n_ranks == 16


def test_json_without_any_end_to_its_brackets_is_refused() -> None:
    for text in ("{" * 100_000, '{"results": [' + "[" * 100_000, '{"version": 2, "args": ["' + "x" * 100_000):
        assert rows_of(text) == Counter()
