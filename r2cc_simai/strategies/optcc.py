"""OptCC as a strategy: which ranks and NICs take part, and how the buffer is divided."""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Row, binding_of
from r2cc_simai.collectives.channels import Int, Lane, channel_lanes, server_of_rank
from r2cc_simai.collectives.optcc import Form, Lap, add_optcc
from r2cc_simai.errors import InputError
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.rings import builder_for, in_proportion, require_all_reduce, require_whole_cluster

MOST_SEGMENTS = 128


@dataclass(frozen=True)
class Choice:
    """How OptCC runs: form, segments K, the fraction y of the data on a global ring, and the time predicted (s)."""

    form: Form
    k: int
    global_part: float
    predicted_s: float


@dataclass(frozen=True)
class OptCC(Strategy):
    """`k` segments; 0: the cost model chooses it, as it does the form and what a global ring takes of the data."""

    name: ClassVar[str] = "optcc"
    k: int = 0
    form: Literal["auto", "four", "three"] = "auto"
    mix: Literal["auto", "off"] = "auto"

    def plan(self, request: Request, view: View) -> Plan:
        """The scheme with the healthy servers' ring and the degraded servers' legs.

        Raises:
            InputError: fewer than two healthy servers are left, or K is larger than the data.
        """
        require_all_reduce(request, view.cluster, self.name)
        require_whole_cluster(request, view.cluster, self.name)
        if not view.degraded():
            return Balance().plan(request, view)
        everywhere = channel_lanes(view.cluster, range(len(view.cluster.servers)), view.alive)  # or it is partitioned
        choice = self.choose(request, view)
        builder = builder_for(request, view.cluster)
        rows: list[Row] = []
        cut = round(choice.global_part * request.bytes)
        _check_segments(self, choice.k, request.bytes - cut)
        legs = partial(_leg_rows, view)
        if cut:
            segments = (
                choice.k if len(view.cluster.servers[0].ranks) > 1 else 1
            )  # to overlap what is inside the servers
            add_optcc(builder, view.cluster, _global_laps(view, everywhere, cut), segments, choice.form, rows, legs)
        laps = _laps(view, request.bytes, cut)
        add_optcc(builder, view.cluster, laps, choice.k, choice.form, rows, legs)
        split = 2 * view.cluster.spec.costs.communicator_split_s
        return Plan(builder.build(), binding_of(rows), one_off_s=split)

    def choose(self, request: Request, view: View) -> Choice:
        """The form, K and global part with the smallest predicted time among those that the options allow.

        Raises:
            InputError: fewer than two healthy servers are left.
        """
        model = _Model.of(view)
        forms: list[Form] = ["three", "four"] if self.form == "auto" else [self.form]
        if len(view.degraded()) > 1:
            if self.form == "three":
                raise InputError("strategy optcc: form=three takes one degraded server, here are several")
            forms = ["four"]
        segments = [self.k] if self.k else [2**i for i in range(int(math.log2(MOST_SEGMENTS)) + 1)]
        parts = [0.0] if self.mix == "off" else sorted({0.0, model.best_global_part()})
        options = [
            Choice(form, k, part, model.predict(form, k, part, request.bytes))
            for form in forms
            for k in segments
            for part in parts
        ]
        return min(options, key=lambda choice: choice.predicted_s)


@dataclass(frozen=True)
class _Model:
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
    def of(view: View) -> "_Model":
        cluster = view.cluster
        degraded = view.degraded()
        healthy = [s for s in cluster.servers if s.index not in degraded]
        if len(healthy) < 2:
            raise InputError(
                f"strategy optcc: {len(degraded)} of {len(cluster.servers)} servers are degraded; it needs two healthy"
            )
        lost = [view.lost(server) for server in degraded]
        return _Model(
            n=len(cluster.servers),
            degraded=len(degraded),
            gpus=len(healthy[0].ranks),
            longest=max(1 / (1 - x) for x in lost),
            lost=sum(lost),
            bandwidth=min(sum(cluster.nics[i].payload_rate for i in s.nics) for s in healthy),
            links=min(s.link_rate * len(s.ranks) for s in healthy),
            nics=min(len(s.nics) for s in healthy),
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


def _check_segments(strategy: OptCC, k: int, size: int) -> None:
    if k > max(1, size):
        raise InputError(f"strategy {strategy.spec}: more segments than the {size} bytes that they divide")


def _global_laps(view: View, lanes: list[Lane], cut: int) -> list[Lap]:
    """Rings over all servers on the bytes [0:cut], each as large as the weakest NIC of its lane allows."""
    bounds = in_proportion(cut, [min(view.fraction[nic] for nic in lane.values()) for lane in lanes])
    return [Lap(lane, {}, lo, hi) for lane, lo, hi in zip(lanes, bounds[:-1], bounds[1:], strict=True)]


def _laps(view: View, size: int, cut: int) -> list[Lap]:
    """A lap for each rail of the healthy servers over the bytes [cut:size].

    A rail on which a degraded server has lost bandwidth carries less of the legs and of the global ring; it takes so
    much more of the healthy ring that all NICs of a healthy server are busy equally long.
    """
    cluster = view.cluster
    degraded = view.degraded()
    healthy = [s.index for s in cluster.servers if s.index not in degraded]
    lanes = channel_lanes(cluster, healthy, np.ones(len(cluster.nics), dtype=bool))
    left = np.array([[_fraction_on(view, s, _rail(view, lane)) for lane in lanes] for s in degraded])
    rest, m, n = size - cut, len(healthy), len(cluster.servers)
    legs = (rest / m * left / left.sum(axis=1, keepdims=True)).sum(axis=0)
    everywhere = left.min(axis=0)
    beside = legs + 2 * (n - 1) / n * cut * everywhere / max(everywhere.sum(), 1e-12)
    shares = _levelled(beside, 2 * (m - 1) / m, float(rest))
    bounds = in_proportion(rest, shares)
    entries = [{s: _entry(view, s, _rail(view, lane)) for s in degraded} for lane in lanes]
    return [
        Lap(lane, entry, cut + lo, cut + hi)
        for lane, entry, lo, hi in zip(lanes, entries, bounds[:-1], bounds[1:], strict=True)
    ]


def _levelled(beside: NDArray[np.float64], factor: float, total: float) -> list[float]:
    """Parts d_c >= 0 of `total` such that factor d_c + beside_c is the same for all that get a part."""
    if total == 0:
        return [1.0] * len(beside)
    order = np.sort(beside)
    for used in range(len(order), 0, -1):
        level = (factor * total + order[:used].sum()) / used
        if level >= order[used - 1]:
            break
    return [float(max(0.0, level - b)) for b in beside]


def _rail(view: View, lane: Lane) -> int:
    return view.cluster.nics[next(iter(lane.values()))].rail


def _fraction_on(view: View, server: int, rail: int) -> float:
    cluster = view.cluster
    return min((view.fraction[n] for n in cluster.servers[server].nics if cluster.nics[n].rail == rail), default=0.0)


def _entry(view: View, server: int, rail: int) -> int:
    """The NIC of a degraded server whose GPU order a lap follows: the one on its rail, else the first that works."""
    nics = view.cluster.servers[server].nics
    working = [n for n in nics if view.fraction[n] > 0]
    on_rail = [n for n in working if view.cluster.nics[n].rail == rail]
    return (on_rail or working)[0]


def _leg_rows(view: View, channel: int, route: Int, lane: Lane) -> list[Row]:
    """Binding of the hops between healthy and degraded servers.

    A hop uses the lap's own rail where that works at the degraded server as well as any; else it is spread over all NIC
    pairs that work, in proportion to what is left of them.
    """
    server_of = server_of_rank(view.cluster)
    rows: dict[tuple[int, int], list[Row]] = {}
    for a, b in zip(route[:-1].tolist(), route[1:].tolist(), strict=True):
        ends = int(server_of[a]), int(server_of[b])
        if ends[0] == ends[1] or (a, b) in rows:
            continue
        pairs = _pairs(view, *ends, _rail(view, lane))
        total = sum(share for _, _, share in pairs)
        rows[a, b] = [(channel, a, b, src, dst, share / total) for src, dst, share in pairs]
    return [row for found in rows.values() for row in found]


def _pairs(view: View, src: int, dst: int, rail: int) -> list[tuple[int, int, float]]:
    """NIC pairs between two servers and what is left of each; the pair on `rail` alone where no other is better."""
    lanes = channel_lanes(view.cluster, (src, dst), view.alive)
    pairs = [(lane[src], lane[dst], min(view.fraction[lane[src]], view.fraction[lane[dst]])) for lane in lanes]
    best = max(left for _, _, left in pairs)
    own = [p for p in pairs if view.cluster.nics[p[0]].rail == rail == view.cluster.nics[p[1]].rail and p[2] == best]
    return own or pairs
