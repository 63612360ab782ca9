"""What other installed packages offer by entry point: found by name, loaded when it is asked for."""

import traceback
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from r2cc_simai.errors import InputError


@dataclass(frozen=True)
class Offer:
    """What an entry point names. `distribution` says whose it is; `label` is how an error begins."""

    content: Any
    value: str
    distribution: str
    label: str


def offered_names(group: str) -> list[str]:
    """Names that installed packages offer in a group of entry points, in order; nothing is loaded."""
    return sorted({entry.name for entry in entry_points(group=group)})


def load_offer(group: str, name: str, what: str) -> Offer | None:
    """What an installed package offers under a name, `what` ("strategy") in words; None where there is no such entry.

    Raises:
        InputError: it cannot be loaded, or several packages offer the name.
    """
    found = {(entry.value, _distribution(entry)): entry for entry in entry_points(group=group, name=name)}
    if not found:
        return None
    if len(found) > 1:
        owners = " and ".join(sorted(owner for _, owner in found))
        raise InputError(f"{what} {name!r}: offered by {owners}; uninstall one of them")
    (entry,) = found.values()
    label = f"{what} {name!r} of {_distribution(entry)}"
    try:
        content = entry.load()
    except Exception as error:
        raise InputError(f"{label} cannot be loaded: {one_line(error)}") from error
    return Offer(content, entry.value, _distribution(entry), label)


def one_line(error: Exception) -> str:
    """An exception that code of others raised, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


def _distribution(entry: EntryPoint) -> str:
    return f"distribution {entry.dist.name!r}" if entry.dist is not None else "an unnamed distribution"
