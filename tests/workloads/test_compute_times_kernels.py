"""Kernels of the blocks: FLOPs against the model's closed form, bytes against the definition of each kernel."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.attention_kernels import attention_core
from r2cc_simai.workloads.blocks import BLOCKS, PASSES, BlockRequest
from r2cc_simai.workloads.kernel import gemm
from r2cc_simai.workloads.kernels import block_kernels
from r2cc_simai.workloads.model_math import flops_forward, layer_kind
from r2cc_simai.workloads.models import load_model, model_names

SEQ = 2048
LAYER = {"dense": ("attention", "mlp"), "expert": ("attention", "router", "experts")}
DENSE = [name for name in model_names() if load_model(name).experts is None]


def flops(request):
    """FLOPs of a block's kernels."""
    return sum(kernel.flops for kernel in block_kernels(request))


def moved(request):
    """Bytes of a block's kernels."""
    return sum(kernel.bytes for kernel in block_kernels(request))


def model_flops(model, pass_, **layout):
    """FLOPs of all blocks of a model for one sequence."""
    layers = [block for layer in range(model.layers) for block in LAYER[layer_kind(model, layer)]]
    request = BlockRequest(model, "logits", pass_, SEQ, SEQ, **layout)
    return sum(flops(replace(request, block=block)) for block in ("embedding", *layers, "logits"))


@pytest.mark.parametrize("name", model_names())
def test_forward_flops_are_the_closed_form(name):
    """Sum over blocks and layers = tokens x flops_forward(seq), causal."""
    model = load_model(name)
    assert model_flops(model, "forward") == pytest.approx(SEQ * flops_forward(model, SEQ), rel=1e-12)


@pytest.mark.parametrize("name", ["gpt3-13b", "mixtral-8x7b", "deepseek-v3"])
def test_backward_flops_are_twice_the_forward_ones(name):
    """Training = 3 x forward; the scores that flash attention computes again are executed but not counted."""
    model = load_model(name)
    assert model_flops(model, "backward") == 2 * model_flops(model, "forward")
    core = block_kernels(BlockRequest(model, "attention_core", "dgrad", SEQ, SEQ))
    assert [kernel.repeated for kernel in core] == [1.25]


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("block", ["attention", "mlp"])
@pytest.mark.parametrize("pass_", PASSES)
def test_tensor_parallel_ranks_share_the_flops(name, block, pass_):
    """tp x FLOPs of a rank = FLOPs of the block."""
    request = BlockRequest(load_model(name), block, pass_, SEQ, SEQ)
    assert 8 * flops(replace(request, tp=8)) == flops(request)


@given(
    micro_batch=st.integers(1, 8),
    cp=st.sampled_from([1, 2, 4, 8]),
    name=st.sampled_from(["llama3.1-8b", "deepseek-v3"]),
)
def test_context_parallel_ranks_share_the_flops(micro_batch, cp, name):
    """cp x FLOPs of a rank with tokens / cp = FLOPs of the block: keys per query do not change."""
    whole = BlockRequest(load_model(name), "attention", "forward", micro_batch * SEQ, SEQ, micro_batch)
    part = replace(whole, tokens=micro_batch * SEQ // cp, cp=cp)
    assert cp * flops(part) == pytest.approx(flops(whole), rel=1e-12)


@pytest.mark.parametrize(("ep", "expert_tp"), [(1, 8), (8, 8), (8, 1), (2, 4)])
def test_expert_flops_of_a_rank(ep, expert_tp):
    """Balanced: tokens x top-k x 3 x 2 x h x ffn / tp, whatever the experts' own layout."""
    model = load_model("mixtral-8x7b")
    request = BlockRequest(model, "experts", "forward", SEQ, SEQ, tp=8, ep=ep, expert_tp=expert_tp)
    assert flops(request) == SEQ * 2 * 3 * 2 * model.hidden * 14336 // 8


@pytest.mark.parametrize("block", BLOCKS)
@given(tokens=st.integers(1, 1 << 16), tp=st.sampled_from([1, 2, 4, 8]))
def test_backward_is_dgrad_and_wgrad(block, tokens, tp):
    """The kernels of backward are those of its two parts."""
    request = BlockRequest(load_model("deepseek-v3"), block, "backward", tokens, tokens, tp=tp, parameters=1000)
    if block != "optimizer":
        parts = [block_kernels(replace(request, pass_=part)) for part in ("dgrad", "wgrad")]
        assert block_kernels(request) == (*parts[0], *parts[1])
    assert all(kernel.bytes > 0 and kernel.flops >= 0 for kernel in block_kernels(request))


def test_product():
    """2 m n k FLOPs; 2 (m k + k n + m n) bytes; with experts every expert's weights that rows meet."""
    kernel = gemm("product", 100, 30, 20)
    assert (kernel.flops, kernel.bytes) == (2 * 100 * 30 * 20, 2 * (100 * 20 + 20 * 30 + 100 * 30))
    assert gemm("experts", 100, 30, 20, groups=4).bytes == kernel.bytes + 2 * 3 * 20 * 30
    assert gemm("experts", 3, 30, 20, groups=8).bytes == 2 * (3 * 20 + 3 * 20 * 30 + 3 * 30)


def test_weight_gradients_are_accumulated_in_fp32():
    """x and dy are read in bf16; the sum over micro-batches is read and written in 4 bytes."""
    model = load_model("llama2-7b")
    head = block_kernels(BlockRequest(model, "logits", "wgrad", SEQ, SEQ))
    assert [k.bytes for k in head] == [2 * SEQ * (4096 + 32000) + 2 * 4 * 4096 * 32000]


@pytest.mark.parametrize(("name", "tp"), [("llama2-7b", 1), ("llama2-70b", 8), ("llama2-70b", 16)])
def test_decode_reads_the_cache(name, tp):
    """2 (key and value) x kv_heads x head_dim x 2 bytes for each cached token; 16 ranks share 8 key/value heads."""
    model = load_model(name)
    batch, context = 32, 1000
    core = attention_core(BlockRequest(model, "attention", "forward", batch, context, batch, "decode", tp))
    cache = 2 * max(1, model.key_heads // tp) * model.head_width * 2 * batch * context
    queries_and_outputs = 2 * 2 * batch * model.heads // tp * model.head_width
    assert core.bytes == cache + queries_and_outputs
    assert core.flops == 2 * 2 * batch * context * model.heads // tp * model.head_width


def test_decode_of_latent_attention_reads_the_latent_cache():
    """DeepSeek-V3: 512 + 64 elements a token, for all heads, on every rank (arXiv 2412.19437, section 2.1.1)."""
    core = attention_core(BlockRequest(load_model("deepseek-v3"), "attention", "forward", 1, 10**6, 1, "decode", tp=8))
    assert core.bytes == pytest.approx(10**6 * (512 + 64) * 2, rel=1e-3)


def test_prefill_of_a_chunk_sees_what_came_before():
    """The last 512 of 2048 tokens see 1536 + 256 keys on average; four chunks see what one prefill does."""
    model = load_model("llama2-7b")
    chunks = [
        BlockRequest(model, "attention_core", "forward", 512, end, phase="prefill") for end in range(512, 2049, 512)
    ]
    assert chunks[3].keys_per_query == 1792
    whole = BlockRequest(model, "attention_core", "forward", SEQ, SEQ, phase="prefill")
    assert sum(map(flops, chunks)) == flops(whole)


def test_sequence_parallelism_divides_norms_and_residuals():
    """The saved bytes are 7/8 of (norm 2 + residual 3) x tokens x hidden x 2."""
    request = BlockRequest(load_model("gpt3-175b"), "mlp", "forward", SEQ, SEQ, tp=8)
    saved = moved(request) - moved(replace(request, sequence_parallel=True))
    assert saved == 7 * 5 * SEQ * 12288 * 2 // 8


def test_optimizer_bytes():
    """Adam: fp32 weight and two moments read and written, fp32 gradient read, bf16 weight written: 30 bytes."""
    step = BlockRequest(load_model("llama2-7b"), "optimizer", parameters=1000)
    assert (moved(step), moved(replace(step, gradient_bytes=2))) == (30_000, 28_000)


def test_loss_belongs_to_training():
    """Serving ends with the logits."""
    request = BlockRequest(load_model("llama2-7b"), "logits", "forward", 8, 8)
    names = [[k.name for k in block_kernels(replace(request, phase=phase))] for phase in ("train", "decode")]
    assert names == [["final norm", "head", "loss"], ["final norm", "head"]]


@pytest.mark.parametrize("block", ["router", "experts"])
def test_dense_model_has_no_experts(block):
    """One line that names the model."""
    with pytest.raises(InputError, match="llama2-7b: has no expert layers"):
        block_kernels(BlockRequest(load_model("llama2-7b"), block, "forward", 8, 8))
