"""The scenario file of a sweep, and the cases that it spells out."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.config import Strict, validated
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.failures.registry import load_pattern_file
from r2cc_simai.paths import scenarios_dir
from r2cc_simai.runners.matrix import Matrix, known_collective
from r2cc_simai.runners.matrix_cases import MatrixCase, matrix_cases
from r2cc_simai.runners.matrix_check import check_matrix
from r2cc_simai.runners.reference import Reference
from r2cc_simai.runners.scenario_file import checked, read_scenario
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
        size, last = float(_size(self.first)), _size(self.to)
        if size < 1 or last < size:
            raise InputError(f"sizes from {self.first} to {self.to}: 1 byte at least, and an end not below the start")
        sizes: list[int] = []
        while size <= last and len(sizes) < MOST_SIZES:
            sizes.append(int(size))
            size *= self.factor
        return sizes


def _size(text: str | int) -> int:
    try:
        return parse_size(str(text))
    except OverflowError:
        raise InputError(f"{text}: a size of so many bytes makes no sense") from None


class Block(Strict):
    """All combinations of clusters, sizes, failures, strategies and backends, under one scenario name."""

    scenario: Annotated[str, Field(pattern=r"[A-Za-z0-9][A-Za-z0-9_.\-]*")]
    clusters: Annotated[list[str], Field(min_length=1)]
    sizes: SizeRange | Annotated[list[str | int], Field(min_length=1)]
    strategies: Annotated[list[str], Field(min_length=1)]
    failures: Annotated[list[str], Field(min_length=1)] = Field(default_factory=lambda: ["none"])
    backends: Annotated[list[Backend], Field(min_length=1)] = Field(default_factory=lambda: [Backend.FLOW])
    collective: Annotated[str, AfterValidator(known_collective)] = "all_reduce"
    root: Annotated[int, Field(ge=0)] = 0
    iterations: Annotated[int, Field(ge=1, le=100_000)] = 3
    warmup: Annotated[int, Field(ge=0, le=100_000)] = 1
    graph: bool = False
    zero_latency: bool = False
    nic_bytes: bool = False
    references: list[Reference] = Field(default_factory=list)

    @cached_property
    def size_list(self) -> list[int]:
        """The sizes in bytes."""
        if isinstance(self.sizes, SizeRange):
            return self.sizes.sizes()
        return [_size(size) for size in self.sizes]


class Scenario(Strict):
    """A scenario file: a title for the report, blocks of cases, training jobs, and matrices of both.

    `pattern_files` are relative to the scenario file.
    """

    title: str
    pattern_files: list[str] = Field(default_factory=list)
    blocks: list[Block] = Field(default_factory=list)
    training: list[TrainingBlock] = Field(default_factory=list)
    matrix: list[Matrix] = Field(default_factory=list)

    @model_validator(mode="after")
    def _not_empty(self) -> "Scenario":
        if not (self.blocks or self.training or self.matrix):
            raise ValueError("a block is wanted under blocks or under training or matrix")
        return self

    def cases(self) -> Iterator["Case | TrainingCase | MatrixCase"]:
        """Every case, in the order of the file."""
        for index, block in enumerate(self.blocks):
            axes = product(block.clusters, block.size_list, block.failures, block.strategies, block.backends)
            for cluster, size, failure, strategy, backend in axes:
                yield Case(index, block, cluster, size, failure, strategy, backend)
        for index, job in enumerate(self.training):
            yield from training_cases(index, job)
        for index, matrix in enumerate(self.matrix):
            yield from matrix_cases(index, matrix)


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


@dataclass(frozen=True)
class Loaded:
    """A scenario that has been read and checked: its name, its content, and the folder of its file."""

    name: str
    content: Scenario
    base: Path

    @property
    def pattern_files(self) -> tuple[Path, ...]:
        """The files of patterns, from wherever the program runs."""
        return tuple((self.base / name).resolve() for name in self.content.pattern_files)


def load_scenario(name: str) -> tuple[str, Scenario]:
    """The name and content of a scenario, as `load` reads it."""
    loaded = load(name)
    return loaded.name, loaded.content


def load(name: str) -> Loaded:
    """The scenario of a name: one that ships with the project (`paper`), or a YAML file.

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
    loaded = Loaded(path.stem, validated(Scenario, read_scenario(path), str(path)), path.parent)
    _check(path, loaded)
    return loaded


def _check(path: Path, loaded: Loaded) -> None:
    scenario = loaded.content
    for index, file in enumerate(loaded.pattern_files):
        checked(f"{path}: pattern_files.{index}", partial(load_pattern_file, file))
    for index, block in enumerate(scenario.blocks):
        _check_block(f"{path}: blocks.{index} ({block.scenario})", block)
    for index, job in enumerate(scenario.training):
        where = f"training.{index} ({job.scenario})"
        checked(str(path), partial(check_training, where, job))
    for index, matrix in enumerate(scenario.matrix):
        check_matrix(f"{path}: matrix.{index} ({matrix.scenario})", index, matrix, loaded.base)
    counts = Counter(case.key for case in scenario.cases())
    double = next((key for key, count in counts.items() if count > 1), None)
    if double is not None:
        raise InputError(f"{path}: a case stands twice: {double}")


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
        checked(f"{where}: {key}", check)
