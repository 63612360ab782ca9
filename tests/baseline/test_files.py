"""Baseline files: what is written is read back, a diff shows what changed, and a damaged file is one line."""

import random
import re
from collections.abc import Callable

import pytest

from r2cc_simai.baseline.files import COLUMNS, baseline_path, csv_text, find_baseline, read_baseline, write_baseline
from r2cc_simai.baseline.numbers import WATCHED, watched
from r2cc_simai.errors import InputError
from r2cc_simai.paths import baselines_dir

MUTATIONS = 100


@pytest.fixture(scope="module")
def numbers(row):
    """Return numbers with and without overhead, of fixed and of drawn patterns."""
    drawn = [row(seed=seed, strategy="nccl", simulated=2.0 + seed) for seed in range(3)]
    fixed = [row(strategy=f"r2cc-allreduce:k={k},y=opt", simulated=1 + 1 / k) for k in range(1, 20)]
    return watched([*fixed, *drawn, row(metric="stopped", ideal=None), row(metric="tokens_per_s", unit="1/s")], WATCHED)


def test_what_is_written_is_read_back(numbers, tmp_path):
    path = tmp_path / "deep" / "kept.csv"
    write_baseline(numbers, path)
    assert read_baseline(path) == numbers


def test_the_file_is_the_same_whatever_the_order_of_the_numbers(numbers):
    mixed = list(numbers)
    random.Random(1).shuffle(mixed)
    assert csv_text(mixed) == csv_text(numbers)


def test_a_changed_number_is_one_changed_line(row):
    """Lines are sorted by what names the number, one number a line: a diff shows nothing else."""
    before = csv_text(watched([row(strategy="a"), row(strategy="b"), row(strategy="c")], WATCHED)).splitlines()
    after = csv_text(watched([row(strategy="c"), row(strategy="b", simulated=9.0), row(strategy="a")], WATCHED))
    changed = [pair for pair in zip(before, after.splitlines(), strict=True) if pair[0] != pair[1]]
    assert changed == [
        (
            "demo,uniformx4,all_reduce,server0.nic0=0.5@0,,b,flow,1073741824,time,s,1.1,10.0",
            "demo,uniformx4,all_reduce,server0.nic0=0.5@0,,b,flow,1073741824,time,s,9.0,800.0",
        )
    ]


@pytest.mark.parametrize("path", sorted(baselines_dir().glob("*.csv")), ids=lambda path: path.stem)
def test_what_ships_is_as_update_writes_it(path):
    """In order, below 1 MB, and without a case that fails."""
    kept = read_baseline(path)
    assert path.read_text() == csv_text(kept)
    assert path.stat().st_size < 1_000_000
    assert not any(number.key.metric == "error" for number in kept)


def test_a_name_is_looked_for_in_the_current_folder_first(numbers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_baseline("paper").is_absolute()  # the one that ships
    write_baseline(numbers, baseline_path("paper"))
    assert str(find_baseline("paper")) == "reports/baselines/paper.csv"


@pytest.mark.parametrize("name", ["../paper", "", "a/b", ".hidden", "nul\0"])
def test_a_name_is_no_path(name):
    with pytest.raises(InputError, match="--name"):
        find_baseline(name)


def test_an_unknown_name_is_told_with_those_that_exist():
    with pytest.raises(InputError, match=r"--name papr: no reports/baselines/papr\.csv; there are: .*paper"):
        find_baseline("papr")


def _cell(column: str, *values: str) -> Callable[[str, random.Random], str]:
    """A mutation that puts one of `values` into a column of some line."""

    def mutate(text: str, draw: random.Random) -> str:
        lines = text.splitlines(keepends=True)
        chosen = draw.choice([i for i, line in enumerate(lines) if i and '"' not in line])
        cells = lines[chosen].rstrip("\n").split(",")
        cells[COLUMNS.index(column)] = draw.choice(values)
        lines[chosen] = ",".join(cells) + "\n"
        return "".join(lines)

    return mutate


def _line(change: Callable[[str, random.Random], str]) -> Callable[[str, random.Random], str]:
    def mutate(text: str, draw: random.Random) -> str:
        lines = text.splitlines()
        chosen = draw.randrange(len(lines))
        lines[chosen] = change(lines[chosen], draw)
        return "\n".join(lines) + "\n"

    return mutate


KINDS: tuple[Callable[[str, random.Random], str], ...] = (
    _cell("value", "", "nan", "inf", "1,1", "1_0", "0x1", "fast", "1e999", "--1", "1 s"),
    _cell("overhead_pct", "nan", "-inf", "10%", "1e9999"),
    _cell("bytes", "", "-1", "1.5", "4GiB", "1e9"),
    _cell("seeds", "all", "0..9", "1-", "-1", "3,5"),
    _cell("metric", ""),
    _cell("scenario", "", "\0", "a\x1bb"),
    _cell("strategy", ""),
    _line(lambda line, _: line + ","),
    _line(lambda line, _: line.rpartition(",")[0]),
    _line(lambda line, _: line + '"x'),
    _line(lambda _, __: "<<<<<<< HEAD"),
    _line(lambda _, __: ""),
    lambda text, draw: text[: draw.randrange(len(text))].rstrip("\n"),
    lambda text, draw: text.replace(draw.choice(COLUMNS), "other", 1),
    lambda text, _: text.partition("\n")[2],
    lambda text, _: text.partition("\n")[0] + "\n",
)


@pytest.mark.parametrize("seed", range(MUTATIONS))
def test_a_damaged_file_is_told_in_one_line(numbers, tmp_path, seed):
    """The line names the file and, where it is one line of it that is wrong, the number of that line."""
    draw = random.Random(seed)
    damaged = KINDS[seed % len(KINDS)](csv_text(numbers), draw)
    path = tmp_path / "kept.csv"
    path.write_bytes(damaged.encode())
    with pytest.raises(InputError) as caught:
        read_baseline(path)
    assert re.match(rf"{re.escape(str(path))}:(\d+:)? .+[;:(]", str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00binary", b"\n\n"])
def test_what_is_no_baseline_at_all_is_told(tmp_path, content):
    path = tmp_path / "kept.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"kept\.csv"):
        read_baseline(path)


def test_a_file_that_is_not_there_and_a_folder_are_told(tmp_path):
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(InputError, match="a baseline is wanted"):
            read_baseline(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can be written"):
        write_baseline([], tmp_path / "file" / "kept.csv")
