"""The manifest beside a trace: what it was made of and what it adds up to."""

from typing import Any

from pydantic import Field

from r2cc_simai.config import Strict


class Traffic(Strict):
    """What one kind of communication adds up to in one iteration."""

    group_kind: str
    """Kind of communicator group ("tp", "dp", ...), or "pp", "cp" for sends between peers."""
    comm_type: str
    """ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER, BROADCAST or SEND."""
    class_count: tuple[int, ...]
    """Per class of ranks: operations of one rank of it."""
    class_bytes: tuple[int, ...]
    """Per class of ranks: sum of comm_size of one rank of it."""
    total_count: int
    """Operations of all ranks; a collective counts once for each of its members."""
    total_bytes: int
    """Sum of comm_size over all ranks."""


class GradientBucket(Strict):
    """Gradients that one collective sums."""

    rank_class: int
    group_kind: str
    parameters: int
    """Without padding."""


class Check(Strict):
    """One closed form against what the nodes of the programs add up to."""

    name: str
    formula: int | float
    """From the options and the model alone."""
    trace: int | float
    """Counted in the programs."""
    tolerance: float = 0.0
    """Allowed relative difference; 0 where the two have to be equal."""
    of_trace: bool = True
    """Whether a difference means that the trace is wrong; a published figure may not fit its own model's shape."""

    @property
    def ok(self) -> bool:
        """Whether both agree within the tolerance."""
        if not self.tolerance:
            return self.trace == self.formula
        return abs(self.trace - self.formula) <= self.tolerance * abs(self.formula)


class Manifest(Strict):
    """What a trace was made of and what it adds up to; written as JSON beside it."""

    version: str
    """Of r2cc-simai."""
    generator: str
    """Name of what made the trace: "megatron", "vllm", "rlhf"."""
    model: dict[str, Any]
    """The model's whole description."""
    options: dict[str, Any]
    """The generator's options, names as on the command line."""
    compute_times: str
    """Where the durations of compute nodes come from."""
    layout: dict[str, int]
    """Sizes of the parallel dimensions ("tp", "cp", "dp", "pp", "ep", ...) and the number of ranks."""
    classes: tuple[str, ...]
    """A name for each class of ranks."""
    parameters: int
    """Of the whole model, without replicas."""
    parameters_per_rank: tuple[int, ...]
    """Per class of ranks: parameters that a rank of it holds."""
    buckets: tuple[GradientBucket, ...] = ()
    """Of one rank of each class; training only."""
    flops: int
    """Floating-point operations of all ranks in one iteration, recomputation included."""
    model_flops: int
    """The same without recomputation: what the model needs."""
    tokens: int
    """Tokens that one iteration processes."""
    tokens_are: str = "trained"
    """Which tokens these are: "trained", "generated", "prompts", ..."""
    traffic: tuple[Traffic, ...]
    checks: tuple[Check, ...] = Field(default=())

    @property
    def flops_per_token(self) -> float:
        """Floating-point operations of one token, recomputation included."""
        return self.flops / self.tokens
