"""Strategies of other installed packages, found by entry point and loaded when they are asked for.

A package offers a strategy in its `pyproject.toml`::

    [project.entry-points."r2cc_simai.strategies"]
    leaf-tree = "leaf_tree:LeafTree"

The name is what a user writes after `--strategy`, and the `name` of the class. A plug-in that cannot be loaded, that
raises, or whose schedule is wrong ends the command with one line that names its distribution. The package's own
strategies come first: a plug-in cannot take their names.
"""

import traceback
from importlib.metadata import EntryPoint, entry_points
from inspect import isclass
from typing import Any

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.checker import check_schedule
from r2cc_simai.errors import InputError, SimaiError
from r2cc_simai.strategies.base import Plan, Request, Strategy

GROUP = "r2cc_simai.strategies"
CHECKED_RANKS = 64
"""Up to so many ranks an AllReduce of a plug-in is checked symbolically before it runs."""


def plugin_names() -> list[str]:
    """Names that installed packages offer, in order; nothing is loaded."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load_plugin(name: str) -> type[Strategy] | None:
    """The strategy class that an installed package offers under a name; None where there is no such entry.

    Raises:
        InputError: it cannot be loaded, is no strategy or has another name, or several packages offer the name.
    """
    found = {(entry.value, _distribution(entry)): entry for entry in entry_points(group=GROUP, name=name)}
    if not found:
        return None
    if len(found) > 1:
        owners = " and ".join(sorted(owner for _, owner in found))
        raise InputError(f"strategy {name!r}: offered by {owners}; uninstall one of them")
    (entry,) = found.values()
    kind = _loaded(entry)
    if not (isclass(kind) and issubclass(kind, Strategy)):
        raise InputError(f"strategy {name!r} of {_distribution(entry)}: {entry.value} is no subclass of Strategy")
    if getattr(kind, "name", None) != name:
        own = getattr(kind, "name", None)
        raise InputError(
            f"strategy {name!r} of {_distribution(entry)}: the class names itself {own!r}; both must agree"
        )
    return _guarded(kind, f"strategy {name!r} of {_distribution(entry)}")


def _distribution(entry: EntryPoint) -> str:
    return f"distribution {entry.dist.name!r}" if entry.dist is not None else "an unnamed distribution"


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        raise InputError(
            f"strategy {entry.name!r} of {_distribution(entry)} cannot be loaded: {_one_line(error)}"
        ) from error


def _guarded(kind: type[Strategy], label: str) -> type[Strategy]:
    """The class with a `plan` whose errors are one line, and whose AllReduce is checked before it runs."""

    def plan(self: Strategy, request: Request, view: View) -> Plan:
        try:
            made = kind.plan(self, request, view)
        except SimaiError:
            raise
        except Exception as error:
            raise InputError(f"{label} failed to plan: {_one_line(error)}") from error
        if not isinstance(made, Plan):
            raise InputError(f"{label}: plan returned {type(made).__name__}, not a Plan")
        _check(made, request, view, label)
        return made

    body = {"plan": plan, "__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind,), body)


def _check(made: Plan, request: Request, view: View, label: str) -> None:
    whole = request.op == "all_reduce" and len(request.group) == view.cluster.n_ranks
    if not whole or view.cluster.n_ranks > CHECKED_RANKS:
        return
    violation = check_schedule(made.schedule)
    if violation is not None:
        raise InputError(f"{label}: the schedule is no AllReduce: {violation}")


def _one_line(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"
