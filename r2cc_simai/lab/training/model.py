"""A decoder-only transformer language model with tied embeddings, layer norms before its sublayers and no dropout."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.lab.training.layers import Array, Back, attention, cross_entropy, gelu, layer_norm, linear
from r2cc_simai.lab.training.parameters import Layout, Shape

Tokens = NDArray[np.int64]


@dataclass(frozen=True)
class Transformer:
    """`vocabulary` tokens, sequences of at most `context` of them, `layers` blocks of `width` with `heads` heads."""

    vocabulary: int
    context: int
    layers: int
    width: int
    heads: int

    @cached_property
    def layout(self) -> Layout:
        """The parameters and their shapes."""
        d = self.width
        shapes: dict[str, Shape] = {"token.embedding": (self.vocabulary, d), "position.embedding": (self.context, d)}
        for layer in range(self.layers):
            block: dict[str, Shape] = {
                "norm1.gain": (d,),
                "norm1.bias": (d,),
                "attention.qkv": (d, 3 * d),
                "attention.out": (d, d),
                "norm2.gain": (d,),
                "norm2.bias": (d,),
                "mlp.in": (d, 4 * d),
                "mlp.out": (4 * d, d),
            }
            shapes |= {f"block{layer}.{name}": shape for name, shape in block.items()}
        return Layout(shapes | {"norm.gain": (d,), "norm.bias": (d,)})

    def losses(self, parameters: Array, sequences: Tokens) -> Array:
        """Cross-entropy in nats of every next token: sequences (B, T + 1) give losses (B, T)."""
        losses, _ = self._forward(parameters, sequences, np.zeros_like(parameters))
        return losses

    def gradient(self, parameters: Array, sequences: Tokens, gradient: Array) -> Array:
        """The losses (B, T); `gradient` (size,) becomes the gradient of their mean."""
        gradient[...] = 0
        losses, back = self._forward(parameters, sequences, gradient)
        back()
        return losses

    def _forward(self, parameters: Array, sequences: Tokens, gradient: Array) -> tuple[Array, Callable[[], None]]:
        value, grad = self.layout.views(parameters), self.layout.views(gradient)
        inputs, targets = sequences[:, :-1], sequences[:, 1:]
        backs: list[Back] = []
        x = value["token.embedding"][inputs] + value["position.embedding"][: inputs.shape[1]]
        for layer in range(self.layers):
            x, back = self._block(x, *(_of_block(views, layer) for views in (value, grad)))
            backs.append(back)
        x, back = layer_norm(x, value["norm.gain"], value["norm.bias"], grad["norm.gain"], grad["norm.bias"])
        backs.append(back)
        logits, back = linear(x, value["token.embedding"].T, grad["token.embedding"].T)
        backs.append(back)
        losses, loss_back = cross_entropy(logits, targets)

        def backward() -> None:
            dx = loss_back()
            for back in reversed(backs):
                dx = back(dx)
            # One-hot rows add up what belongs to one token, always in the same order.
            one_hot = np.eye(self.vocabulary, dtype=dx.dtype)[inputs.reshape(-1)]
            grad["token.embedding"][...] += one_hot.T @ dx.reshape(-1, self.width)
            grad["position.embedding"][: inputs.shape[1]] += dx.sum(axis=0)

        return losses, backward

    def _block(self, x: Array, value: Mapping[str, Array], grad: Mapping[str, Array]) -> tuple[Array, Back]:
        """x + attention(norm(x)), then the same with the two-layer perceptron."""
        x, attention_back = _residual(
            x,
            lambda y: _chain(
                y,
                lambda z: _norm(z, "norm1", value, grad),
                lambda z: linear(z, value["attention.qkv"], grad["attention.qkv"]),
                lambda z: attention(z, self.heads),
                lambda z: linear(z, value["attention.out"], grad["attention.out"]),
            ),
        )
        x, mlp_back = _residual(
            x,
            lambda y: _chain(
                y,
                lambda z: _norm(z, "norm2", value, grad),
                lambda z: linear(z, value["mlp.in"], grad["mlp.in"]),
                gelu,
                lambda z: linear(z, value["mlp.out"], grad["mlp.out"]),
            ),
        )
        return x, lambda dy: attention_back(mlp_back(dy))


Layer = Callable[[Array], tuple[Array, Back]]


def _chain(x: Array, *layers: Layer) -> tuple[Array, Back]:
    """Layers one after another."""
    backs: list[Back] = []
    for layer in layers:
        x, back = layer(x)
        backs.append(back)

    def backward(dy: Array) -> Array:
        for back in reversed(backs):
            dy = back(dy)
        return dy

    return x, backward


def _residual(x: Array, layer: Layer) -> tuple[Array, Back]:
    """x + layer(x)."""
    y, back = layer(x)
    return x + y, lambda dy: dy + back(dy)


def _norm(x: Array, name: str, value: Mapping[str, Array], grad: Mapping[str, Array]) -> tuple[Array, Back]:
    gain, bias = f"{name}.gain", f"{name}.bias"
    return layer_norm(x, value[gain], value[bias], grad[gain], grad[bias])


def _of_block(views: Mapping[str, Array], layer: int) -> dict[str, Array]:
    prefix = f"block{layer}."
    return {name.removeprefix(prefix): view for name, view in views.items() if name.startswith(prefix)}
