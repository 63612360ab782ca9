"""Strategies of other installed packages, found by entry point and loaded when they are asked for.

A package offers a strategy in its `pyproject.toml`::

    [project.entry-points."r2cc_simai.strategies"]
    leaf-tree = "leaf_tree:LeafTree"

The name is what a user writes after `--strategy`, and the `name` of the class. A plug-in that cannot be loaded, that
raises, or whose schedule is wrong ends the command with one line that names its distribution. The package's own
strategies come first: a plug-in cannot take their names.
"""

from inspect import isclass

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.checker import check_schedule
from r2cc_simai.errors import InputError, SimaiError
from r2cc_simai.plugins import load_offer, offered_names, one_line
from r2cc_simai.strategies.base import Plan, Request, Strategy

GROUP = "r2cc_simai.strategies"
CHECKED_RANKS = 64
"""Up to so many ranks an AllReduce of a plug-in is checked symbolically before it runs."""


def plugin_names() -> list[str]:
    """Names that installed packages offer, in order; nothing is loaded."""
    return offered_names(GROUP)


def load_plugin(name: str) -> type[Strategy] | None:
    """The strategy class that an installed package offers under a name; None where there is no such entry.

    Raises:
        InputError: it cannot be loaded, is no strategy or has another name, or several packages offer the name.
    """
    offer = load_offer(GROUP, name, "strategy")
    if offer is None:
        return None
    kind = offer.content
    if not (isclass(kind) and issubclass(kind, Strategy)):
        raise InputError(f"{offer.label}: {offer.value} is no subclass of Strategy")
    if getattr(kind, "name", None) != name:
        own = getattr(kind, "name", None)
        raise InputError(f"{offer.label}: the class names itself {own!r}; both must agree")
    return _guarded(kind, offer.label)


def _guarded(kind: type[Strategy], label: str) -> type[Strategy]:
    """The class with a `plan` whose errors are one line, and whose AllReduce is checked before it runs."""

    def plan(self: Strategy, request: Request, view: View) -> Plan:
        try:
            made = kind.plan(self, request, view)
        except SimaiError:
            raise
        except Exception as error:
            raise InputError(f"{label} failed to plan: {one_line(error)}") from error
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
