"""Mutated scenario files: each one is refused with one line and exit code 2, or still makes sense."""

import copy
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from r2cc_simai.cli.main import run
from r2cc_simai.errors import SimaiError
from r2cc_simai.paths import scenarios_dir
from r2cc_simai.runners import sweep

REFUSED = 200
MOST_TRIES = 420
LIMIT_S = 30  # of one file
VALID = 99

MATRIX: dict[str, Any] = {
    "title": "A matrix",
    "matrix": [
        {
            "scenario": "month",
            "clusters": ["h100", "h100x4"],
            "workloads": [
                {"collective": "all_reduce", "size": "1GiB", "iterations": 3, "warmup": 1, "graph": False},
                {
                    "name": "gpt",
                    "megatron": {"model": "gpt3-2.7b", "micro_batch_size": 8, "global_batch_size": 256},
                    "gpu": "H100",
                    "mfu_scale": 0.9,
                    "nic_rate_gbps": 100,
                    "backups_per_nic": 2,
                },
                {"vllm": {"model": "llama2-7b", "tensor_parallel_size": 8, "batch_size": 4}, "gpu": "H100"},
            ],
            "patterns": ["mttf:table=llama3", "none", "server0.nic1=0.5@10..20 flap:component=server1.nic0,period=1h"],
            "strategies": ["balance", "hot-repair"],
            "backends": ["flow"],
            "seeds": {"first": 3, "count": 5},
            "hours": 24,
            "checkpoint_min": 30,
            "only": [{"cluster": "h100*", "seed": "*"}, {"workload": "gpt"}],
            "exclude": [{"strategy": "hot-repair", "pattern": "none"}],
            "stop": {"metric": "lost_gpu_h", "half_width_pct": 5, "confidence": 0.95, "batch": 2},
        }
    ],
}
JUNK: list[Any] = [
    None, "", " ", "none", "no such thing", "../../etc", "h100x", "a:b:c", "=", "@", "0..", "\x07", "ß", "x" * 5000,
    -1, 0, 1, 3.5, 10**30, 1e308, 10**400, float("nan"), float("inf"), -float("inf"), True, False,
    [], [[]], {}, {"a": {}}, [None], ["none", "none"], [1, "x"], {"from": 1}, {1: 2},
]  # fmt: skip
RAW = [
    "2024-99-99",
    "0b_",
    "1:99:99",
    "!!python/object:os.system x",
    "&a [*a]",
    "[" * 500,
    "{a: 1, a: 2}",
    "\t- x",
    "? ",
]


Change = Callable[[Any, tuple[Any, ...], random.Random], None]


class _ValidError(SimaiError):
    """The file was read to its end, and a run folder is wanted."""

    exit_code = VALID


@pytest.fixture
def _no_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing runs: after the file is read the sweep ends; and no file may take longer than `LIMIT_S`."""

    def valid(*_: object, **__: object) -> None:
        raise _ValidError("valid")

    def late(*_: object) -> None:
        raise AssertionError(f"a file took longer than {LIMIT_S} s")

    monkeypatch.setattr(sweep, "RunFolder", valid)
    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def paper() -> dict[str, Any]:
    """The shipped scenario, cut to what is read quickly: blocks of each kind."""
    whole = yaml.safe_load((scenarios_dir() / "paper.yml").read_text())
    blocks = [block for block in whole["blocks"] if block["scenario"] in ("table1", "table4", "h100-one-nic-down")]
    training = [job for job in whole["training"] if job["scenario"] in ("h100-training-settings", "training-512")]
    small = {"clusters": ["h100"], "megatron": training[0]["megatron"]}
    day = [job | small for job in whole["training"] if "day" in job]
    return whole | {"blocks": blocks[:3], "training": [training[0], training[-1], *day]}


def places(data: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value of nested mappings and lists."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [way for key, value in inner for way in ((*above, key), *places(value, (*above, key)))]


def at(data: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        data = data[key]
    return data


def drop(data: Any, way: tuple[Any, ...], _: random.Random) -> None:
    del at(data, way[:-1])[way[-1]]


def rename(data: Any, way: tuple[Any, ...], draw: random.Random) -> None:
    holder = at(data, way[:-1])
    value = holder.pop(way[-1])
    if isinstance(holder, dict):
        holder[draw.choice([f"{way[-1]}s", str(way[-1])[:-1] or "x", str(way[-1]).upper(), "", "no-such-key"])] = value
    else:
        holder.append({"moved": value})


def junk(data: Any, way: tuple[Any, ...], draw: random.Random) -> None:
    at(data, way[:-1])[way[-1]] = copy.deepcopy(draw.choice(JUNK))


def retype(data: Any, way: tuple[Any, ...], draw: random.Random) -> None:
    value = at(data, way)
    at(data, way[:-1])[way[-1]] = draw.choice([[value], {"value": value}, str(value) + "x", f"{value} {value}"])


def double(data: Any, way: tuple[Any, ...], _: random.Random) -> None:
    holder = at(data, way[:-1])
    if isinstance(holder, list):
        holder.append(copy.deepcopy(holder[way[-1]]))
    else:
        holder[f"{way[-1]}2"] = copy.deepcopy(holder[way[-1]])


def of_data(data: dict[str, Any], draw: random.Random) -> bytes:
    """One change of what the file says."""
    change: Callable[[Any, tuple[Any, ...], random.Random], None] = draw.choice(
        [drop, rename, junk, junk, retype, double]
    )
    mutated = copy.deepcopy(data)
    change(mutated, draw.choice(places(mutated)), draw)
    return yaml.safe_dump(mutated, sort_keys=False, allow_unicode=True).encode()


def of_text(data: dict[str, Any], draw: random.Random) -> bytes:
    """One change of the file's lines or bytes: a line twice or gone, other indentation, bytes flipped, a torn end."""
    text = yaml.safe_dump(data, sort_keys=False).encode()
    lines = text.splitlines(keepends=True)
    index = draw.randrange(len(lines))
    kind = draw.randrange(6)
    if kind == 0:
        lines.insert(index, lines[index])
    elif kind == 1:
        lines[index] = draw.choice([b" ", b"   ", b"\t"]) + lines[index]
    elif kind == 2:
        lines[index] = lines[index].lstrip(b" ") if lines[index].startswith(b" ") else b"- " + lines[index]
    elif kind == 3:
        flipped = bytearray(text)
        for _ in range(draw.randrange(1, 4)):
            flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        return bytes(flipped)
    elif kind == 4:
        return text[: draw.randrange(len(text))]
    else:
        lines[index] = lines[index].partition(b":")[0] + b": " + draw.choice(RAW).encode() + b"\n"
    return b"".join(lines)


@pytest.mark.usefixtures("_no_run")
def test_a_mutated_file_is_refused_with_one_line_or_still_makes_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys dropped, renamed, doubled; values of another type, huge, no number; indentation, flipped bytes, torn ends.
    At least 200 of them are refused: exit code 2, nothing on stdout, one line on stderr that names the file."""
    draw, originals = random.Random(11), [paper(), MATRIX]
    path = tmp_path / "mutated.yml"
    refused = valid = 0
    for number in range(MOST_TRIES):
        if refused >= REFUSED:
            break
        original = originals[number % 2]
        content = draw.choice([of_data, of_data, of_text])(original, draw)
        path.write_bytes(content)
        signal.alarm(LIMIT_S)
        code = run(["sweep", str(path), "--out", str(tmp_path / "run")])
        signal.alarm(0)
        said = capsys.readouterr()
        assert code in (2, VALID), content.decode(errors="replace")
        assert said.out == ""
        assert said.err.count("\n") == 1, said.err
        valid += code == VALID
        if code == 2:
            refused += 1
            assert said.err.startswith("error: ")
            assert "mutated.yml" in said.err, said.err
    assert refused >= REFUSED
    assert valid > 10  # harmless ones: the unchanged rest of the files is right


@pytest.mark.usefixtures("_no_run")
@pytest.mark.parametrize("original", [paper(), MATRIX])
def test_the_files_that_are_mutated_are_valid(tmp_path: Path, original: dict[str, Any]) -> None:
    path = tmp_path / "whole.yml"
    path.write_text(yaml.safe_dump(original))
    assert run(["sweep", str(path), "--out", str(tmp_path / "run")]) == VALID


@pytest.mark.usefixtures("_no_run")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title: a\ntitle: b\n", "line 2: key 'title' stands twice in one mapping"),
        ("title: a\nblocks: &b [*b]\n", "blocks.0: contains itself"),
        ("title: 2024-99-99\n", "not YAML: month must be in 1..12"),
        ("title: 2024-01-01\n", "title: datetime.date(2024, 1, 1) is neither text nor a number; write it in quotes"),
        ("title: .nan\n", "title: nan is no number; a finite one is wanted"),
        ("1: a\n", "the file: key 1 is no text; write it in quotes"),
        ("title: 9223372036854775808\n", "title: a number below 2^63 is wanted"),
        ("title: " + "[" * 1500, "nested too deeply"),
    ],
)
def test_what_a_scenario_file_may_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    path = tmp_path / "odd.yml"
    path.write_text(text)
    assert run(["sweep", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {path}: ")
    assert said in error
