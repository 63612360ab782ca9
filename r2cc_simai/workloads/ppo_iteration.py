"""One PPO iteration as a rank of one pipeline stage runs it, phase after phase.

generation: the actor's engine computes the prompts and then one token a step for all sequences.
exchange: all ranks gather the tokens of all responses.
reward, reference, values: forward passes of the reward model, the reference model, and the critic.
advantages: their mean and variance over all ranks.
actor, critic: optimizer steps over mini-batches, the actor's first.
weights: the new weights of the actor to its engine.
Source: Sheng et al., HybridFlow, arXiv 2409.19256, section 2.1; Schulman et al., arXiv 1707.06347. The actor's own
log-probabilities are those that its engine gave.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from r2cc_simai.chakra.schema import CommType
from r2cc_simai.workloads.assemble import Instance, assemble
from r2cc_simai.workloads.engine_batches import Step
from r2cc_simai.workloads.pipeline import schedule
from r2cc_simai.workloads.program import Program
from r2cc_simai.workloads.rlhf_options import RlhfOptions
from r2cc_simai.workloads.segment import Names, Segment, SegmentBuilder
from r2cc_simai.workloads.serving_costs import TOKEN_BYTES
from r2cc_simai.workloads.serving_stage import TAGS_OF_STEP, ServingStage
from r2cc_simai.workloads.stage import Stage
from r2cc_simai.workloads.weight_sync import Part, synchronise

MOMENT_BYTES = 3 * 4
"""Sum, sum of squares and count of a rank's advantages (fp32)."""


class PhaseNames(Names):
    """Names of a program's nodes, each behind the name of its phase."""

    def __init__(self, program: Names, phase: str) -> None:
        super().__init__()
        self._program, self._phase = program, phase

    def __call__(self, name: str) -> int:
        return self._program(f"{self._phase}.{name}")


@dataclass(frozen=True)
class StageModels:
    """What one pipeline stage of training holds."""

    engine: ServingStage
    forward: dict[str, Stage]
    """The phases that only pass forward, in order."""
    training: dict[str, Stage]
    """The phases that train, in order."""


class Iteration:
    """Builds the program of a stage.

    Args:
        options: of the job.
        steps: of each engine for one batch of responses.
        weights: of the actor, per stage.
        roles: kinds of the group roles.
    """

    def __init__(
        self,
        options: RlhfOptions,
        steps: Sequence[Step],
        weights: list[list[Part]],
        roles: tuple[str, ...],
    ) -> None:
        self._options, self._steps, self._weights, self._roles = options, steps, weights, roles
        self._names = Names()
        self._instances: list[Instance] = []
        self._tags = 0

    def program(self, models: StageModels, stage: int) -> tuple[Program, int]:
        """The program of a stage, and how many FLOPs of it are recomputation."""
        self._generation(models.engine)
        self._collective("exchange", CommType.ALL_GATHER, self.exchanged_bytes(self._options))
        for phase, model in models.forward.items():
            self._forward(phase, model)
        self._collective("advantages", CommType.ALL_REDUCE, MOMENT_BYTES)
        for phase, model in models.training.items():
            for _ in range(self._options.optimizer_steps):
                self._train(phase, model, stage)
        self._synchronise(stage)
        recomputed = sum(instance.segment.recomputed_ops for instance in self._instances)
        return assemble(tuple(self._names.known), self._instances), recomputed

    @staticmethod
    def exchanged_bytes(options: RlhfOptions) -> int:
        """Tokens that each rank contributes: those of its share of the sequences."""
        return options.rollout_batch_size // options.gpus * options.sequence * TOKEN_BYTES

    def _generation(self, engine: ServingStage) -> None:
        names = PhaseNames(self._names, "generation")
        segments = []
        for step in self._steps:
            b = SegmentBuilder(names, self._roles)
            engine.add(b, step)
            segments.append(b.build())
        for _ in range(self._options.generation_batches):
            self._add(segments)
            self._tags += len(segments) * TAGS_OF_STEP

    def _forward(self, phase: str, model: Stage) -> None:
        model.names = PhaseNames(self._names, phase)
        segment = model.forward(0, first=False)
        for _ in range(self._microbatches(self._options.rollout_batch_size)):
            self._add([segment])
            self._tags += model.tag_stride

    def _train(self, phase: str, model: Stage, stage: int) -> None:
        model.names = PhaseNames(self._names, phase)
        microbatches = self._microbatches(self._options.ppo_mini_batch_size)
        forward, backward, last = (
            model.forward(0, first=False),
            model.backward(0, last=False),
            model.backward(0, last=True),
        )
        for step in schedule(self._options.pipeline_model_parallel_size, stage, microbatches):
            final = step.microbatch == microbatches - 1
            segment = forward if step.forward else last if final else backward
            self._instances.append(Instance(segment, self._tags + step.microbatch * model.tag_stride))
        self._tags += microbatches * model.tag_stride
        self._add([model.update()])

    def _microbatches(self, sequences: int) -> int:
        return sequences // (self._options.replicas * self._options.micro_batch_size)

    def _synchronise(self, stage: int) -> None:
        b = SegmentBuilder(self._names, self._roles)
        options = self._options
        synchronise(b, self._weights, stage, options.tensor_model_parallel_size, options.weight_sync)
        self._add([b.build()])

    def _collective(self, name: str, comm_type: CommType, size: int) -> None:
        b = SegmentBuilder(self._names, self._roles)
        b.collective(name, comm_type, "world", size)
        self._add([b.build()])

    def _add(self, segments: Sequence[Segment]) -> None:
        self._instances += (Instance(segment, self._tags) for segment in segments)
