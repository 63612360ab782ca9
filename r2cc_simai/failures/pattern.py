"""What a failure pattern is: a function that says which components fail when, on the cluster where it happens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.options import Fraction, Option, Seconds, options_of

if TYPE_CHECKING:
    import numpy as np

    from r2cc_simai.cluster.model import Cluster

__all__ = ["Fraction", "Incident", "Pattern", "Seconds", "Site", "pattern"]

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""What a pattern may be called."""


@dataclass(frozen=True, eq=False)
class Site:
    """Where and for how long a pattern happens.

    `random` is seeded by the seed of the scenario alone, so all strategies meet the same failures; only a pattern with
    `@pattern(draws=True)` has it. `horizon_s` is the length of the job in seconds, infinite where it has none. `base`
    is the folder that relative file options refer to, None for the current one.
    """

    cluster: Cluster
    random: np.random.Generator
    horizon_s: float
    base: Path | None = None


Function = Callable[..., Iterable[Incident]]


@dataclass(frozen=True)
class Pattern:
    """A pattern that can be run by its name. Calling it calls its function, which tests can do directly.

    `draws` says that it uses randomness. `origin` names where it comes from in messages; empty for built-in ones.
    `details` is what its author says beyond the summary.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    function: Function
    draws: bool = False
    origin: str = ""
    details: str = ""

    def __call__(self, site: Site, **options: Any) -> Iterable[Incident]:
        return self.function(site, **options)

    @property
    def form(self) -> str:
        """`flap:component=...,at=0,count=3`: the name with its options and their defaults."""
        shown = [*(option.shown for option in self.options), *(["[seed=...]"] if self.draws else [])]
        return self.name + (":" if shown else "") + ",".join(shown)

    def values(self, pairs: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
        """Arguments of the function for what a user wrote.

        Raises:
            InputError: an option that does not exist, lacks, or does not take its value.
        """
        by_name = {option.name: option for option in self.options}
        known = [*by_name, *(["seed"] if self.draws else [])]
        values: dict[str, Any] = {}
        for key, text in pairs:
            option = by_name.get(key)
            if option is None:
                raise InputError(f"no option {key!r} (allowed: {', '.join(known) or 'none'})")
            values[option.parameter] = option.read(text)
        for option in self.options:
            if option.required and option.parameter not in values:
                raise InputError(f"option {option.name} is missing; {option.takes} is wanted")
        return values


@overload
def pattern(function: Function) -> Pattern: ...


@overload
def pattern(*, draws: bool) -> Callable[[Function], Pattern]: ...


def pattern(function: Function | None = None, *, draws: bool = False) -> Pattern | Callable[[Function], Pattern]:
    """Make a failure pattern of a generator function; its name is the function's, with `-` for `_`.

    The function takes a `Site` and options as parameters with types (`int`, `float`, `str`, `bool`, `Seconds`,
    `Fraction`, `Literal[...]`) and yields `Incident`s. The first line of its docstring is its summary. A pattern that
    uses `site.random` is written `@pattern(draws=True)`, and has an option `seed` besides its own.

    Raises:
        InputError: the function cannot be a pattern.
    """
    if function is None:
        return lambda other: _made(other, draws)
    return _made(function, draws)


def _made(function: Function, draws: bool) -> Pattern:
    name = cast("str", getattr(function, "__name__", "")).strip("_").replace("_", "-")
    if not NAME.fullmatch(name):
        raise InputError(f"pattern {name!r}: a name is lower-case words with - between")
    try:
        options = options_of(function)
    except InputError as error:
        raise InputError(f"pattern {name!r}: {error}") from None
    if draws and any(option.name == "seed" for option in options):
        raise InputError(f"pattern {name!r}: every pattern that draws has an option seed already")
    summary, _, details = cleandoc(function.__doc__ or "").partition("\n")
    return Pattern(name, summary.rstrip("."), options, function, draws, details=details.strip())
