"""OptCC as a strategy: which ranks and NICs take part, and how the buffer is divided."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.binding import Row, binding_of
from r2cc_simai.collectives.channels import Lane, channel_lanes, working_pairs
from r2cc_simai.collectives.optcc import Form, Lap, add_optcc
from r2cc_simai.errors import InputError
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Plan, Request, Strategy
from r2cc_simai.strategies.optcc_groups import PairsOnLane, leg_rows, nominal_leg, shared_hops, shared_laps, why_not
from r2cc_simai.strategies.optcc_model import Choice, Model
from r2cc_simai.strategies.rings import (
    balance_note,
    builder_for,
    in_proportion,
    is_whole,
    require_known,
    servers_of,
)
from r2cc_simai.strategies.shared_servers import rebound

MOST_SEGMENTS = 128


@dataclass(frozen=True)
class OptCC(Strategy):
    """`k` segments; 0: the cost model chooses it, as it does the form and what a global ring takes of the data."""

    name: ClassVar[str] = "optcc"
    own_plans: ClassVar[frozenset[str] | None] = frozenset({"all_reduce"})
    k: int = 0
    form: Literal["auto", "four", "three"] = "auto"
    mix: Literal["auto", "off"] = "auto"

    def plan(self, request: Request, view: View) -> Plan:
        """The scheme with the healthy servers' ring and the degraded servers' legs.

        Balance for other collectives and where the scheme does not fit, for example with one healthy server; a note
        says why. A group that is a part of the cluster shares its servers with others (`optcc_groups`).

        Raises:
            PartitionedError: the servers are not joined by what works.
            InputError: a request that makes no sense, or K is larger than the data.
        """
        require_known(request, view.cluster, self.name)
        servers = servers_of(request, view.cluster)
        if request.op not in (self.own_plans or ()):
            return replace(Balance().plan(request, view), note=balance_note(self.name, request.op))
        if len(servers) < 2 or not view.degraded(servers):
            return Balance().plan(request, view)
        reason = why_not(request, view, self.form)
        if reason:
            return replace(Balance().plan(request, view), note=f"optcc falls back to balance: {reason}")
        return self._whole(request, view) if is_whole(request, view.cluster) else self._shared(request, view)

    def _whole(self, request: Request, view: View) -> Plan:
        """The plan of all ranks of the cluster."""
        everywhere = channel_lanes(view.cluster, range(len(view.cluster.servers)), view.alive)  # or it is partitioned
        choice = self.choose(request, view)
        cut = round(choice.global_part * request.bytes)
        laps = _global_laps(view, everywhere, cut) if cut else [], _laps(view, request.bytes, cut)
        return self._built(request, view, choice, *laps, partial(_pairs, view))

    def _shared(self, request: Request, view: View) -> Plan:
        """The plan of a group that is a part of the cluster."""
        channel_lanes(view.cluster, servers_of(request, view.cluster), view.alive)  # or it is partitioned
        choice = self.choose(request, view)
        cut = round(choice.global_part * request.bytes)
        laps = shared_laps(request, view, cut)
        return self._built(request, view, choice, *laps, partial(nominal_leg, view))

    def _built(
        self,
        request: Request,
        view: View,
        choice: Choice,
        everywhere: Sequence[Lap],
        scheme: Sequence[Lap],
        legs: PairsOnLane,
    ) -> Plan:
        """The plan of the laps of the global ring and of the scheme."""
        cluster, whole = view.cluster, is_whole(request, view.cluster)
        _check_segments(self, choice.k, scheme[-1].hi - scheme[0].lo)
        builder = builder_for(request, cluster)
        rows: list[Row] = []
        members = None if whole else frozenset(request.group)
        outer = choice.k if len(request.group) > len(scheme[0].lane | scheme[0].entry) else 1  # to overlap the links
        for laps, k in ((everywhere, outer), (scheme, choice.k)):
            add_optcc(builder, cluster, laps, k, choice.form, rows, partial(leg_rows, view, legs), members)
        if not whole:
            rows = rebound(rows, view, shared_hops(request, view, choice.global_part))
        split = 2 * cluster.spec.costs.communicator_split_s
        return Plan(builder.build(), binding_of(rows), one_off_s=split)

    def choose(self, request: Request, view: View) -> Choice:
        """The form, K and global part with the smallest predicted time among those that the options allow.

        Raises:
            InputError: fewer than two healthy servers are left.
        """
        model = Model.of(request, view)
        forms: list[Form] = ["three", "four"] if self.form == "auto" else [self.form]
        if model.degraded > 1:
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
    """The NIC of a degraded server whose GPU order a lap follows: the one on its rail, else the first that works.

    A NIC that is down still says which GPU adds up what its server has: if two laps began at one GPU, the links of the
    server would carry more of their chains on some GPUs than on others.
    """
    nics = view.cluster.servers[server].nics
    on_rail = [n for n in nics if view.cluster.nics[n].rail == rail]
    return (on_rail or [n for n in nics if view.fraction[n] > 0])[0]


def _pairs(view: View, src: int, dst: int, lane: Lane) -> list[tuple[int, int, float]]:
    """NIC pairs between two servers and what is left of each; the pair on the lane's rail alone where no other is
    better."""
    rail = _rail(view, lane)
    pairs = [(a, b, min(view.fraction[a], view.fraction[b])) for a, b in working_pairs(view, src, dst)]
    best = max(left for _, _, left in pairs)
    own = [p for p in pairs if view.cluster.nics[p[0]].rail == rail == view.cluster.nics[p[1]].rail and p[2] == best]
    return own or pairs
