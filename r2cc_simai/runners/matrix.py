"""`matrix:` of a scenario file: clusters x workloads x patterns x strategies x backends x seeds, with filters."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from r2cc_simai.collectives.operations import operation
from r2cc_simai.config import Strict
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError
from r2cc_simai.results.statistics.stopping import Stop
from r2cc_simai.runners.collective import Job
from r2cc_simai.runners.training_scenario import Count, Positive
from r2cc_simai.runners.training_workload import JobSpec, generators_in, label_of, spec_of
from r2cc_simai.units import parse_size

MOST_SEEDS = 1_000_000
MOST_HOURS = 1e6
FILTERED = ("cluster", "workload", "pattern", "strategy", "backend", "seed")

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
Name = Annotated[str, Field(pattern=r"[A-Za-z0-9][A-Za-z0-9_.\-]*")]
Iterations = Annotated[int, Field(ge=1, le=100_000)]


def known_collective(name: str) -> str:
    """The collective's own name. Raises ValueError, as pydantic wants it."""
    try:
        return operation(name).name
    except InputError as error:
        raise ValueError(str(error)) from None


class Seeds(Strict):
    """Seeds of drawn patterns: `count` from `first` on, or those of a list. A bare number is a count from 0 on."""

    first: Seed = 0
    count: Annotated[int, Field(ge=1, le=MOST_SEEDS)] = 1
    each: Annotated[list[Seed], Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if type(value) is int:
            return {"count": value}
        if isinstance(value, list):
            return {"each": value}
        if not isinstance(value, dict):
            raise ValueError(f"write a number of seeds, a list, or {{first: 100, count: 50}}, not {value!r}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> "Seeds":
        if self.each is not None and len(set(self.each)) < len(self.each):
            raise ValueError("a seed stands twice")
        return self

    @property
    def all(self) -> list[int]:
        """The seeds in their order."""
        return self.each if self.each is not None else list(range(self.first, self.first + self.count))


class Workload(Strict):
    """A collective (`collective` and `size`), or a job (`megatron`, `rlhf` or `vllm`, `gpu`), as in the other blocks.

    `name` is what filters and messages call it; by default the collective with its size, or the model.
    """

    name: str = ""
    collective: Annotated[str, AfterValidator(known_collective)] | None = None
    size: str | int | None = None
    iterations: Iterations = 3
    warmup: Annotated[int, Field(ge=0, le=100_000)] = 1
    graph: bool = False
    root: Annotated[int, Field(ge=0)] = 0
    megatron: dict[str, Any] | None = None
    rlhf: dict[str, Any] | None = None
    vllm: dict[str, Any] | None = None
    gpu: str | None = None
    mfu_scale: Positive = 1.0
    nic_rate_gbps: Positive | None = None
    backups_per_nic: Count | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "Workload":
        kinds = [*(["collective"] if self.is_collective else []), *generators_in(self)]
        if len(kinds) != 1:
            raise ValueError("write one of collective, megatron, rlhf and vllm")
        needed = "size" if self.is_collective else "gpu"
        if getattr(self, needed) is None:
            raise ValueError(f"{needed} is missing beside {kinds[0]}")
        of_collectives = {"size", "iterations", "warmup", "graph", "root"}
        of_training = {"gpu", "mfu_scale", "nic_rate_gbps", "backups_per_nic"}
        foreign = (of_training if self.is_collective else of_collectives) & self.model_fields_set
        if foreign:
            raise ValueError(f"{sorted(foreign)[0]} does not belong beside {kinds[0]}")
        return self

    @property
    def is_collective(self) -> bool:
        """Whether it is a collective, and no job of traces."""
        return self.collective is not None

    @property
    def label(self) -> str:
        """What filters and messages call it."""
        if self.name:
            return self.name
        if self.is_collective:
            return f"{self.collective} {self.size}"
        return label_of(self)

    @property
    def bytes(self) -> int:
        """Size of a collective's buffer, bytes; 0 for a training job.

        Raises:
            InputError: the size is none.
        """
        if self.size is None:
            return 0
        try:
            return parse_size(str(self.size))
        except OverflowError:
            raise InputError(f"{self.size}: a size of so many bytes makes no sense") from None

    def collective_job(self, backend: Backend) -> Job:
        """The collective as `run_job` takes it."""
        assert self.collective is not None
        return Job(self.bytes, self.collective, self.iterations, self.warmup, self.graph, backend, self.root)

    def training_job(self, cluster: str) -> JobSpec:
        """The training job on a cluster; it takes all of it."""
        return spec_of(self, cluster)


class Filter(Strict):
    """Cases by shell patterns (`h100x*`) on what tells them apart; a case fits where all keys that are written do."""

    cluster: Text | None = None
    workload: Text | None = None
    pattern: Text | None = None
    strategy: Text | None = None
    backend: Text | None = None
    seed: Text | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> "Filter":
        if not self.model_fields_set or all(getattr(self, key) is None for key in FILTERED):
            raise ValueError(f"an empty filter; write one of {', '.join(FILTERED)}")
        return self


class Matrix(Strict):
    """All combinations of the lists, under one scenario name; `only` and `exclude` choose among them.

    With `hours` the job goes on for so long (a course, with a checkpoint every `checkpoint_min`); without, each pattern
    meets the short job of `blocks` and `training`. Patterns that draw are repeated for every seed; with `stop` until
    the means are known well enough.
    """

    scenario: Name
    clusters: Annotated[list[str], Field(min_length=1)]
    workloads: Annotated[list[Workload], Field(min_length=1)]
    patterns: Annotated[list[str], Field(min_length=1)] = Field(default_factory=lambda: ["none"])
    strategies: Annotated[list[str], Field(min_length=1)]
    backends: Annotated[list[Backend], Field(min_length=1)] = Field(default_factory=lambda: [Backend.FLOW])
    seeds: Seeds = Field(default_factory=Seeds)
    hours: Annotated[float, Field(gt=0, le=MOST_HOURS)] | None = None
    checkpoint_min: Positive = 30.0
    only: list[Filter] = Field(default_factory=list)
    exclude: list[Filter] = Field(default_factory=list)
    stop: Stop | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Matrix":
        if self.hours is None and "checkpoint_min" in self.model_fields_set:
            raise ValueError("checkpoint_min is for a job over hours; write hours, or drop it")
        if self.stop is not None and self.stop.needs_course and self.hours is None:
            raise ValueError(f"stop: {self.stop.metric} is of a job over hours; write hours")
        labels = [workload.label for workload in self.workloads]
        double = next((label for label in labels if labels.count(label) > 1), None)
        if double is not None:
            raise ValueError(f"workloads: two are called {double!r}; give each a name")
        return self
