"""Text that a probabilistic grammar makes: the same for the same seed, and as much as is wanted."""

import re
from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from r2cc_simai.config import Strict, read_yaml, validated
from r2cc_simai.lab.training.model import Tokens
from r2cc_simai.paths import labs_dir

START = "sentence"
_SYMBOL = re.compile(r"\{(\w+)\}")
DEEPEST = 50

Alternative = tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], str]


class GrammarSpec(Strict):
    """A grammar file: for every symbol its alternatives and their weights."""

    description: str = ""
    rules: dict[str, Annotated[list[Alternative], Field(min_length=1)]]

    @model_validator(mode="after")
    def _complete(self) -> "GrammarSpec":
        if START not in self.rules:
            raise ValueError(f"rules: {START!r} is missing, from which all text comes")
        for symbol, alternatives in self.rules.items():
            for _, text in alternatives:
                for used in _SYMBOL.findall(text):
                    if used not in self.rules:
                        raise ValueError(f"rules.{symbol}: {{{used}}} has no rule")
        return self


@dataclass(frozen=True)
class Grammar:
    """Draws sentences. Tokens are characters, numbered in the order of their codes."""

    rules: Mapping[str, list[Alternative]]

    @cached_property
    def characters(self) -> str:
        """All characters that can occur, sorted: the vocabulary."""
        texts = (_SYMBOL.sub("", text) for alternatives in self.rules.values() for _, text in alternatives)
        return "".join(sorted(set("".join(texts))))

    def tokens(self, count: int, seed: tuple[int, ...]) -> Tokens:
        """`count` tokens of text, shape (count,)."""
        rng = np.random.default_rng(seed)
        parts: list[str] = []
        length = 0
        while length < count:
            parts.append(self._expand(START, rng, 0))
            length += len(parts[-1])
        return self.encode("".join(parts)[:count])

    def encode(self, text: str) -> Tokens:
        """The tokens of a text that consists of the grammar's characters."""
        number = {character: k for k, character in enumerate(self.characters)}
        return np.array([number[character] for character in text], dtype=np.int64)

    def decode(self, tokens: Tokens) -> str:
        """The text of some tokens."""
        return "".join(self.characters[token] for token in tokens.tolist())

    def _expand(self, symbol: str, rng: np.random.Generator, depth: int) -> str:
        alternatives = self.rules[symbol]
        limits = self._limits[symbol]
        text = alternatives[bisect(limits, rng.random() * limits[-1])][1]
        if depth >= DEEPEST:  # a grammar that only ever grows would not end
            return _SYMBOL.sub("", text)
        return _SYMBOL.sub(lambda found: self._expand(found[1], rng, depth + 1), text)

    @cached_property
    def _limits(self) -> dict[str, list[float]]:
        """Cumulative weights of each symbol's alternatives."""
        return {symbol: list(accumulate(weight for weight, _ in its)) for symbol, its in self.rules.items()}


def load_grammar(name: str) -> Grammar:
    """A grammar that ships with the project, or one of a file.

    Raises:
        InputError: there is none, or it is wrong.
    """
    path = Path(name) if name.endswith((".yml", ".yaml")) else labs_dir() / "training" / "text" / f"{name}.yml"
    return Grammar(validated(GrammarSpec, read_yaml(path), str(path)).rules)
