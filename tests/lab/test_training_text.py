"""The grammar's text: seeded, of its own vocabulary, in proportion to its weights; errors of one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from r2cc_simai.errors import InputError
from r2cc_simai.lab.training.text import Grammar, load_grammar


def written(folder: Path, rules: Any) -> str:
    path = folder / "own.yml"
    path.write_text(yaml.safe_dump({"rules": rules}))
    return str(path)


def test_same_seed_same_text_and_a_longer_one_goes_on() -> None:
    grammar = load_grammar("harbour")
    short, long, other = grammar.tokens(500, (1,)), grammar.tokens(2000, (1,)), grammar.tokens(500, (2,))
    np.testing.assert_array_equal(short, long[:500])
    assert (short != other).any()


def test_tokens_are_the_grammars_characters() -> None:
    grammar = load_grammar("harbour")
    tokens = grammar.tokens(20_000, (3,))
    assert sorted(set(tokens.tolist())) == list(range(len(grammar.characters)))
    text = grammar.decode(tokens)
    np.testing.assert_array_equal(grammar.encode(text), tokens)
    assert "{" not in text
    assert all(line.endswith(".") for line in text.split("\n")[:-1])


def test_alternatives_come_as_often_as_their_weights_say() -> None:
    """Weights 3 and 1: the share of the first is 3/4, with a standard deviation of sqrt(3/16 / n)."""
    grammar = Grammar({"sentence": [(3.0, "a"), (1.0, "b")]})
    share = float((grammar.tokens(40_000, (1,)) == 0).mean())
    assert abs(share - 0.75) < 4 * (3 / 16 / 40_000) ** 0.5


def test_a_grammar_without_end_ends() -> None:
    tokens = Grammar({"sentence": [(1.0, "({sentence})")]}).tokens(10, (1,))
    assert tokens.tolist() == [0] * 10


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"word": [[1, "a"]]}, "'sentence' is missing"),
        ({"sentence": [[1, "{word}"]]}, "{word} has no rule"),
        ({"sentence": [[0, "a"]]}, "greater than 0"),
        ({"sentence": []}, "at least 1 item"),
    ],
)
def test_bad_grammar_is_one_line(rules: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        load_grammar(written(tmp_path, rules))
    assert told in str(error.value)
    assert "own.yml" in str(error.value)
    assert "\n" not in str(error.value)
