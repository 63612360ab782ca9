"""Model files: shapes against published parameter counts, and the one line that says what is wrong with a file."""

from pathlib import Path

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.model_math import parameters
from r2cc_simai.workloads.models import load_model, model_names

# Counts of the released weights, to the parameter (sources: the model files).
EXACT = {
    "llama-65b": 65_285_660_672,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3.1-8b": 8_030_261_248,
    "llama3.1-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
    "mixtral-8x7b": 46_702_792_704,
}
# Table 2.1 of the GPT-3 paper (arXiv 2005.14165) and the DeepSeek-V3 report (arXiv 2412.19437) round.
ROUNDED = {
    "gpt3-2.7b": (2.7e9, 0.05e9),
    "gpt3-7b": (6.7e9, 0.05e9),
    "gpt3-175b": (175.0e9, 0.5e9),
    "deepseek-v3": (671e9, 0.5e9),
}
# OPT (arXiv 2205.01068) has GPT-3's shapes with another vocabulary (50,272) and two positions more; these are the
# counts of its released weights.
OPT_TWINS = {"gpt3-2.7b": 2_651_596_800, "gpt3-7b": 6_658_473_984, "gpt3-13b": 12_853_473_280}

SMALL = """
name: small
layers: 2
hidden: 64
heads: 4
ffn_hidden: 256
vocab: 1000
max_positions: 128
positions: rope
gated_mlp: true
biases: false
norm: rmsnorm
tied_embeddings: false
"""


@pytest.mark.parametrize(("name", "published"), EXACT.items())
def test_count_of_released_weights(name, published):
    """The shape gives the published count, parameter for parameter."""
    assert parameters(load_model(name)).total == published == load_model(name).published_parameters


@pytest.mark.parametrize(("name", "published"), ROUNDED.items())
def test_count_rounds_to_the_published_one(name, published):
    """The shape gives a count that the published one is a rounding of."""
    figure, rounding = published
    assert parameters(load_model(name)).total == pytest.approx(figure, abs=rounding)
    assert (load_model(name).published_parameters, load_model(name).published_rounding) == (figure, rounding)


@pytest.mark.parametrize(("name", "published"), OPT_TWINS.items())
def test_gpt_shapes_give_the_counts_of_their_opt_twins(name, published):
    """OPT's exact counts follow from GPT-3's shapes once vocabulary and positions are OPT's."""
    twin = load_model(name).model_copy(update={"vocab": 50272, "max_positions": 2050})
    assert parameters(twin).total == published


def test_gpt3_13b_is_below_its_published_figure():
    """12.85B: 1.1% below the paper's 13.0B, whose printed width (5140) its 40 heads of 128 contradict."""
    assert parameters(load_model("gpt3-13b")).total == pytest.approx(13.0e9 * (1 - 0.0113), rel=1e-4)


@pytest.mark.parametrize(("name", "published"), [("mixtral-8x7b", 12.9e9), ("deepseek-v3", 37e9)])
def test_active_parameters(name, published):
    """Active for a token: Mixtral 12.9B (arXiv 2401.04088, "13B"), DeepSeek-V3 37B (arXiv 2412.19437)."""
    assert parameters(load_model(name)).active == pytest.approx(published, rel=0.016)


@pytest.mark.parametrize("name", sorted({*EXACT, *ROUNDED, "gpt3-13b"}))
def test_parts_add_up(name):
    """Total = sum of the parts; within 2% of the published figure; the file's name is the model's."""
    model = load_model(name)
    count = parameters(model)
    parts = (count.embedding, count.positions, count.attention, count.mlp, count.router, count.shared_experts)
    assert sum(parts) + count.experts + count.norms + count.head == count.total
    assert count.total == pytest.approx(model.published_parameters, rel=0.02)
    assert model.name == name
    assert model.source


def test_every_shipped_model_is_checked():
    """No model file without a count above."""
    assert set(model_names()) == {*EXACT, *ROUNDED, "gpt3-13b"}


@pytest.mark.parametrize(("alias", "name"), [("gpt-2.7b", "gpt3-2.7b"), ("gpt3-6.7b", "gpt3-7b")])
def test_alias(alias, name):
    """An alias is another name of the same model."""
    assert load_model(alias) == load_model(name)


def test_user_file(tmp_path):
    """A path to a YAML file is a model too."""
    path = tmp_path / "small.yml"
    path.write_text(SMALL)
    model = load_model(str(path))
    # 2 x 1000 x 64 + 64 (embedding, head, norm) + 2 layers x (4 x 64 x 64 + 3 x 64 x 256 + 2 x 64)
    assert parameters(model).total == 2 * 1000 * 64 + 64 + 2 * (4 * 64 * 64 + 3 * 64 * 256 + 2 * 64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lama2-7b", "'lama2-7b': no such model; llama2-7b or .* was meant"),
        ("zzz", "'zzz': no such model; allowed: deepseek-v3, .* \\(or a .yml file\\)"),
        ("absent.yml", "absent.yml: No such file or directory"),
    ],
)
def test_unknown_model(text, message):
    """One line with close names, or all."""
    with pytest.raises(InputError, match=f"^{message}") as error:
        load_model(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("heads: 4", "heads: 5"),
        ("vocab: 1000", "vocabulary: 1000"),
        ("layers: 2", "layers: 0"),
        ("norm: rmsnorm", "norm: batchnorm"),
    ],
)
def test_wrong_file_names_file_and_key(tmp_path, wrong, message):
    """The line names the file and the key."""
    path: Path = tmp_path / "wrong.yml"
    path.write_text(SMALL.replace(wrong, message))
    with pytest.raises(InputError, match=f"^{path}: {message.split(':')[0]}") as error:
        load_model(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("kv_heads: 3", "kv_heads: 3 do not divide the 4 heads"),
        ("experts: {count: 4, per_token: 5, ffn_hidden: 8}", "experts: per_token: 5 is more than the 4 experts"),
        ("experts: {count: 4, per_token: 1, ffn_hidden: 8, first_dense_layers: 3}", "experts: more first_dense_layers"),
    ],
)
def test_inconsistent_file(tmp_path, section, message):
    """Sections that contradict the rest."""
    path = tmp_path / "odd.yml"
    path.write_text(SMALL + section)
    with pytest.raises(InputError, match=f"^{path}: {message}"):
        load_model(str(path))
