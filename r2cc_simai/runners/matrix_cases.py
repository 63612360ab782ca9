"""The cases that a matrix spells out, and what fails in each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product
from pathlib import Path

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.parse import NONE, incidents_of, parse_failures
from r2cc_simai.failures.registry import is_pattern, parse_pattern
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.runners.matrix import FILTERED, Filter, Matrix, Workload

HOUR_S = 3600.0


@dataclass(frozen=True)
class MatrixCase:
    """One job under one pattern and strategy. `seed` is None where the pattern draws nothing."""

    index: int
    scenario: str
    cluster: str
    workload: Workload
    pattern: str
    strategy: str
    backend: Backend
    seed: int | None
    hours: float | None
    checkpoint_min: float

    @property
    def key(self) -> str:
        """What names the case in a run folder."""
        drawn = [] if self.seed is None else [f"seed {self.seed}"]
        parts = (self.cluster, self.workload.label, self.pattern, self.strategy, self.backend.value, *drawn)
        return " ".join([f"matrix {self.index}:{self.scenario}", *parts])


@dataclass(frozen=True)
class MatrixTask:
    """A case with what fails in it, so that whoever runs it needs no pattern: incidents of a job over hours, or the
    timeline of a short one."""

    case: MatrixCase
    failures: tuple[Incident, ...] | Timeline

    @property
    def key(self) -> str:
        """What names the case in a run folder."""
        return self.case.key


def matrix_cases(index: int, matrix: Matrix) -> Iterator[MatrixCase]:
    """Every case of a matrix, the seeds of one combination one after another."""
    axes = product(matrix.clusters, matrix.workloads, matrix.patterns, matrix.strategies, matrix.backends)
    for cluster, workload, pattern, strategy, backend in axes:
        for seed in matrix.seeds.all if draws(pattern) else [None]:
            case = MatrixCase(
                index=index,
                scenario=matrix.scenario,
                cluster=cluster,
                workload=workload,
                pattern=pattern,
                strategy=strategy,
                backend=backend,
                seed=seed,
                hours=matrix.hours,
                checkpoint_min=matrix.checkpoint_min,
            )
            if (not matrix.only or any(fits(f, case) for f in matrix.only)) and not any(
                fits(f, case) for f in matrix.exclude
            ):
                yield case


def fits(chosen: Filter, case: MatrixCase) -> bool:
    """Whether all keys of a filter fit a case; one without a seed fits no pattern of a seed but `*`."""
    values = {
        "cluster": case.cluster,
        "workload": case.workload.label,
        "pattern": case.pattern,
        "strategy": case.strategy,
        "backend": case.backend.value,
        "seed": "" if case.seed is None else str(case.seed),
    }
    wanted = {key: getattr(chosen, key) for key in FILTERED}
    return all(glob is None or fnmatchcase(values[key], glob) for key, glob in wanted.items())


@lru_cache(maxsize=256)
def draws(pattern: str) -> bool:
    """Whether what fails under a pattern depends on a seed.

    Raises:
        InputError: no such pattern.
    """
    return any(is_pattern(text) and parse_pattern(text).draws for text in texts_of(pattern))


def texts_of(pattern: str) -> Sequence[str]:
    """The parts of a pattern that act together: several are separated by blanks, `none` has none."""
    return tuple(text for text in pattern.split() if text != NONE)


def task_of(case: MatrixCase, base: Path | None) -> MatrixTask:
    """The case with what fails in it. `base`: the folder that files in a pattern's options refer to.

    Raises:
        InputError: the cluster lacks what the pattern names, or the pattern does not work.
    """
    hardware = hardware_of(case)
    seed = case.seed or 0
    try:
        if case.hours is not None:
            return MatrixTask(case, _incidents(case.pattern, hardware, seed, case.hours * HOUR_S, base))
        return MatrixTask(case, parse_failures(texts_of(case.pattern), hardware, seed=seed, base=base))
    except InputError as error:
        raise InputError(str(error).removeprefix("--fail ")) from None


def hardware_of(case: MatrixCase) -> Cluster:
    """The cluster of a case, with what its workload replaces."""
    if case.workload.is_collective:
        return load_cluster(case.cluster)
    return case.workload.training_job(case.cluster).hardware


@lru_cache(maxsize=4096)
def _incidents(pattern: str, cluster: Cluster, seed: int, horizon_s: float, base: Path | None) -> tuple[Incident, ...]:
    """What fails is drawn once for all strategies."""
    found = incidents_of(texts_of(pattern), cluster, seed=seed, horizon_s=horizon_s, base=base)
    return tuple(one for one in found if one.begin_s < horizon_s)
