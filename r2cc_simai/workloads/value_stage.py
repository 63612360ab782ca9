"""Pipeline stages of a model with a scalar head: critics and reward models of reinforcement learning.

The head multiplies each token's activations by one row of weights, which every tensor-parallel rank does for itself;
that takes no time beside a layer and no communication.
"""

from collections.abc import Iterator

from r2cc_simai.workloads.layers import Hook
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.segment import SegmentBuilder
from r2cc_simai.workloads.stage import Stage
from r2cc_simai.workloads.tensors import Tensor, logits_tensors


def with_value_head(model: Model) -> Model:
    """The model without an output head that is its input embedding: no stage but the first holds a copy of that."""
    return model.model_copy(update={"tied_embeddings": False})


class ValueStage(Stage):
    """A stage whose last one ends in a scalar for each token instead of logits."""

    def _head_forward(self, b: SegmentBuilder) -> None:
        """Nothing that takes time."""

    def _head_backward(self, b: SegmentBuilder, ready: Hook) -> None:
        ready(b, -1, "logits")

    def _head_tensors(self) -> Iterator[Tensor]:
        model, sizes = self._costs.model, self._costs.sizes
        yield from (tensor for tensor in logits_tensors(model, sizes) if tensor.division == "replicated")
        yield Tensor((-1, "logits"), model.hidden, "replicated")
