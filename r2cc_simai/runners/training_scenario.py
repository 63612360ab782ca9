"""Training (and serving) jobs in a scenario file, and the cases that they spell out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.config import Strict
from r2cc_simai.errors import InputError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.runners.reference import Reference
from r2cc_simai.runners.training_workload import JobSpec, generators_in, spec_of
from r2cc_simai.strategies.registry import parse_strategy

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
DRAWS_PER_CASE = 20  # so that equal draws can be left out
DAY = "drawn"  # stands for the failures of a case whose block has a day


class Drawn(Strict):
    """Failures at time 0 that are drawn: `nics` distinct NICs of the cluster, `draws` times each number of them."""

    nics: Annotated[list[Count], Field(min_length=1)]
    draws: Annotated[int, Field(ge=1, le=10_000)] = 20
    seed: Annotated[int, Field(ge=0)] = 0


class Day(Strict):
    """Hours of a job in which NICs fail at drawn times, `draws` times.

    `events_per_gpu_day` is the rate of failures; by default the one of network and NICs in
    `reports/published/reliability.csv`. A failed NIC works again after `repair_h`. A job that restarts goes back to
    its last checkpoint; one is made every `checkpoint_min`, at no cost.
    """

    hours: Positive = 24.0
    draws: Annotated[int, Field(ge=1, le=100_000)] = 1000
    seed: Annotated[int, Field(ge=0)] = 0
    events_per_gpu_day: Positive | None = None
    repair_h: Positive = 4.0
    checkpoint_min: Positive = 30.0


class TrainingBlock(Strict):
    """All combinations of clusters, failures and strategies for one job, under one scenario name.

    `megatron`, `rlhf` or `vllm` holds the options of that generator, named as on the command line, without the number
    of GPUs: that is the whole cluster. `nic_rate_gbps` and `backups_per_nic` replace the cluster's own. `repair_h`:
    rows of the extra time until a NIC works again, `failure_induced`. `timelines`: the iteration that a failure hits
    (else the one after it) as a file for Perfetto in the run folder, for each case.
    """

    scenario: Annotated[str, Field(pattern=r"[A-Za-z0-9][A-Za-z0-9_.\-]*")]
    megatron: dict[str, Any] | None = None
    rlhf: dict[str, Any] | None = None
    vllm: dict[str, Any] | None = None
    gpu: str
    mfu_scale: Positive = 1.0
    clusters: Annotated[list[str], Field(min_length=1)]
    nic_rate_gbps: Positive | None = None
    backups_per_nic: Count | None = None
    strategies: Annotated[list[str], Field(min_length=1)]
    failures: list[str] = Field(default_factory=list)
    drawn: Drawn | None = None
    day: Day | None = None
    repair_h: Positive | None = None
    timelines: bool = False
    references: list[Reference] = Field(default_factory=list)

    def job_on(self, cluster: str) -> JobSpec:
        """The job on one of the clusters."""
        return spec_of(self, cluster)

    @model_validator(mode="after")
    def _consistent(self) -> "TrainingBlock":
        if len(generators_in(self)) != 1:
            raise ValueError("write one of megatron, rlhf and vllm")
        if self.day is not None and (self.failures or self.drawn):
            raise ValueError("day draws the failures; drop failures and drawn")
        if self.day is not None and self.timelines:
            raise ValueError("a day has no timelines; drop timelines")
        if not (self.failures or self.drawn or self.day):
            raise ValueError("write failures (none: nothing fails), drawn or day")
        return self


@dataclass(frozen=True)
class TrainingCase:
    """One job through one failure (or, with `block.day`, through drawn days) under one strategy."""

    index: int
    block: TrainingBlock
    cluster: str
    failure: str
    strategy: str

    @property
    def key(self) -> str:
        """What names the case in a run folder."""
        return f"training {self.index}:{self.block.scenario} {self.cluster} {self.failure} {self.strategy}"


def training_cases(index: int, block: TrainingBlock) -> Iterator[TrainingCase]:
    """Every case of a block, the failures as one writes them for `--fail`."""
    for cluster in block.clusters:
        failures = [*block.failures, *_drawn(block.drawn, load_cluster(cluster))]
        for failure, strategy in product(failures or [DAY], block.strategies):
            yield TrainingCase(index, block, cluster, failure, strategy)


def failures_of(failure: str) -> list[str]:
    """The `--fail` options of one pattern: several are separated by blanks; `none` has none."""
    return [] if failure == "none" else failure.split()


def check_training(where: str, block: TrainingBlock) -> None:
    """Reads everything that a block names.

    Raises:
        InputError: the first thing that is wrong, with `where` (file and block) and the key in front.
    """
    for strategy in block.strategies:
        _checked(f"{where}: strategies", partial(parse_strategy, strategy))
    for name in block.clusters:
        _checked(f"{where}: clusters", partial(load_cluster, name))
        cluster = load_cluster(name)
        for failure in block.failures:
            _checked(f"{where}: failures", partial(parse_failures, failures_of(failure), cluster))
        if block.drawn and max(block.drawn.nics) > len(cluster.nics):
            raise InputError(f"{where}: drawn.nics: at most the {len(cluster.nics)} NICs of {name} can fail")
        _checked(where, block.job_on(name).check)


def _checked(where: str, check: Callable[[], object]) -> None:
    try:
        check()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _drawn(drawn: Drawn | None, cluster: Cluster) -> Iterator[str]:
    """Failures for each number of NICs, the same for all strategies; no two alike, and all there are where few are."""
    for count in drawn.nics if drawn else ():
        assert drawn is not None
        random = np.random.default_rng([drawn.seed, count])
        draws = (random.choice(len(cluster.nics), count, replace=False) for _ in range(DRAWS_PER_CASE * drawn.draws))
        distinct = dict.fromkeys(tuple(sorted(nics.tolist())) for nics in draws)
        for nics in list(distinct)[: drawn.draws]:
            yield " ".join(f"{cluster.nics[nic].full_name}@0" for nic in nics)
