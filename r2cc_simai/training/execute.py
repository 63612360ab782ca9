"""Hands classes of equal ranks to the engine."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.engine.run import nic_events
from r2cc_simai.errors import InputError
from r2cc_simai.strategies.base import Strategy
from r2cc_simai.training.classes import Classes, each_for_itself, equal_ranks
from r2cc_simai.training.fold import no_fold, port_fold
from r2cc_simai.training.plan_loads import plan_loads
from r2cc_simai.training.plans import Planner
from r2cc_simai.training.ranks import NONE, Ranks
from r2cc_simai.training.situation import Situation


@dataclass(frozen=True, eq=False)
class Start:
    """Where classes go on from an earlier run: what each did there, and the second at which it goes on. None: it starts
    with the iteration."""

    pasts: tuple[_core.Past | None, ...]
    resume_s: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Execution:
    """Classes of ranks in a situation, ready to run. Planners keep what they have planned."""

    situation: Situation
    ranks: Ranks
    classes: Classes
    planner: Planner
    folded: bool

    @staticmethod
    def of(situation: Situation, ranks: Ranks, *, fold: bool = True) -> "Execution":
        """With `fold` equal ranks are one class.

        Raises:
            PartitionedError: what is known leaves ranks of a group without a path.
        """
        planner = Planner(situation.strategy, list(situation.views))
        cluster = situation.views[0].cluster
        if fold:
            loads = plan_loads(ranks, planner, bool(cluster.leaves))
            classes = equal_ranks(ranks, cluster, situation.events, loads)
        else:
            classes = each_for_itself(ranks, cluster)
        planner.groups = [tuple(int(r) for r in np.sort(ranks.rank[ranks.members[g]])) for g in classes.first_group]
        return Execution(situation, ranks, classes, planner, fold)

    def run(
        self,
        *,
        record: tuple[int, ...] = (),
        start: Start | None = None,
        held: NDArray[np.bool_] | None = None,
        quiet_nics: tuple[int, ...] | None = None,
    ) -> _core.JobOutcome:
        """Runs the classes. `record` are rows whose spans are kept; `held` (groups,) never start.

        With `quiet_nics` the outcome has quiet points, with the bytes of these NICs.

        Raises:
            PartitionedError: a plan for what is known leaves ranks without a path.
            InputError: nodes of a group do not match.
        """
        strategy, situation = self.situation.strategy, self.situation
        try:
            return _core.run_job(
                core_cluster(situation.cluster),
                ranks=self._rank_classes(record, start),
                groups=self._group_classes(held),
                **port_fold(self.classes) if self.folded else no_fold(),
                known_s=situation.known_s,
                events=nic_events(situation.events),
                planner=self.planner.plan,
                react=self.planner.react if type(strategy).react is not Strategy.react else None,
                roofline=_roofline(self.ranks),
                quiet_nics=quiet_nics,
            )
        except ValueError as error:
            raise InputError(f"trace: {error}") from None

    def _rank_classes(self, record: tuple[int, ...], start: Start | None) -> list[_core.RankClass]:
        ranks, classes = self.ranks, self.classes
        recorded = {int(classes.of_rank[row]) for row in record}
        rows = classes.first_rank
        groups, peers = ranks.groups[rows], ranks.peers[rows]
        group_classes = np.where(groups == NONE, NONE, classes.of_group[groups])
        peer_classes = np.where(peers == NONE, NONE, classes.of_rank[peers])
        peer_ranks = np.where(peers == NONE, NONE, ranks.rank[peers])
        return [
            _core.RankClass(
                trace=ranks.traces[ranks.trace_of[row]],
                rank=int(ranks.rank[row]),
                count=float(classes.rank_count[number]),
                groups=group_classes[number],
                peers=peer_classes[number],
                peer_ranks=peer_ranks[number],
                recorded=number in recorded,
                past=start.pasts[number] if start else None,
                resume_s=float(start.resume_s[number]) if start else 0.0,
            )
            for number, row in enumerate(rows)
        ]

    def _group_classes(self, held: NDArray[np.bool_] | None) -> list[_core.GroupClass]:
        ranks, classes = self.ranks, self.classes
        return [
            _core.GroupClass(
                name=ranks.names[g],
                size=len(ranks.members[g]),
                copies=float(count),
                held=held is not None and bool(held[g]),
            )
            for g, count in zip(classes.first_group, classes.group_count, strict=True)
        ]


def _roofline(ranks: Ranks) -> _core.Roofline | None:
    """Matrix products' share of the peak and the memory's: what a node is made of is not known."""
    gpu = ranks.gpu
    if gpu is None:
        return None
    rates = gpu.peak_flops * gpu.efficiency.gemm, gpu.memory_rate * gpu.efficiency.memory
    return _core.Roofline(flops_per_s=rates[0], bytes_per_s=rates[1], floor_s=gpu.kernel_floor)
