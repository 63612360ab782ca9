"""The rows of a finished default sweep that the documents quote."""

from dataclasses import dataclass
from pathlib import Path

from r2cc_simai.measured import published
from r2cc_simai.results import Row, read_rows

GIB4 = 4 * 2**30


@dataclass(frozen=True)
class Bar:
    """A measured case of the r7525 servers: its name, and where its row lies in the table."""

    label: str
    scenario: str
    strategy: str
    metric: str = "time"
    pattern: str | None = None


BARS = (
    Bar("healthy", "r7525-healthy", "ideal"),
    Bar("R2CC-AllReduce, K = 16", "r7525-r2cc", "r2cc-allreduce:k=16"),
    Bar("R2CC-AllReduce, K = 4", "r7525-r2cc", "r2cc-allreduce"),
    Bar("Balance", "r7525-balance", "balance"),
    Bar("hot repair", "table4", "hot-repair"),
    Bar("iteration that the cut hits", "r7525-cut", "balance", "time_cut", "server0.mlx5_2@bytes:630194176"),
)


class Rows:
    """All rows of a run folder."""

    def __init__(self, folder: Path) -> None:
        self.all = read_rows(folder)

    def of(self, scenario: str, metric: str = "time") -> list[Row]:
        """Rows of one metric of a scenario, in the order of the table."""
        return [row for row in self.all if row.scenario == scenario and row.metric == metric]

    def bar(self, bar: Bar, backend: str = "flow") -> Row:
        """The row of a measured case of 4 GiB."""
        return next(
            row
            for row in self.of(bar.scenario, bar.metric)
            if (row.strategy, row.backend, row.bytes) == (bar.strategy, backend, GIB4)
            and bar.pattern in (None, row.pattern)
        )

    def figure7(self, servers: int, lost: float, strategy: str, backend: str) -> Row:
        """The row of Figure 7 for n servers, of which one has lost the fraction X."""
        wanted = (f"uniformx{servers}", f"server0.nic0={1 - lost:g}@0", strategy, backend)
        return next(r for r in self.of("figure7") if (r.cluster, r.pattern, r.strategy, r.backend) == wanted)

    def bound_overhead(self, servers: int, lost: float) -> float:
        """Overhead of the lower bound over the healthy ring, in percent."""
        row = self.figure7(servers, lost, "balance", "flow")
        assert row.bound is not None
        assert row.ideal is not None
        return 100 * (row.bound / row.ideal - 1)

    @staticmethod
    def published_overhead(servers: int, lost: float) -> float:
        """Overhead of R2CC-AllReduce by its closed form, in percent."""
        table = published.load("figure7_r2cc")
        return next(float(r["overhead_pct"]) for r in table if (int(r["n"]), float(r["x"])) == (servers, lost))
