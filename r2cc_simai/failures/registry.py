"""Failure patterns by name: built-in ones, files that ship, files that a user names, those of installed packages."""

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

from r2cc_simai.errors import InputError
from r2cc_simai.failures.guard import checked_incidents
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.options import split_options
from r2cc_simai.failures.pattern import Pattern, Site
from r2cc_simai.failures.plugins import load_plugin, plugin_names

if TYPE_CHECKING:
    import numpy as np

    from r2cc_simai.cluster.model import Cluster

_NAMED = re.compile(r"[A-Za-z][\w-]*(:.*)?", re.DOTALL)
_FROM_FILES: dict[str, tuple[Path, Pattern]] = {}  # what --pattern-file and sweep files added


@dataclass(frozen=True, eq=False)
class BoundPattern:
    """A pattern with its options. `text` is what the user wrote."""

    text: str
    pattern: Pattern
    values: Mapping[str, Any]
    seed: int | None = None

    @property
    def draws(self) -> bool:
        """Whether its incidents depend on the seed that `incidents` is given."""
        return self.pattern.draws and self.seed is None

    def incidents(
        self,
        cluster: "Cluster",
        seed: int = 0,
        horizon_s: float = math.inf,
        *,
        base: Path | None = None,
        stream: int = 0,
    ) -> tuple[Incident, ...]:
        """What fails, in order of begin. The same arguments give the same incidents.

        Randomness is seeded by `seed` (or the text's own `seed=`), the pattern's name and `stream`, which tells
        several uses of a pattern in one scenario apart. `base`: see `Site`.

        Raises:
            InputError: the cluster lacks what the pattern names, or the pattern does not work.
        """
        site = Site(cluster, self._random(seed, stream), horizon_s, base)
        return checked_incidents(self.pattern, site, self.values)

    def _random(self, seed: int, stream: int) -> "np.random.Generator":
        if not self.pattern.draws:
            return cast("np.random.Generator", _NoRandom())
        import numpy as np

        own = seed if self.seed is None else self.seed
        return np.random.default_rng([own, crc32(self.pattern.name.encode()), stream])


class _NoRandom:
    """Stands for the generator of a pattern that says it draws nothing."""

    def __getattr__(self, name: str) -> Any:
        raise InputError(f"it uses site.random.{name}; write @pattern(draws=True) above it")


def is_pattern(text: str) -> bool:
    """Whether a text is `name` or `name:options`, rather than `component@time`."""
    return _NAMED.fullmatch(text.strip()) is not None


def parse_pattern(text: str) -> BoundPattern:
    """The pattern that `flap:component=server0.nic3,period=1s,duty=0.5,count=3` describes.

    Raises:
        InputError: no such pattern or option, or a value that the option does not take.
    """
    name, _, options = text.strip().partition(":")
    found = pattern_named(name)
    try:
        pairs = split_options(options)
        own = [value for key, value in pairs if key == "seed" and found.draws]
        rest = [(key, value) for key, value in pairs if not (key == "seed" and found.draws)]
        return BoundPattern(text.strip(), found, found.values(rest), _seed(own[0]) if own else None)
    except InputError as error:
        raise InputError(f"pattern {name!r}: {error}") from None


def pattern_named(name: str) -> Pattern:
    """The pattern of a name.

    Raises:
        InputError: no such pattern, or a plug-in that does not work.
    """
    if name in built_in():
        return built_in()[name]
    if name in _FROM_FILES:
        return _FROM_FILES[name][1]
    if name in _shipped():
        return _shipped_pattern(_shipped()[name])
    found = load_plugin(name)
    if found is None:
        known = pattern_names()
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; {near[0]} was meant?" if near else ""
        raise InputError(
            f"pattern {name!r}: unknown{hint} (allowed: {', '.join(known)}; or component[=fraction]@time[..until])"
        )
    return found


def pattern_names() -> list[str]:
    """All names that a user can write: built-in ones, those of files, those of installed packages."""
    return list(dict.fromkeys([*built_in(), *_shipped(), *sorted(_FROM_FILES), *plugin_names()]))


def working_patterns() -> tuple[list[Pattern], list[str]]:
    """All patterns that can be loaded, and a line for each that cannot."""
    patterns, broken = [], []
    for name in pattern_names():
        try:
            patterns.append(pattern_named(name))
        except InputError as error:
            broken.append(str(error))
    return patterns, broken


def load_pattern_file(path: Path) -> None:
    """Adds the patterns of a `.py` or `.yml` file to those of this process; loading a file again renews them.

    Raises:
        InputError: the file is wrong, or it takes the name of a pattern that is not its own.
    """
    from r2cc_simai.failures.pattern_files import patterns_in

    whole = path.resolve()
    made = patterns_in(path)
    for one in made:
        other = _FROM_FILES.get(one.name)
        if one.name in built_in():
            raise InputError(f"{path}: pattern {one.name!r} is a built-in one; give yours another name")
        if other is not None and other[0] != whole:
            raise InputError(f"{path}: pattern {one.name!r} stands in {other[0]} already; give one another name")
    for name in [name for name, (origin, _) in _FROM_FILES.items() if origin == whole]:
        del _FROM_FILES[name]
    _FROM_FILES.update({one.name: (whole, one) for one in made})


@cache
def built_in() -> Mapping[str, Pattern]:
    """The patterns of this package by name, in the order of `patterns.FAMILIES` and of their places in the files."""
    return {one.name: one for one in _in_modules()}


def _in_modules() -> Iterator[Pattern]:
    from r2cc_simai.failures import patterns

    for family in patterns.FAMILIES:
        module = import_module(f"{patterns.__name__}.{family}")
        yield from (one for one in vars(module).values() if isinstance(one, Pattern))


@cache
def _shipped() -> Mapping[str, Path]:
    from r2cc_simai.paths import failures_dir

    return {path.stem: path for path in sorted(failures_dir().glob("*.yml"))}


@cache
def _shipped_pattern(path: Path) -> Pattern:
    from r2cc_simai.failures.pattern_files import patterns_in

    return replace(patterns_in(path)[0], origin="")


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if not 0 <= seed < 2**63:
        raise InputError(f"seed={text}: a whole number from 0 on is wanted")
    return seed
