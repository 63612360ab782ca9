"""Closed forms of a model: what ranks hold, and FLOPs against the formulas of the literature."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.model_math import (
    flops_forward,
    flops_training,
    kv_heads_per_rank,
    layer_kind,
    layer_parameters,
    padded_vocab,
    parameters,
    rank_layer_parameters,
)
from r2cc_simai.workloads.models import load_model, model_names

GPT = ["gpt3-2.7b", "gpt3-7b", "gpt3-13b", "gpt3-175b"]


@pytest.mark.parametrize("name", GPT)
@given(batch=st.integers(1, 4096), seq=st.integers(1, 8192))
def test_training_flops_of_gpt(name, batch, seq):
    """F = 72 B s l h^2 (1 + s/6h + V/12lh): Narayanan et al. (arXiv 2104.04473, appendix), without recomputation.

    (Their 96 B s l h^2 (1 + s/6h + V/16lh) has one forward pass of the layers more.)
    """
    model = load_model(name)
    layers, h, V = model.layers, model.hidden, model.vocab
    formula = 72 * batch * seq * layers * h**2 * (1 + seq / (6 * h) + V / (12 * layers * h))
    assert batch * seq * flops_training(model, seq, causal=False) == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize("name", ["llama2-7b", "llama2-70b", "llama3.1-8b", "llama3.1-405b", "mixtral-8x7b"])
@pytest.mark.parametrize("seq", [2048, 8192])
def test_training_flops_of_a_token(name, seq):
    """6 N + 12 L H Q T (PaLM, arXiv 2204.02311, appendix B), N the active parameters without the input embedding.

    Norms are the only parameters that do not multiply: N differs by less than 0.01%.
    """
    model = load_model(name)
    N = parameters(model).active - parameters(model).embedding
    attention = 12 * model.layers * model.heads * model.head_width * seq
    assert flops_training(model, seq, causal=False) == pytest.approx(6 * N + attention, rel=1e-4)


@pytest.mark.parametrize("name", model_names())
def test_causal_mask_halves_scores_and_values(name):
    """On average a token sees half of its sequence; the rest of the FLOPs does not depend on the sequence."""
    model = load_model(name)
    weights = flops_forward(model, 0)
    whole, half = flops_forward(model, 4096, causal=False), flops_forward(model, 4096)
    assert half - weights == pytest.approx((whole - weights) / 2)
    assert flops_forward(model, 8192) - weights == pytest.approx(2 * (half - weights))


@pytest.mark.parametrize("name", model_names())
def test_layers_add_up_to_the_model(name):
    """Total = embedding + positions + head + final norm + sum over layers of their kind."""
    model = load_model(name)
    count = parameters(model)
    layers = sum(layer_parameters(model, layer_kind(model, layer)).total for layer in range(model.layers))
    final_norm = model.hidden * (2 if model.norm == "layernorm" else 1)
    assert layers + count.embedding + count.positions + count.head + final_norm == count.total


@pytest.mark.parametrize("name", model_names())
@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_tensor_parallel_ranks_hold_the_layer_once(name, tp):
    """Sum over ranks - layer = (tp - 1) x what each rank has whole: norms, row-parallel biases, low-rank weights."""
    model = load_model(name)
    whole, rank = layer_parameters(model, "dense"), rank_layer_parameters(model, "dense", tp)
    biases = model.hidden if model.biases else 0
    latent = model.latent_attention
    low = model.hidden * (latent.q_lora_rank + latent.kv_lora_rank + latent.qk_rope_head_dim) if latent else 0
    assert tp * rank.attention - whole.attention == (tp - 1) * (biases + low)
    assert tp * rank.mlp - whole.mlp == (tp - 1) * biases
    assert rank.norms == whole.norms


@pytest.mark.parametrize(
    ("name", "ep", "expert_tp"), [("mixtral-8x7b", 8, 1), ("mixtral-8x7b", 4, 2), ("deepseek-v3", 64, 1)]
)
def test_expert_parallel_ranks_hold_each_expert_once(name, ep, expert_tp):
    """ep x expert_tp ranks hold the routed experts once; router and norms are on each of them."""
    model = load_model(name)
    whole, rank = layer_parameters(model, "expert"), rank_layer_parameters(model, "expert", 2, ep, expert_tp)
    assert ep * expert_tp * rank.experts == whole.experts
    assert (rank.router, rank.norms) == (whole.router, whole.norms)
    assert rank.replicated == rank.total - rank.experts


def test_fewer_key_heads_than_ranks_are_shared():
    """Llama-2-70B has 8 key/value heads: 16 ranks have one each, two ranks the same one."""
    model = load_model("llama2-70b")
    assert [kv_heads_per_rank(model, tp) for tp in (1, 8, 16)] == [8, 1, 1]


def test_padded_vocabulary():
    """Megatron-LM pads the vocabulary to a multiple of 128 x tp: GPT-3's 50,257 to 50,304, and to 51,200 for tp 8."""
    model = load_model("gpt3-175b")
    assert [padded_vocab(model, tp) for tp in (1, 8)] == [50304, 51200]


def test_dense_model_has_no_expert_layers():
    """Asking for one is the caller's error, in one line."""
    with pytest.raises(InputError, match="llama2-7b: has no expert layers"):
        layer_parameters(load_model("llama2-7b"), "expert")
