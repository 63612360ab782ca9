"""Writes the tables of README.md and docs/validation.md anew: `python tools/docs_tables.py RUN_FOLDER`.

RUN_FOLDER is that of a finished `r2cc-simai sweep`. A table stands between `<!-- table NAME -->` and `<!-- end -->`.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from docs_rows import BARS, Rows

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.failures.timeline import Event
from r2cc_simai.measured import published
from r2cc_simai.results import Row, check
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.units import format_size

ROOT = Path(__file__).parents[1]
FILES = ("README.md", "docs/validation.md")
BLOCK = re.compile(r"(<!-- table (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
LOST = {0.125: "1/8", 0.25: "1/4", 0.375: "3/8", 0.5: "1/2"}
PUBLISHED_N = (3, 4, 8, 16, 64)
GIB = 2**30
RANGES = (("8 B to 8 MiB", 0, 2**24), ("16 to 256 MiB", 2**24, 2**29), ("512 MiB to 4 GiB", 2**29, 2**40))


def main(folder: Path) -> None:
    """Replaces every table of the documents."""
    rows = Rows(folder)
    for name in FILES:
        path = ROOT / name
        text = path.read_text()
        path.write_text(BLOCK.sub(lambda m: f"{m[1]}{TABLES[m['name']](rows)}{m[3]}", text))


def markdown(columns: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> str:
    """A table whose first `text` columns are aligned to the left."""
    rule = [":---" if i < text else "---:" for i in range(len(columns))]
    return "".join("| " + " | ".join(line) + " |\n" for line in [columns, rule, *lines])


def r7525(rows: Rows) -> str:
    """The headline cases of the r7525 servers."""
    columns = ("4 GiB AllReduce on r7525", "measured (s)", "simulated (s)", "error (%)", "error, `chunk` (%)")
    lines = [
        (bar.label, f"{row.measured:.3f}", f"{row.simulated:.3f}", _signed(row), _signed(rows.bar(bar, "chunk")))
        if bar.scenario != "table4"
        else (bar.label, f"{row.measured:.3f}", f"{row.simulated:.3f}", _signed(row), "-")
        for bar in BARS
        for row in [rows.bar(bar)]
    ]
    return markdown(columns, lines)


def figure7(rows: Rows) -> str:
    """Overhead of R2CC-AllReduce: closed form / flow / chunk."""
    lines = []
    for n in PUBLISHED_N:
        cells = []
        for x in LOST:
            both = [rows.figure7(n, x, "r2cc-allreduce:k=128", b).overhead_pct for b in ("flow", "chunk")]
            cells.append(f"{rows.published_overhead(n, x):.1f} / {both[0]:.1f} / {both[1]:.1f}")
        lines.append([str(n), *cells])
    return markdown(("n", *(f"X = {x}" for x in LOST.values())), lines)


def table1(rows: Rows) -> str:
    """The gap of Y = X to Y*, from two simulated times each."""
    times = {(r.cluster, r.pattern, r.strategy): r.simulated for r in rows.of("table1")}
    lines = []
    for line in published.load("table1"):
        where = f"uniformx{line['n']}", f"server0.nic0={1 - float(line['x']):g}@0"
        plain, best = (times[(*where, f"r2cc-allreduce:k=32768{y}")] for y in ("", ",y=opt"))
        assert plain is not None
        assert best is not None
        digits = len(line["gap_pct"].partition(".")[2])
        gap = 100 * (plain / best - 1)
        lines.append((line["n"], LOST[float(line["x"])], line["gap_pct"], f"{gap:.{digits}f}"))
    return markdown(("n", "X", "published (%)", "simulated (%)"), lines, text=2)


def stage1(_: Rows) -> str:
    """Stage 1 alone against 2(n-1)/n D/B, the closed form with Y = X."""
    lines = []
    for n in (4, 8, 16):
        cells = []
        for x in LOST:
            ideal = 2 * (n - 1) / n * GIB / 50e9
            errors = [100 * (_stage1_s(n, x, backend) / ideal - 1) for backend in (Backend.FLOW, Backend.CHUNK)]
            cells.append(f"{errors[0]:+.2f} / {errors[1]:+.2f}")
        lines.append([str(n), *cells])
    return markdown(("n", *(f"X = {x}" for x in LOST.values())), lines)


def _stage1_s(n: int, lost: float, backend: Backend) -> float:
    cluster = load_cluster(f"uniformx{n}").zero_latency()
    view = View(cluster, (1 - lost, *[1.0] * (n - 1)))
    plan = parse_strategy("r2cc-allreduce").plan(Request("all_reduce", tuple(range(n)), GIB), view)
    whole = plan.schedule
    first = Schedule(n, GIB, whole.routes, tuple(one for one in whole.passes if not one.after))
    return run_schedule(cluster, first, plan.binding, (Event(0, 1 - lost),), backend).elapsed_s


def strategies(rows: Rows) -> str:
    """Steady times with one NIC down."""
    found = [r for s in ("r7525-balance", "r7525-r2cc") for r in rows.of(s) if r.measured is not None]
    return _beside(found, lambda row: (row.strategy, format_size(row.bytes)), ("strategy", "size"))


def cuts(rows: Rows) -> str:
    """The iteration that a cut hits."""
    found = [r for r in rows.of("r7525-cut", "time_cut") if r.measured is not None]
    return _beside(found, lambda row: (_passed(row), _log(row)), ("passed before the cut", "log"))


def nic_bytes(rows: Rows) -> str:
    """Received bytes per NIC or server."""
    found = [r for r in rows.all if r.metric.startswith("rx_bytes") and r.measured is not None and r.backend == "flow"]
    seen = {(r.scenario, r.strategy, r.metric): r for r in found}.values()
    lines = [
        (
            row.metric[9:-1],
            "cut" if row.scenario.endswith("/cut") else "later",
            row.strategy,
            f"{(row.measured or 0) / 2**20:.0f}",
            f"{(row.simulated or 0) / 2**20:.0f}",
            _signed(row),
        )
        for row in seen
    ]
    columns = ("NIC", "iteration", "strategy", "measured (MiB)", "simulated (MiB)", "error (%)")
    return markdown(columns, lines, text=3)


def table4(rows: Rows) -> str:
    """CUDA graphs across a failure."""
    found = [r for m in ("time", "time_first") for r in rows.of("table4", m) if r.measured is not None]
    return _beside(found, lambda row: (row.strategy, row.metric), ("strategy", "metric"))


def healthy(rows: Rows) -> str:
    """Largest error of the healthy sweep in each range of sizes."""
    lines = []
    for label, low, high in RANGES:
        cells = []
        for backend in ("flow", "chunk"):
            checks = [check(r) for r in rows.of("r7525-healthy") if r.backend == backend and low <= r.bytes < high]
            worst = max((c for c in checks if c), key=lambda c: abs(c.deviation))
            cells.append(f"{worst.deviation:+.2f} at {format_size(worst.row.bytes)}")
        lines.append((label, f"{worst.tolerance:g}", *cells))
    return markdown(("size", "allowed (%)", "largest error, `flow` (%)", "largest error, `chunk` (%)"), lines)


def agreement(rows: Rows) -> str:
    """How far chunk lies from flow, by scenario and metric."""
    flow = {_case(r): r for r in rows.all if r.backend == "flow" and r.unit == "s"}
    worst: dict[tuple[str, str], tuple[int, float, Row]] = {}
    for row in rows.all:
        other = flow.get(_case(row))
        if row.backend != "chunk" or row.unit != "s" or other is None or not row.simulated or not other.simulated:
            continue
        key = row.scenario, row.metric
        count, far, where = worst.get(key, (0, 0.0, row))
        apart = 100 * (other.simulated / row.simulated - 1)
        worst[key] = (count + 1, *((apart, row) if abs(apart) > abs(far) else (far, where)))
    lines = [
        (*key, str(count), f"{far:+.3f}", f"{row.strategy}, {row.cluster}, {format_size(row.bytes)}")
        for key, (count, far, row) in worst.items()
    ]
    return markdown(("scenario", "metric", "cases", "largest flow/chunk - 1 (%)", "where"), lines, text=2)


def _case(row: Row) -> tuple[str, str, str, str, int, str]:
    return row.scenario, row.cluster, row.pattern, row.strategy, row.bytes, row.metric


def _beside(found: Sequence[Row], names: Callable[[Row], tuple[str, ...]], columns: tuple[str, ...]) -> str:
    """Measured, flow and chunk side by side."""
    chunk = {_case(row): row for row in found if row.backend == "chunk"}
    lines = []
    for row in found:
        if row.backend != "flow":
            continue
        other = chunk.get(_case(row))
        measured, simulated = f"{row.measured:.4f}", f"{row.simulated:.4f}"
        lines.append((*names(row), measured, simulated, _signed(row), _signed(other) if other else "-"))
    heads = ("measured (s)", "simulated (s)", "error, `flow` (%)", "error, `chunk` (%)")
    return markdown((*columns, *heads), lines, text=len(columns))


def _signed(row: Row) -> str:
    return "-" if row.error_pct is None else f"{row.error_pct:+.2f}"


def _passed(row: Row) -> str:
    return f"{int(row.pattern.rpartition(':')[2]) / 2**20:.0f} MiB"


def _log(row: Row) -> str:
    return Path(row.source.split()[2]).name


TABLES: dict[str, Callable[[Rows], str]] = {
    "r7525": r7525,
    "figure7": figure7,
    "table1": table1,
    "stage1": stage1,
    "strategies": strategies,
    "cuts": cuts,
    "nic-bytes": nic_bytes,
    "table4": table4,
    "healthy": healthy,
    "agreement": agreement,
}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
