"""Logs in the form of the r7525 servers' (hosts, NICs, layout), with times that the simulator itself made.

A factor stretches the times: what a log says then differs from the simulation by exactly that.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.engine.run import Backend
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.runners.collective import Job, JobResult, run_job
from r2cc_simai.strategies.registry import parse_strategy

GIB = 2**30
NICS = ("mlx5_0", "mlx5_2", "mlx5_3")
MODES = {"nccl": "0", "hot-repair": "1", "balance": "2", "r2cc-allreduce": "3"}

WriteSweep = Callable[..., Path]
WriteSeries = Callable[..., Path]
WriteGraphs = Callable[..., Path]


def job(cluster: Cluster, strategy: str, size: int, failures: Sequence[str] = (), **kind: object) -> JobResult:
    """A job of the simulator on the flow backend."""
    options = {"iterations": 3, "warmup": 1, "backend": Backend.FLOW, **kind}
    timeline = parse_failures(tuple(failures), cluster)
    return run_job(cluster, parse_strategy(strategy), timeline, Job(size, **options))  # type: ignore[arg-type]


def steady_s(cluster: Cluster, strategy: str, size: int, failures: Sequence[str] = ()) -> float:
    """Seconds of an iteration without a failure or one-off costs."""
    steady = job(cluster, strategy, size, failures).steady
    assert steady is not None
    return steady.time_s


@pytest.fixture
def r7525() -> Cluster:
    """Return the three r7525 servers."""
    return load_cluster("r7525")


@pytest.fixture
def write_sweep(tmp_path: Path, r7525: Cluster) -> WriteSweep:
    """Return a function that writes the log of an nccl-tests run: one strategy, several sizes."""

    def write(
        sizes: Sequence[int],
        mode: str = "nccl",
        factor: float = 1.0,
        spoilt: int | None = None,
        nodes: tuple[str, ...] = ("localhost", "node-2", "node-3"),
        name: str = "sweep.log",
    ) -> Path:
        failures = () if mode == "nccl" else ("server0.mlx5_2@0",)
        rows = []
        for size in sizes:
            time_us = steady_s(r7525, mode, size, failures) * 1e6 * factor * (1.5 if size == spoilt else 1.0)
            columns = f"{time_us:.4f} {size / time_us / 1e3:.2f} {size / time_us / 600:.2f} 0"
            rows.append(f"{size} {size // 4} float sum -1 {columns} {columns}")
        hosts = ",".join(f"{node}:2" for node in nodes)
        head = [
            f"[nccl-tests] nodes={len(nodes)} ranks={2 * len(nodes)} ({hosts}) R2CC_MODE={MODES[mode]} "
            f"NCCL_IB_HCA={','.join(NICS)} R2CC_FAILED_NODE=0 R2CC_FAILED_HCA=mlx5_2",
            "# Collective test starting: all_reduce_perf",
            "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong",
        ]
        ranks = [
            f"#  Rank  {r} Group  0 Pid  1 on {nodes[r // 2]} device  {r % 2} [0000:21:00] Test GPU"
            for r in range(2 * len(nodes))
        ]
        path = tmp_path / name
        path.write_text("\n".join([*head[:2], *ranks, head[2], *rows, "# Out of bounds values : 0 OK", ""]))
        return path

    return write


@pytest.fixture
def write_series(tmp_path: Path, r7525: Cluster) -> WriteSeries:
    """Return a function that writes the log of a hot-repair run: healthy, healthy, cut, then `strategy`."""

    def write(strategy: str = "balance", passed_mib: int = 600, factor: float = 1.0) -> Path:
        healthy = job(r7525, "nccl", 4 * GIB, warmup=0, iterations=2).iterations
        cut = job(r7525, strategy, 4 * GIB, [f"server0.mlx5_2@bytes:{passed_mib}M"]).iterations
        lines = []
        for number, one in enumerate([*healthy, *cut], start=1):
            received = " ".join(f"{rx / 2**20:.0f}" for rx in one.bytes.rx[:3])
            lines.append(f"{number} {one.time_s * 1e3 * factor:.0f} {received}")
        full = healthy[1].bytes.rx[1] / 2**20
        path = tmp_path / "series.log"
        path.write_text(
            "\n".join(
                [
                    f"Config: iters={len(lines)}, bytes={4 * GIB} (4.00 GiB), count={GIB} floats",
                    *(f"[Rank {r}] Running on node-{r // 2 + 1}.example.org (Local Rank {r % 2})" for r in range(6)),
                    f"[Rank 0] Iter 1/{len(lines)} START: allreduce 4.00 GiB",
                    "[Rank 0] IB RX per-iteration (MB, port_rcv_data *4B):",
                    "Iter Time(ms) " + " ".join(f"{nic}_RX" for nic in NICS),
                    *lines,
                    "[Rank 0] Verification: all elements of each iteration checked on all 6 ranks: 0 wrong",
                    f"[Rank 0] Failure evidence: mlx5_2 cut during iteration 3 ({passed_mib} of {full:.0f} MB received "
                    "before the cut; command ran 4.00-4.75 s, iteration 4.24-7.77 s)",
                    "[Rank 0] TEST PASS: all AllReduces completed",
                    "",
                ]
            )
        )
        return path

    return write


@pytest.fixture
def write_graphs(tmp_path: Path, r7525: Cluster) -> WriteGraphs:
    """Return a function that writes the log of replayed CUDA graphs; `recapture_ms` is Balance's."""

    def write(recapture_ms: float = 1.7) -> Path:
        lost = ["server0.mlx5_2@0"]
        times = {s: steady_s(r7525, s, 4 * GIB, lost) for s in ("hot-repair", "balance", "r2cc-allreduce")}
        cut = job(r7525, "balance", 4 * GIB, ["server0.mlx5_2@bytes:847M"]).cut
        assert cut is not None
        path = tmp_path / "graphs.log"
        path.write_text(
            f"""[testbed] node-1 mlx5_0 egress ratelimit: 10.0 Gbps
===== CUDA Graphs: 4 GiB AllReduce on all GPUs, mlx5_2 of node-1 cut during the run =====
Replayed graph (4 GiB AllReduce)    Time / iter   Re-capture overhead*
Pre-failure graph, healthy               {steady_s(r7525, "nccl", 4 * GIB):.3f} s   --
Pre-failure graph, HotRepair             {times["hot-repair"]:.3f} s   --
Re-captured as R2CC-Balance              {times["balance"]:.3f} s   {recapture_ms} ms
Re-captured as R2CC-AllReduce            {times["r2cc-allreduce"]:.3f} s   329.7 ms
* what it costs

run 1/1, re-captured as R2CC-Balance:
  Verification: all elements of each iteration checked on all 6 ranks: 0 wrong
  Failure evidence: mlx5_2 cut during iteration 3 (847 of 2312 MB received before the cut; """
            f"""command ran 4.00-4.83 s, iteration 4.00-{4 + cut.time_s:.3f} s), no traffic on it in iterations 4-10
  TEST PASS: all AllReduces completed
[result] exit=0 PASS
"""
        )
        return path

    return write
