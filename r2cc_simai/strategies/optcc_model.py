"""What OptCC takes by closed forms: the choice of its form, its segments and the part that a global ring takes."""

from dataclasses import dataclass

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.optcc import Form
from r2cc_simai.errors import InputError
from r2cc_simai.strategies.base import Request
from r2cc_simai.strategies.rings import is_whole, own_lanes, servers_of


@dataclass(frozen=True)
class Choice:
    """How OptCC runs: form, segments K, the fraction y of the data on a global ring, and the time predicted (s)."""

    form: Form
    k: int
    global_part: float
    predicted_s: float


@dataclass(frozen=True)
class Model:
    """Closed forms of the time.

    l = max 1/(1-X_i), d degraded of n servers, m = n - d healthy ones. A segment needs S for l/K and a healthy server
    for h/K = (2(m-1) + d)/(m K). What the pipeline does not overlap is a reduce-scatter before and an all-gather behind
    where S is the bottleneck, a leg where the healthy servers are, and the passes inside the servers::

        T = max(l D/B + R, max(h D/B, K R) + l/K D/B) + 2(g-1)/(g K) D/L,    R = 2(m-1) max(c/b, s/b + a)

    R is what the ring's channel takes for one segment: steps of sections of c bytes in chunks of s on NICs of rate b,
    each with the latency a of a hop, which several chunks hide. g GPUs have links that carry L together. The mixture
    puts y on a global ring so that both end at the bound 2(n-1)/(n - sum X_i), and pays the pipeline for the rest and
    the steps of both rings that are not hidden.
    """

    n: int
    degraded: int
    gpus: int
    longest: float
    lost: float
    bandwidth: float
    links: float
    nics: int
    chunk_bytes: int
    hop_s: float

    @staticmethod
    def of(request: Request, view: View) -> "Model":
        """The model of a group on its own servers; B are its own NICs, X what the whole of a server has lost.

        Raises:
            InputError: fewer than two healthy servers are left.
        """
        cluster = view.cluster
        servers = servers_of(request, cluster)
        degraded = view.degraded(servers)
        healthy = [cluster.servers[s] for s in servers if s not in degraded]
        if len(healthy) < 2:
            raise InputError(f"strategy optcc: {too_few_healthy(len(degraded), len(servers))}")
        lost = [view.lost(server) for server in degraded]
        members = frozenset(request.group)
        nics = _own_nics(request, view)
        gpus = [len(members.intersection(s.ranks)) for s in healthy]
        return Model(
            n=len(servers),
            degraded=len(degraded),
            gpus=gpus[0],
            longest=max(1 / (1 - x) for x in lost),
            lost=sum(lost),
            bandwidth=min(sum(cluster.nics[i].payload_rate for i in nics[s.index]) for s in healthy),
            links=min(s.link_rate * count for s, count in zip(healthy, gpus, strict=True)),
            nics=min(len(nics[s.index]) for s in healthy),
            chunk_bytes=cluster.chunk_bytes,
            hop_s=cluster.spec.transport.step_latency_us * 1e-6,
        )

    def best_global_part(self) -> float:
        """y* = n(1 - X/X*)/(n - X) with X* = (n-2)/(2n-3), below which one degraded server is not the bottleneck."""
        threshold = (self.n - 2) / (2 * self.n - 3)
        if self.degraded > 1 or self.lost >= threshold:
            return 0.0
        return self.n * (1 - self.lost / threshold) / (self.n - self.lost)

    def predict(self, form: Form, k: int, part: float, size: int) -> float:
        """Seconds of an AllReduce of `size` bytes."""
        m = self.n - self.degraded
        unit = size / self.bandwidth
        ring = self._ring_s(k, (1 - part) * size)
        busy = (2 * (m - 1) + self.degraded) / m
        if part == 0:
            leg = self.longest / k * unit
            alone = max(self.longest * unit + ring, max(busy * unit, k * ring) + leg)
            together = alone + (leg / m if form == "four" or self.degraded > 1 else 0.0)
        else:
            bound = 2 * (self.n - 1) / (self.n - self.lost) * unit
            pieces = k if self.gpus > 1 else 1
            waits = k * self._waits_s(k, (1 - part) * size) + pieces * self._waits_s(pieces, part * size)
            together = bound + waits + max(ring, (1 - part) * self.longest / k * unit)
        inside = 2 * (self.gpus - 1) / self.gpus * size / k / self.links
        return together + inside

    def _ring_s(self, k: int, size: float) -> float:
        """Seconds of the reduce-scatter and the all-gather of one of k segments of `size` bytes."""
        m = self.n - self.degraded
        rate = self.bandwidth / self.nics
        section = size / self.nics / k / m
        step = max(section / rate, min(section, self.chunk_bytes) / rate + self.hop_s)
        return 2 * (m - 1) * step

    def _waits_s(self, k: int, size: float) -> float:
        """What of `_ring_s` is not the bytes themselves."""
        m = self.n - self.degraded
        return self._ring_s(k, size) - 2 * (m - 1) / m * size / k / self.bandwidth


def too_few_healthy(degraded: int, servers: int) -> str:
    """Why OptCC has no plan where fewer than two healthy servers are left."""
    return f"{degraded} of {servers} servers are degraded; it needs two healthy"


def _own_nics(request: Request, view: View) -> dict[int, list[int]]:
    """The NICs of a group by server: all of them for a group that is the whole cluster, else those of its channels."""
    cluster = view.cluster
    if is_whole(request, cluster):
        return {server.index: list(server.nics) for server in cluster.servers}
    lanes = own_lanes(request, cluster)
    return {server: [lane[server] for lane in lanes] for server in lanes[0]}
