"""`r2cc-simai lab`: its commands, and errors as one line with the right exit code."""

import json
from pathlib import Path

import pytest

from r2cc_simai.cli.main import run
from r2cc_simai.lab import namespaces


def test_list_names_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("r7525-1to100", "four", "six", "ci"))


def test_without_root_it_is_one_line_and_4(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(namespaces.os, "geteuid", lambda: 1000)
    assert run(["lab", "run", "ci", "--out", str(tmp_path / "run")]) == 4
    told = capsys.readouterr().err
    assert told == "error: the lab makes network namespaces and needs root; run it with sudo\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["lab", "run", "nowhere"], "'nowhere': no such lab; write a preset"),
        (["lab", "run", "ci", "-n", "0"], "-n 0: write a number of repetitions from 1 to 100"),
        (["lab", "compare", "nowhere"], "no run folder of a lab; run 'r2cc-simai lab run' first"),
    ],
)
def test_bad_input_is_one_line_and_2(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_folder_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"scenario": {"name": "paper"}}))
    assert run(["lab", "compare", str(tmp_path)]) == 2
    assert "no run folder of a lab" in capsys.readouterr().err
