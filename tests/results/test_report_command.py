"""`r2cc-simai report`: the report of a run anew, of an unfinished one, and against another run or a baseline."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from r2cc_simai.baseline.files import write_baseline
from r2cc_simai.baseline.numbers import WATCHED, watched
from r2cc_simai.cli.main import run
from r2cc_simai.results import Row, RunFolder
from r2cc_simai.results.files import write_csv

MakeRow = Callable[..., Row]
TITLE = "My sweep"


def cases(row: MakeRow, factor: float = 1.0) -> dict[str, list[Row]]:
    """Return two cases of two strategies; the times of R2CC-AllReduce multiplied by a factor."""
    healthy = {"pattern": "server0.nic1@0", "cluster": "h100"}
    return {
        "a": [row(**healthy, simulated=1.25)],
        "b": [
            row(**healthy, strategy="r2cc-allreduce", simulated=1.2 * factor),
            row(**healthy, strategy="r2cc-allreduce", metric="busbw", unit="B/s", simulated=1 / factor),
        ],
    }


def sweep(folder: Path, row: MakeRow, finish: bool = True, factor: float = 1.0) -> Path:
    """Write a run folder as a sweep does."""
    stored = RunFolder(folder, {"name": "mine", "content": {"title": TITLE}})
    for key, rows in cases(row, factor).items():
        stored.append(key, rows, 0.5)
    if finish:
        stored.finish(list(cases(row)))
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_report_is_made_anew_byte_for_byte(tmp_path: Path, row: MakeRow) -> None:
    """The title is the scenario's; the same run gives the same files on every call, and the run stays what it is."""
    folder = sweep(tmp_path / "run", row)
    before = files(folder)
    assert run(["report", str(folder)]) == 0
    first = files(folder)
    assert run(["report", str(folder)]) == 0
    assert files(folder) == first
    assert {name: first[name] for name in before} == before
    assert set(first) - set(before) >= {"report.html", "report.md"}
    assert first["report.md"].decode().startswith(f"# {TITLE}\n")


def test_a_report_elsewhere_brings_the_table_along(tmp_path: Path, row: MakeRow) -> None:
    """`--out` gets the results table as CSV and Parquet too; `--title` replaces the title."""
    folder = sweep(tmp_path / "run", row)
    out = tmp_path / "out"
    assert run(["report", str(folder), "--out", str(out), "--title", "Else"]) == 0
    assert (out / "results.csv").read_bytes() == (folder / "results.csv").read_bytes()
    assert (out / "results.parquet").is_file()
    assert (out / "report.md").read_text().startswith("# Else\n")
    assert not (folder / "report.md").exists()


def test_an_unfinished_run_has_a_report_of_the_rows_so_far_that_says_so(tmp_path: Path, row: MakeRow) -> None:
    """What is on disk is shown, and nothing is written that would make the run look finished."""
    folder = sweep(tmp_path / "run", row, finish=False)
    assert run(["report", str(folder)]) == 0
    text = (folder / "report.md").read_text()
    assert text.index("not finished: here are the results of the 2 cases") < text.index("A NIC, cable or port")
    assert not (folder / "results.csv").exists()


def test_a_table_alone_has_a_report_too(tmp_path: Path, row: MakeRow) -> None:
    """A results table outside a run folder: beside it, under its name."""
    write_csv([r for rows in cases(row).values() for r in rows], tmp_path / "mine.csv")
    assert run(["report", str(tmp_path / "mine.csv")]) == 0
    assert (tmp_path / "report.md").read_text().startswith("# Report of mine\n")


def against(tmp_path: Path, row: MakeRow, other: str) -> str:
    folder = tmp_path / "run"
    if not folder.exists():
        sweep(folder, row)
    assert run(["report", str(folder), "--out", str(tmp_path / "out"), "--against", other]) == 0
    return (tmp_path / "out" / "report.md").read_text()


def test_what_differs_from_another_run_stands_on_top(tmp_path: Path, row: MakeRow) -> None:
    """R2CC-AllReduce was 2% slower before: from, to and change by number; bandwidths say the same and are left out."""
    text = against(tmp_path, row, str(sweep(tmp_path / "other", row, factor=1.02)))
    assert text.index("1 of 2 numbers differs.") < text.index("## Against") < text.index("## Overhead at a glance")
    assert "| R2CC-AllReduce k=4 | 1 | 1 | 0 | 1 | −1.96% |" in text
    assert "| 1.224 s (overhead 22.4%) | 1.200 s (overhead 20.0%) | −1.96% |" in text


def test_nothing_differs_is_one_sentence(tmp_path: Path, row: MakeRow) -> None:
    """Against a run that is the same: no table."""
    text = against(tmp_path, row, str(sweep(tmp_path / "same", row)))
    section = text[text.index("## Against") :].split("\n## ")[0]
    assert "nothing differs, 2 numbers compared." in section
    assert "|" not in section


def test_against_a_baseline_by_its_file(tmp_path: Path, row: MakeRow) -> None:
    """Numbers that only the run or only the baseline has are counted by scenario and strategy."""
    rows = [*cases(row, 1.02)["b"], row(strategy="optcc", cluster="h100", pattern="server0.nic1@0")]
    write_baseline(watched(rows, WATCHED), tmp_path / "old.csv")
    text = against(tmp_path, row, str(tmp_path / "old.csv"))
    assert "1 of 1 number differs, 1 number only in this run, 1 number only in" in text
    assert "only in this run | only in the other" in text
    assert "| demo | OptCC | flow | 0 | 1 |" in text


def test_drawn_numbers_are_compared_as_means_over_their_seeds(tmp_path: Path, row: MakeRow) -> None:
    """(1 + 2 + 3) / 3 = 2 against (1 + 2) / 2 = 1.5, and the seeds are said."""
    for name, count in (("run", 3), ("old", 2)):
        folder = RunFolder(tmp_path / name, {"content": {"title": TITLE}})
        folder.append("a", [row(seed=seed, simulated=1.0 + seed) for seed in range(count)], 1.0)
        folder.finish(["a"])
    text = against(tmp_path, row, str(tmp_path / "old"))
    assert "(seeds 0-1, now 0-2)" in text
    assert "+33.33%" in text


def test_runs_of_different_things_have_nothing_to_compare(tmp_path: Path, row: MakeRow) -> None:
    """Said in one sentence, not by a table of everything."""
    folder = RunFolder(tmp_path / "old", {"content": {"title": TITLE}})
    folder.append("a", [row(scenario="other")], 1.0)
    folder.finish(["a"])
    assert "no number of this run is in it" in against(tmp_path, row, str(tmp_path / "old"))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nowhere"], "nowhere"),
        (["RUN", "--against", "nothing-of-this-name"], "nothing-of-this-name"),
        (["RUN", "--against", "RUN/manifest.json"], "manifest.json"),
        (["RUN", "--out", "RUN/manifest.json/x"], "manifest.json"),
        (["EMPTY"], "empty"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, row: MakeRow, capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    """Exit code 2, one line on stderr that names the file or the option."""
    (tmp_path / "empty").mkdir()
    folder = sweep(tmp_path / "run", row)
    texts = [a.replace("RUN", str(folder)).replace("EMPTY", str(tmp_path / "empty")) for a in arguments]
    assert run(["report", *texts]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert named in error


def test_a_manifest_without_a_title_is_named(tmp_path: Path, row: MakeRow, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says what is missing and what to do."""
    folder = sweep(tmp_path / "run", row)
    (folder / "manifest.json").write_text(json.dumps({"scenario": {}}))
    assert run(["report", str(folder)]) == 2
    assert "manifest.json: scenario.content.title is missing" in capsys.readouterr().err
    assert run(["report", str(folder), "--title", "t"]) == 0
