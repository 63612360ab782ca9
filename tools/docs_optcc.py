"""Prints the OptCC tables of docs/validation.md: the published table by both backends, and what latency costs.

Run from a checkout with the package installed: `python tools/docs_optcc.py`. Takes about a minute.
"""

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.engine.run import Backend, run_schedule
from r2cc_simai.failures.timeline import Event
from r2cc_simai.measured import published
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.optcc import OptCC

SIZE = 16 * 2**30


def overhead_pct(cluster: Cluster, x: float, strategy: OptCC, backend: Backend) -> float:
    """Over the fault-free ring at zero latency, in percent."""
    n = len(cluster.servers)
    view = View(cluster, (1 - x, *[1.0] * (n - 1)))
    plan = strategy.plan(Request("all_reduce", tuple(range(n)), SIZE), view)
    run = run_schedule(cluster, plan.schedule, plan.binding, (Event(0, 1 - x),), backend)
    return 100 * (run.elapsed_s / (2 * (n - 1) / n * SIZE / cluster.nics[0].rate) - 1)


def main() -> None:
    """Prints both tables as Markdown."""
    table: dict[tuple[int, str], list[dict[str, str]]] = {}
    for row in published.load("optcc"):
        table.setdefault((int(row["n"]), row["x"]), []).append(row)
    print("| n | X | bound | alone: published | flow | chunk | best mixture: published | flow | chunk | with latency |")
    print("|---:|---:|---:|---|---|---|---|---|---|---:|")
    for (n, x), rows in sorted(table.items(), key=lambda item: (item[0][1], item[0][0])):
        still, real = load_cluster(f"uniformx{n}").zero_latency(), load_cluster(f"uniformx{n}")
        cells = [str(n), x, rows[0]["bound_pct"], _series([float(r["optcc_pct"]) for r in rows])]
        alone: dict[Backend, list[float]] = {}
        for backend in Backend:
            alone[backend] = [overhead_pct(still, float(x), OptCC(k=int(r["k"]), mix="off"), backend) for r in rows]
            cells.append(_series(alone[backend]))
        cells.append(_series([float(r["mixture_pct"]) for r in rows]))
        for backend in Backend:
            mixed = [overhead_pct(still, float(x), OptCC(k=int(r["k"])), backend) for r in rows]
            cells.append(_series([min(a, m) for a, m in zip(alone[backend], mixed, strict=True)]))
        cells.append(f"{overhead_pct(real, float(x), OptCC(), Backend.FLOW):.1f}")
        print("| " + " | ".join(cells) + " |")


def _series(values: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


if __name__ == "__main__":
    main()
