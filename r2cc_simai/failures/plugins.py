"""Failure patterns of other installed packages, found by entry point and loaded when they are asked for.

A package offers a pattern in its `pyproject.toml`::

    [project.entry-points."r2cc_simai.patterns"]
    power-cut = "power_cut:power_cut"

The name is that of the pattern. The package's own patterns come first: a plug-in cannot take their names.
"""

from dataclasses import replace

from r2cc_simai.errors import InputError
from r2cc_simai.failures.pattern import Pattern
from r2cc_simai.plugins import load_offer, offered_names

GROUP = "r2cc_simai.patterns"


def plugin_names() -> list[str]:
    """Names that installed packages offer, in order; nothing is loaded."""
    return offered_names(GROUP)


def load_plugin(name: str) -> Pattern | None:
    """The pattern that an installed package offers under a name; None where there is no such entry.

    Raises:
        InputError: it cannot be loaded, is no pattern or has another name, or several packages offer the name.
    """
    offer = load_offer(GROUP, name, "pattern")
    if offer is None:
        return None
    made = offer.content
    if not isinstance(made, Pattern):
        raise InputError(f"{offer.label}: {offer.value} is no pattern; write @pattern above the function")
    if made.name != name:
        raise InputError(f"{offer.label}: the pattern names itself {made.name!r}; both must agree")
    return replace(made, origin=offer.distribution)
