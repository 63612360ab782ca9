"""The layers of a transformer, forward and backward.

Each function takes its input and parameters and returns its output with a function that turns the gradient of the loss
with respect to the output into that with respect to the input. Gradients of parameters are added to arrays that the
caller gives. Shapes: B sequences of T tokens, width D. All arithmetic is in the type of the parameters.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Back = Callable[[Array], Array]

LAYER_NORM_EPSILON = 1e-5
_GELU_SCALE = math.sqrt(2 / math.pi)
_GELU_CUBE = 0.044715


def linear(x: Array, weight: Array, gradient: Array) -> tuple[Array, Back]:
    """y = x W for x (..., a) and W (a, b)."""
    rows = x.reshape(-1, weight.shape[0])

    def back(dy: Array) -> Array:
        flat = dy.reshape(-1, weight.shape[1])
        gradient[...] += rows.T @ flat
        back_rows: Array = (flat @ weight.T).reshape(x.shape)
        return back_rows

    return (rows @ weight).reshape(*x.shape[:-1], weight.shape[1]), back


def layer_norm(x: Array, gain: Array, bias: Array, gain_gradient: Array, bias_gradient: Array) -> tuple[Array, Back]:
    """y = gain (x - mean) / sqrt(variance + eps) + bias over the last axis (Ba et al., arXiv 1607.06450)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
    normal = centred * inverse

    def back(dy: Array) -> Array:
        gain_gradient[...] += (dy * normal).reshape(-1, x.shape[-1]).sum(axis=0)
        bias_gradient[...] += dy.reshape(-1, x.shape[-1]).sum(axis=0)
        dn = dy * gain
        mean = dn.mean(axis=-1, keepdims=True)
        along = (dn * normal).mean(axis=-1, keepdims=True)
        dx: Array = inverse * (dn - mean - normal * along)
        return dx

    return gain * normal + bias, back


def gelu(x: Array) -> tuple[Array, Back]:
    """y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, arXiv 1606.08415)."""
    bent = np.tanh(_GELU_SCALE * (x + _GELU_CUBE * x * x * x))

    def back(dy: Array) -> Array:
        slope = _GELU_SCALE * (1 + 3 * _GELU_CUBE * x * x)
        dx: Array = dy * (0.5 * (1 + bent) + 0.5 * x * (1 - bent * bent) * slope)
        return dx

    return 0.5 * x * (1 + bent), back


def attention(qkv: Array, heads: int) -> tuple[Array, Back]:
    """Causal attention, softmax(q k^T / sqrt(d)) v in each head (Vaswani et al., arXiv 1706.03762).

    qkv (B, T, 3D) holds queries, keys and values side by side; the result is (B, T, D).
    """
    batch, length, triple = qkv.shape
    depth = triple // 3 // heads
    scale = 1 / math.sqrt(depth)
    q, k, v = qkv.reshape(batch, length, 3, heads, depth).transpose(2, 0, 3, 1, 4)
    scores = (q @ k.swapaxes(-1, -2)) * scale
    scores[..., _later(length)] = -np.inf
    shares = softmax(scores)

    def back(dy: Array) -> Array:
        dout = dy.reshape(batch, length, heads, depth).transpose(0, 2, 1, 3)
        dshares = dout @ v.swapaxes(-1, -2)
        dscores = shares * (dshares - (dshares * shares).sum(axis=-1, keepdims=True)) * scale
        parts = dscores @ k, dscores.swapaxes(-1, -2) @ q, shares.swapaxes(-1, -2) @ dout
        return np.stack(parts).transpose(1, 3, 0, 2, 4).reshape(qkv.shape)

    return (shares @ v).transpose(0, 2, 1, 3).reshape(batch, length, heads * depth), back


def softmax(x: Array) -> Array:
    """exp(x) over its sum along the last axis."""
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Array = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def cross_entropy(logits: Array, targets: NDArray[np.int64]) -> tuple[Array, Callable[[], Array]]:
    """-ln softmax(logits)[target] of every token, in nats; the gradient is that of their mean.

    logits (..., V), targets (...).
    """
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    where = targets[..., None]
    losses = (log_sum - np.take_along_axis(shifted, where, axis=-1))[..., 0]

    def back() -> Array:
        gradient: Array = np.exp(shifted - log_sum)
        np.put_along_axis(gradient, where, np.take_along_axis(gradient, where, axis=-1) - 1, axis=-1)
        gradient /= targets.size
        return gradient

    return losses, back


def _later(length: int) -> NDArray[np.bool_]:
    """Which keys come after each query, shape (T, T)."""
    return np.triu(np.ones((length, length), dtype=np.bool_), k=1)
