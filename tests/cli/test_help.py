"""`--help`: at once, so nothing heavy is imported for it."""

import subprocess
import sys

import pytest

from r2cc_simai import __version__

HEAVY = ("numpy", "pydantic", "scipy", "rich", "matplotlib", "pyarrow", "yaml", "r2cc_simai.engine._core")


def test_nothing_heavy_is_imported_for_help():
    code = (
        f"import sys; from r2cc_simai.cli.main import run; code = run(['--help']); "
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "[]\n")


def test_help_names_every_command_and_the_exit_codes(cli):
    printed = cli("--help").out
    assert all(name in printed for name in ("coll", "sweep", "compare", "calibrate", "cluster", "failures", "trace"))
    assert "Exit codes: 0 ok, 1 regression or mismatch, 2 bad input" in printed


@pytest.mark.parametrize(
    "command", ["coll", "sweep", "compare", "calibrate", "cluster show", "failures show", "trace megatron"]
)
def test_every_command_has_help(cli, command):
    ended = cli(*command.split(), "--help")
    assert ended.code == 0
    assert "Usage: r2cc-simai " + command in ended.out


def test_without_a_command_it_prints_its_help(cli):
    assert cli().out == cli("--help").out


def test_version(cli):
    assert cli("--version").out == f"r2cc-simai {__version__}\n"
