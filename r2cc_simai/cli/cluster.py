"""`r2cc-simai cluster`: which clusters there are, and what is in them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from r2cc_simai.cluster.model import Cluster
    from r2cc_simai.cluster.spec import LinkEventSpec, ProbesSpec, RetryTimeoutSpec

app = typer.Typer(help="Show clusters.", no_args_is_help=False)


@app.command("list")
def list_clusters() -> None:
    """List the shipped clusters; PRESETxN means N servers of one, and a YAML file may start from one."""
    from r2cc_simai.cli import show
    from r2cc_simai.cluster.load import load_cluster, preset_names

    columns = ("name", "description", "servers", "GPUs per server", "NICs per server", "rate per NIC (Gb/s)")
    lines = []
    for name in preset_names():
        one = load_cluster(name)
        server = one.servers[0]
        rates = sorted({round(_gbps(one.nics[nic].rate), 3) for nic in server.nics})
        counts = (len(one.servers), len(server.ranks), len(server.nics))
        rate = " to ".join(f"{r:g}" for r in dict.fromkeys((rates[0], rates[-1])))
        lines.append([name, one.spec.description, *map(str, counts), rate])
    show.table("Shipped clusters", columns, lines, text=2)


@app.command("show")
def show_cluster(
    name: Annotated[str, typer.Argument(help="A preset, PRESETxSERVERS, or a file.")],
) -> None:
    """Show a cluster: its constants, and the NICs of each kind of server."""
    from r2cc_simai.cli import show
    from r2cc_simai.cluster.load import load_cluster

    one = load_cluster(name)
    show.table(f"{one.name}: {one.spec.description}", ("what", "value"), _constants(one), text=2)
    columns = ["NIC", "rate (Gb/s)", "payload (GB/s)", "line rate (Gb/s)", "burst (kB)", "MTU (B)", "header (B)"]
    columns += ["rail", "NUMA node", "backups, nearest first"]
    for servers, index in _kinds(one):
        show.table(f"NICs of {servers}", columns, _nics(one, index))


def _constants(one: "Cluster") -> Iterator[tuple[str, str]]:
    spec, server = one.spec, one.spec.server
    yield "servers", str(len(one.servers))
    yield "GPUs per server", f"{server.gpus.count} {server.gpus.model}".strip()
    yield "GPU link", f"{server.intra_server.kind}, {server.intra_server.rate_gbps:g} Gb/s per direction"
    yield "GPU link latency", f"{server.intra_server.latency_us:g} us"
    if server.host_bridge_gbps is not None:
        yield "host bridge", f"{server.host_bridge_gbps:g} Gb/s per direction"
    yield "fabric", spec.fabric.kind
    transport = spec.transport
    yield "start latency", f"{transport.base_latency_us:g} us"
    yield "step latency", f"{transport.step_latency_us:g} us"
    yield "chunk", f"{transport.chunk_kib:g} KiB, {transport.window_chunks} in flight"
    yield (
        "low-latency protocol",
        f"up to {transport.ll_threshold_kib:g} KiB, {transport.ll_wire_factor:g} B per payload byte",
    )
    failover = spec.failover
    yield "failure detection", f"{failover.delay_ms:g} ms" + _mechanism(failover.detection)
    yield "notice to the other end", f"{failover.notify_ms:g} ms"
    yield "migration", f"{failover.migrate_ms:g} ms"
    yield "backups per NIC", str(failover.backups_per_nic)
    costs = spec.costs
    yield "first collective", f"{costs.first_collective_s:g} s once"
    yield "communicator split", f"{costs.communicator_split_s:g} s each"
    yield "graph capture", f"{costs.graph_capture_s * 1e3:g} ms each"


def _mechanism(detection: "RetryTimeoutSpec | LinkEventSpec | ProbesSpec | None") -> str:
    if detection is None:
        return ""
    hidden = {"mechanism"} | ({"phase", "seed"} if getattr(detection, "phase", "worst") == "worst" else set())
    keys = detection.model_dump(exclude=hidden)
    return f" ({detection.mechanism}: {', '.join(f'{key} {value}' for key, value in keys.items())})"


def _kinds(one: "Cluster") -> Iterator[tuple[str, int]]:
    """Servers that are alike, as (their names, the number of one of them)."""
    own = [int(key.removeprefix("server")) for key in one.spec.overrides]
    alike = [s.index for s in one.servers if s.index not in own]
    if alike:
        yield _names(alike), alike[0]
    for index in sorted(own):
        yield f"server{index}", index


def _names(indices: list[int]) -> str:
    if len(indices) == indices[-1] - indices[0] + 1 and len(indices) > 1:
        return f"server{indices[0]} to server{indices[-1]}"
    return ", ".join(f"server{i}" for i in indices)


def _nics(one: "Cluster", server: int) -> Iterator[list[str]]:
    for i in one.servers[server].nics:
        nic = one.nics[i]
        numbers = (_gbps(nic.rate), nic.payload_rate / 1e9, _gbps(nic.line_rate), nic.burst_bytes / 1e3)
        rest = (nic.mtu_bytes, nic.header_bytes, nic.rail, nic.numa)
        backups = ", ".join(one.nics[b].name for b in nic.backups) or "none"
        yield [nic.name, *(f"{n:.4g}" for n in numbers), *(f"{n:g}" for n in rest), backups]


def _gbps(rate: float) -> float:
    return rate * 8 / 1e9
