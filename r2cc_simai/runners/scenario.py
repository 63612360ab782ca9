"""The scenario file of a sweep, and the cases that it spells out."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.collectives.operations import operation
from r2cc_simai.config import Strict, read_yaml, validated
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.paths import scenarios_dir
from r2cc_simai.runners.reference import Reference
from r2cc_simai.runners.training_scenario import (
    TrainingBlock,
    TrainingCase,
    check_training,
    failures_of,
    training_cases,
)
from r2cc_simai.strategies.registry import parse_strategy
from r2cc_simai.units import parse_size

MOST_SIZES = 1000


class SizeRange(Strict):
    """Sizes from `from` to `to`, each `factor` times the one before."""

    first: Annotated[str | int, Field(alias="from")]
    to: str | int
    factor: Annotated[float, Field(gt=1)] = 2.0

    def sizes(self) -> list[int]:
        """The sizes in bytes."""
        size, last = float(parse_size(str(self.first))), parse_size(str(self.to))
        if size < 1 or last < size:
            raise InputError(f"sizes from {self.first} to {self.to}: 1 byte at least, and an end not below the start")
        sizes: list[int] = []
        while size <= last and len(sizes) < MOST_SIZES:
            sizes.append(int(size))
            size *= self.factor
        return sizes


def _collective(name: str) -> str:
    try:
        return operation(name).name
    except InputError as error:
        raise ValueError(str(error)) from None


class Block(Strict):
    """All combinations of clusters, sizes, failures, strategies and backends, under one scenario name."""

    scenario: Annotated[str, Field(pattern=r"[A-Za-z0-9][A-Za-z0-9_.\-]*")]
    clusters: Annotated[list[str], Field(min_length=1)]
    sizes: SizeRange | Annotated[list[str | int], Field(min_length=1)]
    strategies: Annotated[list[str], Field(min_length=1)]
    failures: Annotated[list[str], Field(min_length=1)] = Field(default_factory=lambda: ["none"])
    backends: Annotated[list[Backend], Field(min_length=1)] = Field(default_factory=lambda: [Backend.FLOW])
    collective: Annotated[str, AfterValidator(_collective)] = "all_reduce"
    root: Annotated[int, Field(ge=0)] = 0
    iterations: Annotated[int, Field(ge=1, le=100_000)] = 3
    warmup: Annotated[int, Field(ge=0)] = 1
    graph: bool = False
    zero_latency: bool = False
    nic_bytes: bool = False
    references: list[Reference] = Field(default_factory=list)

    @cached_property
    def size_list(self) -> list[int]:
        """The sizes in bytes."""
        if isinstance(self.sizes, SizeRange):
            return self.sizes.sizes()
        return [parse_size(str(size)) for size in self.sizes]


class Scenario(Strict):
    """A scenario file: a title for the report, blocks of cases, and training jobs."""

    title: str
    blocks: list[Block] = Field(default_factory=list)
    training: list[TrainingBlock] = Field(default_factory=list)

    @model_validator(mode="after")
    def _not_empty(self) -> "Scenario":
        if not (self.blocks or self.training):
            raise ValueError("a block is wanted under blocks or under training")
        return self

    def cases(self) -> Iterator["Case | TrainingCase"]:
        """Every case, in the order of the file."""
        for index, block in enumerate(self.blocks):
            axes = product(block.clusters, block.size_list, block.failures, block.strategies, block.backends)
            for cluster, size, failure, strategy, backend in axes:
                yield Case(index, block, cluster, size, failure, strategy, backend)
        for index, job in enumerate(self.training):
            yield from training_cases(index, job)


@dataclass(frozen=True)
class Case:
    """One simulated job of a block."""

    index: int
    block: Block
    cluster: str
    bytes: int
    failure: str
    strategy: str
    backend: Backend

    @property
    def key(self) -> str:
        """What names the case in a run folder."""
        parts = (self.cluster, self.bytes, self.failure, self.strategy, self.backend.value)
        return " ".join([f"{self.index}:{self.block.scenario}", *map(str, parts)])


def load_scenario(name: str) -> tuple[str, Scenario]:
    """The name and content of a scenario: one that ships with the project (`paper`), or a YAML file.

    Every cluster, failure, strategy and size in it is read, so that a mistake shows before anything runs.

    Raises:
        InputError: no such scenario, or the first thing that is wrong with it.
    """
    shipped = {path.stem: path for path in scenarios_dir().glob("*.yml")}
    path = shipped.get(name, Path(name))
    if name not in shipped and path.suffix not in (".yml", ".yaml"):
        raise InputError(
            f"{name!r}: no such scenario; write a .yml file, or one that ships: {', '.join(sorted(shipped))}"
        )
    scenario = validated(Scenario, read_yaml(path), str(path))
    for index, block in enumerate(scenario.blocks):
        _check_block(f"{path}: blocks.{index} ({block.scenario})", block)
    for index, job in enumerate(scenario.training):
        check_training(f"{path}: training.{index} ({job.scenario})", job)
    keys = [case.key for case in scenario.cases()]
    if len(set(keys)) < len(keys):
        double = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"{path}: a case stands twice: {double}")
    return path.stem, scenario


def _check_block(where: str, block: Block) -> None:
    checks: list[tuple[str, Any]] = [("sizes", lambda: block.size_list)]
    checks += [("strategies", lambda s=s: parse_strategy(s)) for s in block.strategies]
    checks += [("clusters", lambda c=c: load_cluster(c)) for c in block.clusters]
    checks += [
        ("failures", lambda c=c, f=f: parse_failures(failures_of(f), load_cluster(c)))
        for c in block.clusters
        for f in block.failures
    ]
    for key, check in checks:
        try:
            check()
        except InputError as error:
            raise InputError(f"{where}: {key}: {error}") from None
