"""Transformer models: their shapes, as YAML files describe them."""

import difflib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from r2cc_simai.config import Strict, read_yaml, validated
from r2cc_simai.errors import InputError
from r2cc_simai.paths import clusters_dir

Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]


class LatentAttention(Strict):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): low-rank queries, keys and values."""

    q_lora_rank: Count
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count

    @property
    def qk_head_dim(self) -> int:
        """Width of a query or key head."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim


class Experts(Strict):
    """The expert layers of a mixture-of-experts model.

    Attributes:
        count: routed experts of a layer.
        per_token: experts that each token visits (top-k).
        ffn_hidden: inner width of an expert.
        shared: experts that every token visits besides.
        first_dense_layers: layers at the start with a dense MLP of the model's `ffn_hidden`.
        score_bias: the router has a bias per expert (load balancing without an auxiliary loss).
    """

    count: Annotated[int, Field(ge=2)]
    per_token: Count
    ffn_hidden: Count
    shared: NotNegative = 0
    first_dense_layers: NotNegative = 0
    score_bias: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> "Experts":
        if self.per_token > self.count:
            raise ValueError(f"per_token: {self.per_token} is more than the {self.count} experts")
        return self


class Model(Strict):
    """A decoder-only transformer.

    Attributes:
        name: name as the user writes it.
        aliases: other names of the same model.
        layers, hidden, heads, head_dim, ffn_hidden, vocab: the usual shape; `head_dim` 0 is hidden / heads.
        kv_heads: key/value heads (grouped-query attention); 0 is one per query head.
        max_positions: longest sequence that the model was trained for.
        positions: `learned` (a table of max_positions x hidden) or `rope` (no parameters).
        gated_mlp: three matrices (SwiGLU) instead of two.
        biases: linear layers have biases.
        norm: `layernorm` (weight and bias) or `rmsnorm` (weight).
        tied_embeddings: the output head is the input embedding.
        experts, latent_attention: sections of models that have them.
        published_parameters: the count that `source` gives.
        published_rounding: half a unit of the last digit that `source` gives (2.7B: 0.05e9); 0 where it is exact.
        source: paper or model card.
        note: what a reader should know.
    """

    name: str
    aliases: tuple[str, ...] = ()
    layers: Count
    hidden: Count
    heads: Count
    kv_heads: NotNegative = 0
    head_dim: NotNegative = 0
    ffn_hidden: Count
    vocab: Count
    max_positions: Count
    positions: Literal["learned", "rope"]
    gated_mlp: bool
    biases: bool
    norm: Literal["layernorm", "rmsnorm"]
    tied_embeddings: bool
    experts: Experts | None = None
    latent_attention: LatentAttention | None = None
    published_parameters: Count | None = None
    published_rounding: NotNegative = 0
    source: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> "Model":
        if not self.head_dim and self.hidden % self.heads:
            raise ValueError(f"heads: {self.heads} do not divide hidden {self.hidden}; give head_dim")
        if self.kv_heads and self.heads % self.kv_heads:
            raise ValueError(f"kv_heads: {self.kv_heads} do not divide the {self.heads} heads")
        if self.experts and self.experts.first_dense_layers > self.layers:
            raise ValueError(f"experts: more first_dense_layers than the {self.layers} layers")
        return self

    @property
    def head_width(self) -> int:
        """Width of a head."""
        return self.head_dim or self.hidden // self.heads

    @property
    def key_heads(self) -> int:
        """Key/value heads."""
        return self.kv_heads or self.heads

    def is_expert_layer(self, layer: int) -> bool:
        """Whether layer `layer` (from 0) has experts instead of a dense MLP."""
        return self.experts is not None and layer >= self.experts.first_dense_layers

    @property
    def expert_layers(self) -> int:
        """Number of layers with experts."""
        return self.layers - self.experts.first_dense_layers if self.experts else 0


def models_dir() -> Path:
    """Folder of the shipped models (YAML)."""
    return clusters_dir().parent / "models"


def model_names() -> list[str]:
    """Names of the shipped models, sorted; aliases are left out."""
    return sorted(path.stem for path in models_dir().glob("*.yml"))


@lru_cache(maxsize=64)
def load_model(text: str) -> Model:
    """The model `text`: the name or alias of a shipped one, or a YAML file.

    Raises:
        InputError: there is no such model or file, or the file is wrong.
    """
    path = Path(text)
    if path.suffix in (".yml", ".yaml") or path.is_file():
        return _read(path)
    if text in model_names():
        return _read(models_dir() / f"{text}.yml")
    by_alias = _aliases()
    if text in by_alias:
        return _read(models_dir() / f"{by_alias[text]}.yml")
    known = [*model_names(), *by_alias]
    near = difflib.get_close_matches(text.lower(), known, n=3, cutoff=0.5)
    hint = f"{' or '.join(near)} was meant?" if near else f"allowed: {', '.join(model_names())}"
    raise InputError(f"{text!r}: no such model; {hint} (or a .yml file)")


def _read(path: Path) -> Model:
    return validated(Model, read_yaml(path), str(path))


@lru_cache(maxsize=1)
def _aliases() -> dict[str, str]:
    models = [_read(models_dir() / f"{name}.yml") for name in model_names()]
    return {alias: model.name for model in models for alias in model.aliases}
