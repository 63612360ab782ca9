"""Running a command in this process, and a measured log that no simulation agrees with."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from r2cc_simai.cli.main import run


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line of stderr that says what was wrong; there must be no other, and no result."""
        assert self.out == ""
        assert self.err.startswith("error: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("error: ").strip()


Cli = Callable[..., Ended]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Return a function that runs `r2cc-simai` with arguments as a shell would split them."""

    def call(*arguments: str) -> Ended:
        code = run(arguments)
        written = capsys.readouterr()
        return Ended(code, written.out, written.err)

    return call


@pytest.fixture
def slow_log(tmp_path: Path) -> Path:
    """Return the log of a healthy 1 GiB AllReduce on the r7525 servers that took 9 s."""
    path = tmp_path / "slow.log"
    ranks = [f"#  Rank  {r} Group  0 Pid  1 on node-{r // 2 + 1} device  {r % 2} [00:00] GPU\n" for r in range(6)]
    path.write_text(
        "[nccl-tests] nodes=3 ranks=6 R2CC_MODE=0 NCCL_IB_HCA=mlx5_0,mlx5_2,mlx5_3\n"
        "# Collective test starting: all_reduce_perf\n"
        + "".join(ranks)
        + "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        "1073741824 268435456 float sum -1 9000000 0.12 0.20 0 9000000 0.12 0.20 0\n"
        "# Out of bounds values : 0 OK\n"
    )
    return path
