"""The training file: the model, the data, the lab on which it runs, and the NIC that fails in the middle."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from r2cc_simai.config import Strict, read_yaml, validated
from r2cc_simai.errors import InputError
from r2cc_simai.lab.spec import HEALTHY, LabCase, LabSpec, checked_lab, load_lab
from r2cc_simai.paths import labs_dir

if TYPE_CHECKING:
    from r2cc_simai.lab.training.model import Transformer

ELEMENT_BYTES = 4  # parameters and gradients are float32

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class ModelSpec(Strict):
    """A transformer; its vocabulary is that of the text."""

    layers: Annotated[int, Field(ge=1, le=48)]
    width: Annotated[int, Field(ge=8, le=2048)]
    heads: Count
    context: Annotated[int, Field(ge=4, le=1024)]

    @model_validator(mode="after")
    def _consistent(self) -> "ModelSpec":
        if self.width % self.heads:
            raise ValueError(f"width: {self.width} is no multiple of {self.heads} heads")
        return self


class TextSpec(Strict):
    """Text of a grammar: characters to train on, and sequences that are held out."""

    grammar: str = "harbour"
    characters: Annotated[int, Field(ge=1000, le=10_000_000)] = 60_000
    held_out_sequences: Annotated[int, Field(ge=1, le=10_000)] = 120


class FailureSpec(Strict):
    """What is cut while the gradients of step `step` are summed: a script as in a lab file, its times and byte counts
    those of that one collective."""

    step: Count
    script: Annotated[list[str], Field(min_length=1)]


class TrainingSpec(Strict):
    """A training file.

    The job is trained once without a failure, and once under each strategy with it. `lab` is a lab preset or file; of
    that the servers, NICs and limits are taken, but for the keys in `lab_changes`. Each rank trains on
    `sequences_per_rank` sequences a step.
    """

    description: str = ""
    lab: str
    lab_changes: dict[str, Any] = Field(default_factory=dict)
    model: ModelSpec
    text: TextSpec = TextSpec()
    steps: Annotated[int, Field(ge=2, le=100_000)]
    sequences_per_rank: Count
    learning_rate: Positive = 3e-3
    warmup_steps: Annotated[int, Field(ge=0)] = 10
    seed: Annotated[int, Field(ge=0)] = 1
    failure: FailureSpec
    strategies: Annotated[list[str], Field(min_length=1)]
    perplexity_tolerance_pct: Positive = 0.1

    @model_validator(mode="after")
    def _consistent(self) -> "TrainingSpec":
        if self.failure.step >= self.steps:
            raise ValueError(f"failure.step: {self.failure.step} is not before the last of {self.steps} steps")
        if HEALTHY in self.strategies:
            raise ValueError(f"strategies: {HEALTHY!r} is the job without a failure, which is always trained")
        return self

    def transformer(self, vocabulary: int) -> "Transformer":
        """The model for a vocabulary."""
        from r2cc_simai.lab.training.model import Transformer

        model = self.model
        return Transformer(vocabulary, model.context, model.layers, model.width, model.heads)


def training_names() -> list[str]:
    """Names of the shipped training files, sorted."""
    return sorted(path.stem for path in (labs_dir() / "training").glob("*.yml"))


def load_training(name: str) -> tuple[str, TrainingSpec, LabSpec]:
    """A training file, shipped or of one's own: its short name, what it says, and the lab that it runs on, whose buffer
    is that of all gradients.

    Raises:
        InputError: there is no such file, or it or its lab is wrong.
    """
    path = labs_dir() / "training" / f"{name}.yml" if name in training_names() else Path(name)
    if path.suffix not in (".yml", ".yaml") and not path.is_file():
        raise InputError(f"{name!r}: no such training; write one of {', '.join(training_names())}, or a .yml file")
    spec = validated(TrainingSpec, read_yaml(path), str(path))
    return path.stem, spec, lab_of(spec, path.stem, str(path))


def jobs_of(spec: TrainingSpec) -> list[LabCase]:
    """The job without a failure first, then each strategy with it."""
    failure, script = f"in step {spec.failure.step}", tuple(spec.failure.script)
    return [LabCase(HEALTHY, "none", ())] + [LabCase(strategy, failure, script) for strategy in spec.strategies]


def lab_of(spec: TrainingSpec, name: str, source: str) -> LabSpec:
    """The lab on which a job is trained: one AllReduce of all gradients, the strategies and the failure of the job.

    Raises:
        InputError: the lab, a strategy or the failure is wrong.
    """
    from r2cc_simai.lab.training.text import load_grammar

    try:
        _, lab = load_lab(spec.lab)
        vocabulary = len(load_grammar(spec.text.grammar).characters)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    changes: dict[str, Any] = {
        "collective": "all_reduce",
        "datatype": "float32",
        "reduction": "sum",
        "bytes": spec.transformer(vocabulary).layout.size * ELEMENT_BYTES,
        "strategies": spec.strategies,
        "failures": [],
    }
    checked = checked_lab(name, lab.model_dump() | spec.lab_changes | changes, source)
    try:
        cuts = [cut for case in jobs_of(spec) for cut in case.cuts(checked.cluster(name))]
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    if any(cut.before for cut in cuts):
        raise InputError(f"{source}: failure.script: it has to come in the middle of a step; write a time above 0")
    return checked
