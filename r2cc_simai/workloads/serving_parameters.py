"""Parameters that a rank of a serving deployment holds."""

from r2cc_simai.workloads.model_math import (
    layer_kind,
    layer_parameters,
    norm_parameters,
    rank_layer_parameters,
)
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.serving_layout import Layers, ServingSizes


def rank_parameters(model: Model, sizes: ServingSizes, layers: Layers) -> int:
    """Of a rank of the stage that has `layers`; the model's vocabulary is padded."""
    table = model.vocab // sizes.tp * model.hidden
    held = sum(_layer(model, sizes, layer) for layer in layers)
    first, last = layers.start == 0, layers.stop == model.layers
    if first:
        held += table + (model.max_positions * model.hidden if model.positions == "learned" else 0)
    if last:
        held += norm_parameters(model) + (0 if first and model.tied_embeddings else table)
    return held


def _layer(model: Model, sizes: ServingSizes, layer: int) -> int:
    """Where copies of tokens travel, every rank holds the shared experts whole."""
    kind = layer_kind(model, layer)
    held = rank_layer_parameters(model, kind, sizes.tp, sizes.ep, sizes.expert_tp)
    shared = layer_parameters(model, kind).shared_experts if sizes.routes else held.shared_experts
    return held.total - held.shared_experts + shared
