"""Failure patterns of other installed packages, found by entry point and loaded when they are asked for.

A package offers a pattern in its `pyproject.toml`::

    [project.entry-points."r2cc_simai.patterns"]
    power-cut = "power_cut:power_cut"

The name is that of the pattern. The package's own patterns come first: a plug-in cannot take their names.
"""

from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from r2cc_simai.errors import InputError
from r2cc_simai.failures.guard import one_line
from r2cc_simai.failures.pattern import Pattern

GROUP = "r2cc_simai.patterns"


def plugin_names() -> list[str]:
    """Names that installed packages offer, in order; nothing is loaded."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load_plugin(name: str) -> Pattern | None:
    """The pattern that an installed package offers under a name; None where there is no such entry.

    Raises:
        InputError: it cannot be loaded, is no pattern or has another name, or several packages offer the name.
    """
    found = {(entry.value, _distribution(entry)): entry for entry in entry_points(group=GROUP, name=name)}
    if not found:
        return None
    if len(found) > 1:
        owners = " and ".join(sorted(owner for _, owner in found))
        raise InputError(f"pattern {name!r}: offered by {owners}; uninstall one of them")
    (entry,) = found.values()
    label = f"pattern {name!r} of {_distribution(entry)}"
    made = _loaded(entry, label)
    if not isinstance(made, Pattern):
        raise InputError(f"{label}: {entry.value} is no pattern; write @pattern above the function")
    if made.name != name:
        raise InputError(f"{label}: the pattern names itself {made.name!r}; both must agree")
    return replace(made, origin=_distribution(entry))


def _distribution(entry: EntryPoint) -> str:
    return f"distribution {entry.dist.name!r}" if entry.dist is not None else "an unnamed distribution"


def _loaded(entry: EntryPoint, label: str) -> Any:
    try:
        return entry.load()
    except Exception as error:
        raise InputError(f"{label} cannot be loaded: {one_line(error)}") from error
