"""How the generation engine gets the actor's new weights, layer by layer, where it runs on the ranks that train.

all_gather: each rank gathers the layers of the other stages, and of every divided tensor the neighbouring parts
(Sheng et al., HybridFlow, arXiv 2409.19256, section 5.3). broadcast: rank 0 gathers a layer from its tensor-parallel
group and broadcasts it to all (Hu et al., OpenRLHF, arXiv 2405.11143).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from r2cc_simai.chakra.schema import CommType
from r2cc_simai.workloads.rlhf_layout import WEIGHTS_PP, WEIGHTS_TP
from r2cc_simai.workloads.rlhf_options import WeightSync
from r2cc_simai.workloads.segment import SegmentBuilder
from r2cc_simai.workloads.step_costs import ACTIVATION_BYTES
from r2cc_simai.workloads.tensors import Tensor


@dataclass(frozen=True)
class Part:
    """Tensors that are sent together: a layer, or what lies outside of the layers; parameters that a rank holds."""

    name: str
    divided: int
    """Of tensors that are divided over the tensor-parallel group."""
    whole: int

    @property
    def held(self) -> int:
        return self.divided + self.whole


def parts(tensors: Sequence[Sequence[Tensor]]) -> list[list[Part]]:
    """Of each stage: a part for each of its layers, and a last one for its embedding, final norm and output head."""
    return [[*_layer_parts(stage), _part("ends", stage, -1)] for stage in tensors]


def _layer_parts(tensors: Sequence[Tensor]) -> list[Part]:
    layers = dict.fromkeys(tensor.site[0] for tensor in tensors if tensor.site[0] >= 0)
    return [_part(f"layer{layer}", tensors, layer) for layer in layers]


def _part(name: str, tensors: Sequence[Tensor], layer: int) -> Part:
    mine = [tensor for tensor in tensors if tensor.site[0] == layer]
    divided = sum(tensor.parameters for tensor in mine if tensor.division == "tp")
    return Part(name, divided, sum(tensor.parameters for tensor in mine) - divided)


def synchronise(b: SegmentBuilder, stages: list[list[Part]], stage: int, tp: int, how: WeightSync) -> None:
    """The weights of all stages to all engines, as a rank of `stage` sees it; `tp` ranks share a tensor in training.

    What ranks of different stages gather from each other has to have one size; smaller parts are padded.
    """
    if how == "broadcast":
        for part in stages[stage]:
            b.collective(f"weights.{part.name}.gather", CommType.ALL_GATHER, "tp", part.divided * ACTIVATION_BYTES)
            whole = part.divided * tp + part.whole
            b.collective(f"weights.{part.name}.broadcast", CommType.BROADCAST, "world", whole * ACTIVATION_BYTES)
        return
    for turn in zip(*stages, strict=True):
        everywhere = b.start(f"weights.{turn[0].name}.stages", CommType.ALL_GATHER, WEIGHTS_PP, padded_bytes(turn))
        b.wait(everywhere)
        for part in turn if everywhere else (turn[stage],):
            if part.divided:
                size = part.divided * ACTIVATION_BYTES
                b.collective(f"weights.{part.name}.parts", CommType.ALL_GATHER, WEIGHTS_TP, size)


def padded_bytes(turn: Sequence[Part]) -> int:
    """What each stage sends where each sends one part."""
    return max(part.held for part in turn) * ACTIVATION_BYTES
