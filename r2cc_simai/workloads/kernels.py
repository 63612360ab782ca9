"""The kernels of a block: what a roofline times, what a table of kernels is asked for, and a trace's FLOPs and bytes.

Weights and activations have two bytes, elementwise kernels are fused, attention is flash attention with a causal
mask. Backward passes follow from the forward kernels: a product has two gradients of the same FLOPs.
"""

from r2cc_simai.workloads.attention_kernels import attention_core, attention_kernels
from r2cc_simai.workloads.blocks import BlockRequest
from r2cc_simai.workloads.kernel import ELEMENT, Kernel, gemm, input_gradient, memory, weight_gradient
from r2cc_simai.workloads.mlp_kernels import expert_kernels, mlp_kernels, router_kernels
from r2cc_simai.workloads.model_math import padded_vocab

# Adam in mixed precision: reads an fp32 master weight and two fp32 moments, writes them back and a bf16 weight; the
# gradient comes on top (Rajbhandari et al., arXiv 1910.02054, section 3.1).
ADAM_BYTES = 3 * 4 * 2 + ELEMENT
FP32 = 4


def block_kernels(request: BlockRequest) -> tuple[Kernel, ...]:
    """The kernels of one pass of a block, in order.

    Raises:
        InputError: the model has no such block (experts of a dense model).
    """
    forward = _FORWARD[request.block](request)
    if request.pass_ == "forward" or request.block == "optimizer":
        return tuple(forward)
    inputs = [input_gradient(kernel) for kernel in reversed(forward) if not _is_table(request)]
    weights = [weight_gradient(kernel, request.gradient_bytes) for kernel in reversed(forward) if kernel.kind == "gemm"]
    if _is_table(request):
        weights = [_scattered_gradients(request)]
    if request.pass_ == "dgrad":
        return tuple(inputs)
    if request.pass_ == "wgrad":
        return tuple(weights)
    return (*inputs, *weights)


def embedding_kernels(request: BlockRequest) -> list[Kernel]:
    """Look-up: a row read and written for each token."""
    return [memory("embedding", 2 * request.tokens * request.model.hidden)]


def logits_kernels(request: BlockRequest) -> list[Kernel]:
    """Final norm and output head; in training the loss, which reads the fp32 logits twice and writes them once."""
    model, t = request.model, request.tokens
    columns = padded_vocab(model, request.tp) / request.tp if request.tp > 1 else model.vocab
    kernels = [memory("final norm", 2 * request.dense_tokens * model.hidden), gemm("head", t, columns, model.hidden)]
    if request.phase == "train":
        kernels.append(memory("loss", 3 * t * columns * FP32 / ELEMENT))
    return kernels


def optimizer_kernels(request: BlockRequest) -> list[Kernel]:
    """One step of Adam over the rank's parameters."""
    each = ADAM_BYTES + request.gradient_bytes
    return [Kernel("adam", "optimizer", 0, request.parameters * each)]


def _is_table(request: BlockRequest) -> bool:
    return request.block == "embedding"


def _scattered_gradients(request: BlockRequest) -> Kernel:
    """Gradients of the embedding: added to the rows of the tokens."""
    each = ELEMENT + 2 * request.gradient_bytes
    return Kernel("embedding wgrad", "memory", 0, request.tokens * request.model.hidden * each)


_FORWARD = {
    "attention": attention_kernels,
    "attention_core": lambda request: [attention_core(request)],
    "mlp": mlp_kernels,
    "router": router_kernels,
    "experts": expert_kernels,
    "embedding": embedding_kernels,
    "logits": logits_kernels,
    "optimizer": optimizer_kernels,
}
