"""Synthetic rows: what a sweep would produce, made from the closed forms."""

from collections.abc import Callable

import pytest

from r2cc_simai.results import Row, make_row
from r2cc_simai.results.report import closed_form

GIB = 1 << 30
MakeRow = Callable[..., Row]


def _row(**given: object) -> Row:
    values: dict[str, object] = {
        "scenario": "demo",
        "cluster": "h100x4",
        "workload": "all_reduce",
        "pattern": "server0.nic0@0",
        "strategy": "balance",
        "backend": "flow",
        "bytes": GIB,
        "metric": "time",
        "unit": "s",
        "simulated": 1.1,
        "ideal": 1.0,
    }
    return make_row(**{**values, **given})  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def row() -> MakeRow:
    """Return a function that makes a row, with defaults for what a test does not name."""
    return _row


@pytest.fixture(scope="session")
def paper_rows() -> list[Row]:
    """Return rows of every scenario that has a section of its own, and of one that has none."""
    return [*_figure7(), *_table1(), *_table4(), *_r7525(), *_own_sweep()]


def _figure7() -> list[Row]:
    rows = []
    for n in (4, 8, 16):
        for x in (0.125, 0.5):
            healthy = closed_form.healthy_time(n)
            times = {
                "balance": healthy / (1 - x),
                "r2cc-allreduce:k=128": closed_form.r2cc_time(n, x, x, 128),
            }
            rows += [
                _row(
                    scenario="figure7",
                    cluster=f"uniformx{n}",
                    pattern=f"server0.nic0={1 - x:g}@0",
                    strategy=strategy,
                    backend=backend,
                    simulated=time,
                    ideal=healthy,
                    bound=closed_form.bound_time(n, x),
                    measured=closed_form.r2cc_time(n, x, x) if "r2cc" in strategy else time,
                    source="closed form",
                )
                for strategy, time in times.items()
                for backend in ("flow", "chunk")
            ]
    return rows


def _table1() -> list[Row]:
    return [
        _row(
            scenario="table1",
            cluster=f"uniformx{n}",
            pattern=f"server0.nic0={1 - x:g}@0",
            strategy=f"r2cc-allreduce:k=1048576,y={split}",
            simulated=closed_form.r2cc_time(n, x, y),
            ideal=closed_form.healthy_time(n),
        )
        for n in (4, 16, 64)
        for x in (0.125, 0.25, 0.5)
        for split, y in (("x", x), ("opt", closed_form.best_split(n, x)))
    ]


def _table4() -> list[Row]:
    common = {"scenario": "table4", "cluster": "r7525", "bytes": 4 * GIB, "source": "log 08", "ideal": 2.028}
    return [
        _row(**common, strategy="hot-repair", simulated=4.06, measured=4.07),
        _row(**common, strategy="balance", simulated=3.04, measured=3.04),
        _row(**common, strategy="r2cc-allreduce", metric="time_first", simulated=3.12, measured=3.12),
    ]


def _r7525() -> list[Row]:
    common = {"cluster": "r7525", "bytes": 4 * GIB, "ideal": 2.028}
    down = {**common, "pattern": "server0.mlx5_2@0"}
    cut = {
        **common,
        "scenario": "r7525-cut",
        "pattern": "server0.mlx5_2@bytes:630194176",
        "strategy": "hot-repair",
    }
    rows = [
        _row(
            scenario="r7525-healthy",
            pattern="",
            strategy="nccl",
            bytes=8 << (3 * i),
            simulated=t,
            measured=1.01 * t,
        )
        for i, t in enumerate((4e-5, 4e-5, 5e-5, 6e-5, 8e-5, 2e-4, 1e-3, 8e-3, 6.3e-2, 0.5))
    ]
    rows.append(_row(**down, scenario="r7525-balance", simulated=3.033, measured=3.040))
    for k in (1, 2, 4, 8, 16):
        time = 2.028 * (1 + 0.3 * (1 + 1 / k))
        rows.append(
            _row(**down, scenario="r7525-r2cc", strategy=f"r2cc-allreduce:k={k}", simulated=time, measured=time)
        )
    rows.append(_row(**cut, metric="time_cut", simulated=3.55, measured=3.539))
    for nic, count in (("mlx5_0", 4391436288), ("mlx5_2", 630194176), ("mlx5_3", 2424307712)):
        metric = f"rx_bytes[server0.{nic}]"
        rows.append(_row(**{**cut, "ideal": None}, metric=metric, unit="B", simulated=count * 1.002, measured=count))
    return rows


def _own_sweep() -> list[Row]:
    return [
        _row(scenario="my <own> sweep", strategy=strategy, bytes=size, simulated=1 + loss, bound=1.01)
        for strategy, loss in (("ideal", 0.0), ("balance", 0.14), ("my-ring:z=3", 0.3))
        for size in (1 << 20, GIB)
    ]
