"""Running a pattern that may be anybody's: what is wrong with it is one line that names it."""

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError, SimaiError
from r2cc_simai.failures.component import component_of, nics_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Pattern, Site
from r2cc_simai.plugins import one_line

MOST_INCIDENTS = 1_000_000
"""More of them than this, and a pattern is taken for one that never ends."""


def checked_incidents(pattern: Pattern, site: Site, values: Mapping[str, Any]) -> tuple[Incident, ...]:
    """The incidents that a pattern yields, in order of their begin.

    Raises:
        InputError: the pattern raised, or what it yields is no incident on this cluster.
    """
    label = f"pattern {pattern.name!r}" + (f" of {pattern.origin}" if pattern.origin else "")
    try:
        return _checked(pattern(site, **values), site.cluster)
    except SimaiError as error:
        raise type(error)(f"{label}: {error}") from None
    except Exception as error:
        raise InputError(f"{label} failed: {one_line(error)}") from error


def _checked(made: Iterable[Incident], cluster: Cluster) -> tuple[Incident, ...]:
    if not isinstance(made, Iterable):
        raise InputError(f"it gives {type(made).__name__}; it must yield incidents")
    found: list[Incident] = []
    known: set[str] = set()
    for number, one in enumerate(made, start=1):
        if number > MOST_INCIDENTS:
            raise InputError(f"it yields more than {MOST_INCIDENTS} incidents; does it ever end?")
        if not isinstance(one, Incident):
            raise InputError(f"incident {number} is of type {type(one).__name__}, not Incident")
        if not _in_order(one):
            raise InputError(f"incident {number}: {_fault(one)}")
        if one.component not in known:
            nics_of(cluster, component_of(one.component)[0])
            known.add(one.component)
        found.append(one)
    return tuple(sorted(found, key=lambda one: one.begin_s))


def _in_order(one: Incident) -> bool:
    """Whether an incident by itself is one: what `_fault` would tell, in one go."""
    try:
        numbers = 0 <= one.begin_s < math.inf and one.end_s > one.begin_s and 0 <= one.state < 1
    except (TypeError, ValueError):
        return False
    return numbers and isinstance(one.component, str) and isinstance(one.cause, str)


def _fault(one: Incident) -> str:
    """What is wrong with an incident by itself."""
    if not isinstance(one.component, str) or not isinstance(one.cause, str):
        return f"component {one.component!r} and cause {one.cause!r} must be texts"
    for key in ("begin_s", "end_s", "state"):
        value = getattr(one, key)
        if not isinstance(value, Real):
            return f"{key} {value!r} is no number"
    if not math.isfinite(one.begin_s) or one.begin_s < 0:
        return f"{one.component} begins at {one.begin_s:g} s; a time from 0 on is wanted"
    if not one.end_s > one.begin_s:
        return f"{one.component} ends at {one.end_s:g} s, not after it begins ({one.begin_s:g} s)"
    return f"{one.component} is at state {one.state:g}; 0 (down) to below 1 is wanted"
