"""`r2cc-simai export`."""

from dataclasses import replace

import numpy as np
import pytest

from r2cc_simai.cli.main import run

DOWN = ("--cluster", "h100x2", "--strategy", "r2cc-allreduce", "--fail", "server0.nic3@0")
PROVEN = "read back and proven: every contribution ends exactly once where it belongs, in every order that is allowed\n"


@pytest.fixture
def export(capsys):
    """Return a function that runs `export` and returns exit code, stdout and stderr."""

    def call(*arguments):
        code = run(["export", *map(str, arguments)])
        return code, *capsys.readouterr()

    return call


def test_chakra_traces_that_are_proven(export, tmp_path):
    code, out, err = export(*DOWN, "--size", "64MiB", "--format", "chakra", "--output", tmp_path / "c", "--check")
    assert (code, err) == (0, "")
    assert out.startswith(f"wrote 16 files, {tmp_path}/c.0.et .. c.15.et, ")
    assert out.endswith(PROVEN)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"c.{rank}.et" for rank in range(16))


def test_an_msccl_program_is_always_proven(export, tmp_path):
    code, out, _ = export(*DOWN, "--size", 67092480, "--format", "msccl", "--output", tmp_path / "x.xml")
    assert code == 0
    assert "for calls in place and out of place of 67092480 B" in out
    assert out.endswith(PROVEN)
    assert (tmp_path / "x.xml").read_text().startswith('<algo name="r2cc-allreduce on h100x2" proto="Simple"')


def test_a_size_that_msccl_cannot_divide_is_refused_with_one_that_it_can(export, tmp_path):
    code, out, err = export(*DOWN, "--size", "64MiB", "--format", "msccl", "--output", tmp_path / "x.xml")
    assert (code, out, list(tmp_path.iterdir())) == (2, "", [])
    assert err.startswith("error: MSCCL: chunks are of one size; the sections of 67108864 bytes have only 1 B")
    assert err.endswith("; --size 67092480 would do\n")


def test_equal_input_gives_equal_bytes(export, tmp_path):
    for name in ("a", "b"):
        export(*DOWN, "--size", "64MiB", "--format", "chakra", "--output", tmp_path / name)
    for rank in range(16):
        assert (tmp_path / f"a.{rank}.et").read_bytes() == (tmp_path / f"b.{rank}.et").read_bytes()


def test_the_baseline_sees_no_failure(export, tmp_path):
    """`ideal` plans for the healthy cluster, as in `coll`."""
    export("--strategy", "ideal", "--format", "chakra", "--output", tmp_path / "a")
    export("--strategy", "ideal", "--fail", "server0.mlx5_2@0", "--format", "chakra", "--output", tmp_path / "b")
    assert (tmp_path / "a.0.et").read_bytes() == (tmp_path / "b.0.et").read_bytes()


def test_what_a_strategy_did_instead_is_said(export, tmp_path):
    small = ("--size", "1M", "--format", "chakra", "--output", tmp_path / "c", "--check")
    code, out, err = export(*DOWN, *small)
    assert code == 0
    assert PROVEN in out
    assert err.startswith("note: ")


def test_a_root(export, tmp_path):
    what = ("--collective", "broadcast", "--root", 3, "--size", 1_000_003)
    code, out, _ = export(*what, "--format", "chakra", "--output", tmp_path / "c", "--piece", "0", "--check")
    assert code == 0
    assert PROVEN in out


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("--format", "json", "--output", "x"), 2, "--format json: unknown (allowed: chakra, msccl)"),
        (
            ("--format", "chakra", "--output", "no/such/folder/c"),
            2,
            "--output no/such/folder/c: name a file",
        ),
        (("--format", "chakra", "--output", "."), 2, "--output .: name a file in a folder that exists"),
        (("--format", "chakra", "--output", "c", "--size", "much"), 2, "--size 'much': not a size"),
        (("--format", "msccl", "--output", "x", "--piece", "1M"), 2, "--piece: for --format chakra only"),
        (
            ("--format", "chakra", "--output", "c", "--fail", "server0.mlx5_2@0.5"),
            2,
            "--fail server0.mlx5_2@0.5: a file holds the plan for one known state; write @0",
        ),
        (("--format", "chakra", "--output", "c", "--strategy", "balanse"), 2, "strategy 'balanse': unknown"),
        (("--format", "chakra", "--output", "c", "--collective", "all"), 2, "--collective all"),
        (("--format", "chakra", "--output", "c", "--root", "6"), 2, "no such rank (0 to 5)"),
        (
            ("--format", "msccl", "--output", "x", "--collective", "all_gather"),
            2,
            "MSCCL: all_gather cannot be",
        ),
        (("--format", "chakra", "--output", "c", "--fail", "server0@0"), 3, "server0"),
        (("--format", "chakra"), 2, "--output"),
    ],
)
def test_what_cannot_be_exported_is_one_line(arguments, code, complaint, export, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended, out, err = export(*arguments)
    assert (ended, out) == (code, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert complaint in err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_does_not_hold_up_is_exit_code_1(export, tmp_path, monkeypatch):
    """The writer is made to let every rank's operations wait for nothing but the operand of an addition."""
    from r2cc_simai.exporters import chakra
    from r2cc_simai.exporters.messages import Messages

    class Careless(Messages):
        def of_rank(self, rank):
            ops = super().of_rank(rank)
            return replace(ops, waits_offset=np.zeros_like(ops.waits_offset), waits=ops.waits[:0])

    monkeypatch.setattr(chakra, "Messages", Careless)
    code, out, err = export("--size", "1M", "--format", "chakra", "--output", tmp_path / "c", "--check")
    assert (code, out) == (1, "")
    assert err.endswith("and nothing orders them\n")
    assert err.startswith("error: c.")
