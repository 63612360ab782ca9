"""`r2cc-simai failures detect`: who knows when, who is to blame, and how often it is wrong."""

import pytest

from tests.cli.conftest import Cli


def test_probes_of_a_preset(cli: Cli) -> None:
    """2.1 ms at both ends, 2.6 ms until traffic moves; three parts that can be to blame; rates per NIC-hour."""
    ended = cli("failures", "detect", "--cluster", "h100", "--utilisation", "0.9")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "Detection on h100: probes, data sent by local"
    by = {tuple(line.split()[:2]): line for line in lines if line}
    assert by["nic", "local"].split("  ")[-1].strip() == "2.6"
    assert "local NIC" in by["nic", "remote"]
    assert "cable or port" in by["path", "local"]
    assert "remote NIC" in by["remote-nic", "local"]
    assert "False alarms per NIC-hour" in ended.out
    assert by["0.9", "0.005549"].split()[2] == "0.02217"


def test_retry_timeouts_of_the_r7525(cli: Cli) -> None:
    """8 x 121.25 ms at the sender, the receiver by notice; nobody can tell which part it is."""
    ended = cli("failures", "detect", "--cluster", "r7525", "--component", "cable", "--sends", "remote")
    rows = [line.split("  ") for line in ended.out.splitlines() if line.startswith("cable")]
    known = [[cell.strip() for cell in row if cell.strip()][1:] for row in rows]
    assert known == [
        ["local", "970.5", "notice", "cannot tell", "971"],
        ["remote", "970", "own timer", "cannot tell", "971"],
    ]


def test_without_traffic_nobody_finds_out(cli: Cli) -> None:
    """Retry timeouts need something that is sent."""
    ended = cli("failures", "detect", "--cluster", "r7525", "--sends", "none", "--component", "nic")
    assert ended.out.count("never") == 4


def test_a_fixed_delay_has_no_false_alarms(cli: Cli) -> None:
    """Nothing to congest."""
    ended = cli("failures", "detect", "--cluster", "uniform")
    assert "False alarms: none; load does not delay what fixed delay looks at." in ended.out


def test_counted_alarms_repeat_with_the_seed(cli: Cli) -> None:
    """--simulate adds a column; equal seeds give equal counts."""
    command = ("failures", "detect", "--utilisation", "0.95", "--simulate", "0.002", "--seed", "5")
    one = cli(*command)
    assert "counted" in one.out
    assert cli(*command).out == one.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sends", "all"), "--sends all: unknown (allowed: local, remote, both, none)"),
        (("--component", "gpu"), "--component gpu: unknown (allowed: nic, port, cable, path, remote-nic)"),
        (("--utilisation", "1"), "utilisation 1: write a number from 0 to below 1"),
        (("--simulate", "-1"), "NIC-hours"),
    ],
)
def test_wrong_requests(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    """Exit 2, one line, no table."""
    ended = cli("failures", "detect", *arguments)
    assert ended.code == 2
    assert message in ended.error
